/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * Shared by proxy*.c and its tests.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_PRIV_H
#define LYCH_TOMB_BROKER_PROXY_PRIV_H

#include "common/buf.h"
#include "common/proto/git_http.h"
#include "tomb/broker/proxy.h"
#include "tomb/broker/proxy_intent.h"

/* Unwritten bytes of one answer at which the vessel is asked to wait; the client is cut
 * off at PROXY_BACKLOG_MAX_BYTES, which is not reached. */
#define PROXY_BACKLOG_PAUSE_BYTES ((size_t)256 << 10)
#define PROXY_BACKLOG_MAX_BYTES (2 * PROXY_BACKLOG_PAUSE_BYTES)

enum proxy_what {
	ASK_CHAT,
	ASK_RESPONSES,
	ASK_EMBEDDINGS,
	ASK_MESSAGES,
	ASK_COUNT_TOKENS,
	ASK_GEMINI, /* which of its methods is said by the path */
	LIST_MODELS,
	SHOW_MODEL,
	FETCH,
	PACKAGE_NPM,
	PACKAGE_PYPI,
	PACKAGE_CARGO,
	PACKAGE_GO,
	NOT_SERVED, /* known, and refused with the reason */
};

/* One request of the job, until its answer is out. */
struct exchange;

/* How an answer reaches the job; client is the front end's own. whole, end and cut are
 * the last call: the exchange has let go of the client. */
struct client_ops {
	/* A short answer, all of it. r->retry_after, and "do not retry", are told. */
	void (*refuse)(void *client, const struct proxy_refusal *r, enum proxy_dialect d);
	/* The head of an answer that is streamed; call has the vessel's headers. */
	void (*head)(void *client, int status, const struct httpc_call *call);
	void (*data)(void *client, const void *data, size_t len);
	size_t (*backlog)(void *client);
	void (*end)(void *client);
	void (*cut)(void *client); /* it broke off in the middle */
};

/* What a request is about, in the front end's memory until exchange_begin returns. */
struct ask {
	enum proxy_what what;
	enum proxy_dialect dialect; /* in which errors are told */
	const char *method;	    /* FETCH */
	/* FETCH; the path of a package; a model's name, ASK_GEMINI: and the method */
	const char *url;
	const char *alt; /* ASK_GEMINI: of the query */
	const char
		*within; /* FETCH: the tunnel that it came by, "host:port"; NULL: none */
	enum git_request git; /* of a tunnel: in what form a refusal is told */
	const struct intent_header *headers;
	size_t n_headers;
	const void *body; /* must stay until the first call of ops */
	size_t len;
};

/* Never calls ops from within. One beyond the job's inflight_max waits for its turn, one beyond
 * broker_waiting_max() is refused: ERRID_BROKER_INFLIGHT. */
struct exchange *exchange_begin(struct proxy *p, const struct ask *a,
				const struct client_ops *ops, void *client);
/* The client is gone; cancels at the vessel. ops are not called any more. */
void exchange_abandon(struct exchange *x);
/* The backlog went down. */
void exchange_drained(struct exchange *x);

/* May the job ask for it, before a byte of a body is read? authorization ("Bearer ...") or
 * api_key, each may be NULL. ERRID_BROKER_API with the route's reason, _PACKAGES, _KEY. */
struct proxy_route;
MUST_CHECK int proxy_admit(const struct proxy *p, const struct proxy_route *r,
			   const char *authorization, const char *api_key,
			   struct err *err);
/* One that is told otherwise than as a refusal. */
void proxy_count_refused(const struct proxy *p, const struct err *err);
/* The refusal of a request that the vessel does not hear of; counted. */
void proxy_refuse(const struct proxy *p, const struct err *err, int status,
		  const char *request_id, struct proxy_refusal *ret);
/* In a tunnel nobody sees the URL: the refusal says what it was about. within: "" outside. */
void proxy_name_host(const char *within, struct proxy_refusal *r);
const struct proxy_config *proxy_config_of(const struct proxy *p);

/* A request of HTTP, in the loopback's server or in a tunnel's: its fields and body are taken, and
 * it is answered. */
struct httpd_req;
void proxy_http_begin(struct proxy *p, struct httpd_req *req, struct ask *a);

/* The two front ends. */
struct proxy_http;
struct proxy_floor;
MUST_CHECK int proxy_http_new(struct proxy *p, int listen_fd, struct proxy_http **ret,
			      struct err *err);
void proxy_http_free(struct proxy_http *h);
MUST_CHECK int proxy_floor_new(struct proxy *p, int fd, struct proxy_floor **ret,
			       struct err *err);
void proxy_floor_free(struct proxy_floor *f);

#endif
