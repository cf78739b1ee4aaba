/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP client on the loop (curl multi), for one peer on a unix socket. */
#ifndef LYCH_COMMON_NET_HTTPC_H
#define LYCH_COMMON_NET_HTTPC_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/net/httpd.h" /* enum http_method */
#include "common/net/loop.h"
#include <stddef.h>

struct httpc;
struct httpc_call;

struct httpc_request {
	enum http_method method;
	const char *target;	    /* "/work/v1/output?stream=stdout&offset=0" */
	const char *const *headers; /* "Name: value", NULL-terminated; copied */
	const void *body;	    /* copied */
	size_t body_len;
	usec_t timeout_usec;
	size_t reply_max_bytes; /* a longer reply is an error */
};

struct httpc_reply {
	int status;	  /* 0: no answer, see err */
	const char *body; /* NUL-terminated */
	size_t body_len;
	const struct err *err; /* transport error (ERR_UNAVAILABLE, ERR_TIMEOUT,
				  ERR_TOO_LARGE), or NULL */
};

typedef void httpc_done(const struct httpc_reply *reply, void *arg);

/* No proxy, no environment, no redirects, no cookies; only this socket. */
MUST_CHECK int httpc_new(struct loop *l, const char *socket_path,
			 unsigned max_connections, struct httpc **ret, struct err *err);
void httpc_free(struct httpc *c); /* cancels what is open without calling back */
/* done is called exactly once, from the loop, unless cancelled. *ret_call may be NULL. */
MUST_CHECK int httpc_send(struct httpc *c, const struct httpc_request *rq,
			  httpc_done *done, void *arg, struct httpc_call **ret_call,
			  struct err *err);
void httpc_cancel(struct httpc_call *call);

#endif
