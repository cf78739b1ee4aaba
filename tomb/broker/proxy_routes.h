/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What a job may ask its broker for, by method and path: one table for both front ends, and
 * docs/PROTOCOL.md ("What a job's broker answers") describes each line.
 *
 * Clients put the version into their base URL or into the path, so what has one is there
 * without it too. What clients of these APIs are known to ask for and is not served is in
 * the table as well, so that it is refused with the reason.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_ROUTES_H
#define LYCH_TOMB_BROKER_PROXY_ROUTES_H

#include "common/net/httpd.h"
#include "tomb/broker/proxy_priv.h"

struct proxy_route {
	enum http_method method;
	const char *path; /* at its end a slash: what is below it */
	enum proxy_what what;
	enum proxy_dialect dialect; /* of its answers; of models a header says more */
	const char *const *params;  /* that its query may have, NULL-terminated */
	const char *instead;	    /* NOT_SERVED: what is, or why */
};

extern const struct proxy_route proxy_routes[];
extern const size_t proxy_n_routes;

/* The dialect in which errors of a path are told, be it in the table or not; NULL: it is not
 * known. */
enum proxy_dialect proxy_dialect_of(const char *path);
const char *proxy_method_name(const struct proxy_route *r);
/* Bytes that its body may have. */
size_t proxy_body_max(const struct proxy_route *r);
/* Are its headers looked at? */
bool proxy_takes_headers(enum proxy_what what);

#endif
