/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * HTTP client on the loop (curl multi), for one peer on a unix socket.
 */
#ifndef LYCH_COMMON_NET_HTTPC_H
#define LYCH_COMMON_NET_HTTPC_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/net/httpd.h" /* enum http_method */
#include "common/net/loop.h"
#include <stdbool.h>
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

/*
 * A reply that is taken while it comes. All three are called from the loop, outside of
 * the sending call, and may pause, cancel or free the client. A 200..599 of any length is
 * a reply; whether it is an error is the caller's to judge.
 */
struct httpc_stream_ops {
	void (*on_head)(struct httpc_call *call, int status, void *arg);
	/* At most 64 KiB, never 0; not while paused. */
	void (*on_body)(struct httpc_call *call, const void *data, size_t len, void *arg);
	/* Exactly once unless cancelled; the call is over. err NULL: the reply is whole;
	 * else as httpc_reply's, and it may come in the middle of a body. */
	void (*on_end)(const struct err *err, void *arg);
};

/* No proxy, no environment, no redirects, no cookies; only this socket. */
MUST_CHECK int httpc_new(struct loop *l, const char *socket_path,
			 unsigned max_connections, struct httpc **ret, struct err *err);
void httpc_free(struct httpc *c); /* cancels what is open without calling back */
/* done is called exactly once, from the loop, unless cancelled. *ret_call may be NULL. */
MUST_CHECK int httpc_send(struct httpc *c, const struct httpc_request *rq,
			  httpc_done *done, void *arg, struct httpc_call **ret_call,
			  struct err *err);
/* timeout_usec is for the whole exchange, reply_max_bytes for the whole body. On a
 * connection of its own, and never sent twice. */
MUST_CHECK int httpc_stream(struct httpc *c, const struct httpc_request *rq,
			    const struct httpc_stream_ops *ops, void *arg,
			    struct httpc_call **ret_call, struct err *err);
/* Of a stream: no on_body until resumed; the peer is held back once 64 KiB lie here. */
void httpc_pause(struct httpc_call *call);
void httpc_resume(struct httpc_call *call);
/* A header of a stream's head, from on_head on; NULL when absent. */
const char *httpc_header(const struct httpc_call *call, const char *name);
/* Iterate them: *at is 0 at first; false at the end. */
bool httpc_header_next(const struct httpc_call *call, size_t *at, const char **ret_name,
		       const char **ret_value);
/* Of any call; its callbacks are not made any more. */
void httpc_cancel(struct httpc_call *call);

#endif
