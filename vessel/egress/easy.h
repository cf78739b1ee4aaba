/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * One attempt at a request as a curl handle: every setting that keeps curl from deciding
 * something by itself, the vetted addresses, and, last of all, the credential.
 */
#ifndef LYCH_VESSEL_EGRESS_EASY_H
#define LYCH_VESSEL_EGRESS_EASY_H

#include "vessel/egress/addr.h"
#include "vessel/egress/egress.h"
#include "vessel/egress/roots.h"
#include "vessel/egress/url.h"
#include <curl/curl.h>

struct egress_easy_spec {
	const struct egress_request *rq; /* its method, headers and limits */
	const struct url *url;
	const void *body;
	/* where it may go, all of them vetted; nothing else is connected to */
	const struct addr *addrs;
	size_t n_addrs;
	const struct egress_roots *roots;
	/* The whole header field; NULL: none. It is for url's host alone, which is its own. */
	const char *credential;
	enum headers_for dialect;
	curl_write_callback on_header, on_body;
	void *arg; /* of both */
};

struct egress_easy {
	CURL *curl;
	struct curl_slist *headers, *pins;
	char *url;
	const struct addr *addrs; /* the caller's */
	size_t n_addrs;
	uint16_t port;
	bool strayed; /* a connection elsewhere was asked for and refused */
};

/* The spec may go, its addrs and body must stay. -1: curl refuses an option. */
MUST_CHECK int egress_easy_new(const struct egress_easy_spec *spec,
			       struct egress_easy **ret, struct err *err);
/* Out of the multi handle by now. Wipes the credential. NULL is fine. */
void egress_easy_free(struct egress_easy *e);

/* What curl's word for the end means here; called for anything but CURLE_OK. */
int egress_easy_err(const struct egress_easy *e, CURLcode code, struct err *err);
/* Did bytes of the request leave? Only a connection that stands, TLS and all, sends any. */
bool egress_easy_sent(const struct egress_easy *e);

#endif
