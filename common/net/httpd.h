/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 server on unix sockets over libevent's bufferevents.
 *
 * One strict parser of ours reads the raw bytes (httpd_gate.c), so that nothing
 * is normalised before it is judged: exactly one Host, and it is "lychgate";
 * every header at most once; Content-Length of digits only; no
 * Transfer-Encoding; no space in a header name; no control byte, NUL, bare CR or
 * LF, folded line; %00 and %2f refused in the path. A refusal answers 400 and
 * closes the connection. Header cap 8 KiB, body cap per route and authentication
 * before the first byte of a body is read, idle timeout, a cap on connections,
 * a backlog cap per event stream. One request at a time: bytes that arrive
 * before the answer is out are dropped and the connection closes after it, so a
 * smuggled or pipelined second request never gets an answer. A half-closed
 * connection counts as closed. Why not evhttp: docs/adr/0011-http-parser-of-our-own.md.
 */
#ifndef LYCH_COMMON_NET_HTTPD_H
#define LYCH_COMMON_NET_HTTPD_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct httpd;
struct httpd_req;

enum http_method { HTTP_M_GET, HTTP_M_POST, HTTP_M_PUT, HTTP_M_DELETE, HTTP_M_MAX_ };

/* The handler owns the request until it calls one httpd_reply_* (at once or later). */
typedef void httpd_handler(struct httpd_req *req, void *arg);
/* Before every handler and before the body is read (there is none yet); -1 with err
 * refuses (the answer is err's, the connection closes). Must not block. */
typedef int httpd_auth(struct httpd_req *req, void *arg, struct err *err);

struct httpd_route {
	enum http_method method;
	const char *path; /* "/v1/jobs/{id}/output": {x} matches one segment */
	unsigned who; /* free for the user: principal mask, compared by its auth function
		       */
	size_t body_max_bytes; /* 0: no body at all */
	httpd_handler *handler;
};

struct httpd_config {
	const char *
		socket_path; /* a stale socket is removed only if nothing answers on it */
	mode_t socket_mode;  /* 0600 */
	const struct httpd_route *routes;
	size_t n_routes;
	httpd_auth *auth;
	void *arg; /* to auth and handlers */
	unsigned max_connections;
	usec_t idle_usec;
	size_t sse_backlog_max_bytes; /* per stream; a slower reader is cut off */
};

/* Binds and listens (ERRID_START_SOCKET); serving begins with the loop. */
MUST_CHECK int httpd_new(struct loop *l, const struct httpd_config *cfg,
			 struct httpd **ret, struct err *err);
/* Stop accepting and unlink the socket; open requests are answered 503 and closed, which
 * is an on_gone/on_close for their owners. Not from within a handler. */
void httpd_free(struct httpd *h);

/* The request. Strings live until the reply. */
const struct httpd_route *httpd_req_route(const struct httpd_req *req);
const char *httpd_req_param(const struct httpd_req *req,
			    const char *name); /* {id}, percent-decoded; NULL */
const char *httpd_req_query(const struct httpd_req *req,
			    const char *name); /* decoded; NULL when absent */
/* Refuse query keys that are not in allowed (NULL-terminated): ERRID_HTTP_QUERY. */
MUST_CHECK int httpd_req_check_query(const struct httpd_req *req,
				     const char *const *allowed, struct err *err);
const char *httpd_req_header(const struct httpd_req *req,
			     const char *name); /* NULL when absent */
const void *httpd_req_body(const struct httpd_req *req, size_t *ret_len);
void httpd_req_peer(const struct httpd_req *req, uid_t *ret_uid,
		    pid_t *ret_pid); /* SO_PEERCRED at accept */
/* A slot for the authenticator's principal (any pointer; freed with free_fn). */
void httpd_req_set_ctx(struct httpd_req *req, void *ctx, void (*free_fn)(void *));
void *httpd_req_ctx(const struct httpd_req *req);
/* Called once if the client goes away before the reply. A later reply is then a no-op
 * that frees req. */
void httpd_req_on_gone(struct httpd_req *req, void (*fn)(void *arg), void *arg);

/* One more header of the reply, before it; copied. At most 8. */
void httpd_req_add_header(struct httpd_req *req, const char *name, const char *value);

/* Replies: each ends the request. */
void httpd_reply(struct httpd_req *req, int status, const char *content_type,
		 const void *body, size_t len);
void httpd_reply_json(struct httpd_req *req, int status,
		      const struct buf *json); /* 500 if !buf_ok */
/* {error_code,title,detail,hint,request_id}; detail only where the code's text is public.
 */
void httpd_reply_err(struct httpd_req *req, const struct err *err);
/* As httpd_reply_err with one more member: "expected": n (RUN_GAP). */
void httpd_reply_err_expected(struct httpd_req *req, const struct err *err,
			      uint64_t expected);
/* len bytes of an open regular file from offset; takes the descriptor. */
void httpd_reply_file(struct httpd_req *req, int status, const char *content_type, int fd,
		      uint64_t offset, uint64_t len);

/* Server-sent events. After start the stream belongs to the caller until on_close or end.
 */
struct httpd_sse;
/* NULL when the client is gone already; req is freed either way. */
struct httpd_sse *httpd_sse_start(struct httpd_req *req, void (*on_close)(void *arg),
				  void *arg);
/* One event; id may be NULL; data is one line of JSON. False when the reader was too
 * slow and has been cut off (on_close follows). */
bool httpd_sse_send(struct httpd_sse *s, const char *id, const char *event,
		    const char *data, size_t len);
size_t httpd_sse_backlog(const struct httpd_sse *s); /* bytes not yet written */
/* Called when the backlog has drained below half of the cap. */
void httpd_sse_on_drain(struct httpd_sse *s, void (*fn)(void *arg), void *arg);
void httpd_sse_end(struct httpd_sse *s); /* on_close is not called */

/* The gate's pure parts, for tests and the fuzzer. */
MUST_CHECK int httpd_gate_content_length(const char *value, uint64_t *ret,
					 struct err *err);
MUST_CHECK int
httpd_gate_path(const char *raw, char *out, size_t size,
		struct err *err); /* decode, refuse %00, %2f, control, '..' */

#endif
