/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * HTTP/1.1 server over libevent's bufferevents: on a unix socket that it makes,
 * or on a listening descriptor that somebody hands in (a job's own loopback).
 *
 * One strict parser of ours reads the raw bytes (httpd_gate.c), so that nothing
 * is normalised before it is judged: exactly one Host, and it is an allowed one;
 * every header at most once; Content-Length of digits only; no
 * Transfer-Encoding, or plain chunks where a server takes them; no space in a header name; no control byte, NUL, bare CR or
 * LF, folded line; %00 and %2f refused in the path. A refusal answers 400 and
 * closes the connection. Header cap 8 KiB, body cap per route and authentication
 * before the first byte of a body is read, idle timeout, a cap on connections,
 * a backlog cap per stream. One request at a time: bytes that arrive
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
	/* "/v1/jobs/{id}/output": {x} matches one segment; at the end {x...} matches
	 * one or more. */
	const char *path;
	unsigned who; /* free for the user: principal mask, compared by its auth function
		       */
	size_t body_max_bytes; /* 0: no body at all */
	httpd_handler *handler;
};

/*
 * The body of an error answer, in another form than ours ({error_code,...}): JSON
 * into b, which is empty. path is the raw one, NULL when the head was not readable.
 */
typedef void httpd_error_body(struct buf *b, const struct err *err, int status,
			      const char *request_id, const char *path, void *arg);

/*
 * A request that the server refuses by itself, before its handler: true, and it was answered, in whatever form
 * its client shows; false: in the usual one. Method, target and what came of the body are there.
 */
typedef bool httpd_refuse(struct httpd_req *req, const struct err *err, int status,
			  const char *request_id, void *arg);

/*
 * What one client that showed who it is holds of a server, on all its connections: they
 * themselves, the bodies of its requests, the answers that it has not taken. Zeroed by its
 * owner, which keeps it for as long as the server and its requests live.
 */
struct httpd_share {
	unsigned connections;
	size_t bodies, answers; /* bytes */
};

/*
 * CONNECT host:port, from a client that takes this server for a proxy: authority is its target,
 * not looked into. Owns the request as a handler does: it takes the connection
 * (httpd_req_take_fd) or refuses.
 */
typedef void httpd_connect(struct httpd_req *req, const char *authority, void *arg);

struct httpd_config {
	/* Of httpd_new: a stale socket is removed only if nothing answers on it. */
	const char *socket_path;
	mode_t socket_mode; /* 0600 */
	const struct httpd_route *routes;
	size_t n_routes;
	httpd_auth *auth;
	void *arg; /* to auth, handlers and error_body */
	unsigned max_connections;
	usec_t idle_usec;
	size_t stream_backlog_max_bytes; /* per stream; a slower reader is cut off */

	/* The rest may be left out. */
	const char *const *hosts; /* NULL-terminated; NULL: {"lychgate"} */
	usec_t request_usec;	 /* a whole request must have come by then; 0: no limit */
	size_t bodies_max_bytes; /* all declared bodies held at once; 0: no limit */
	/* What a share may hold; 0 connections: there are no shares. With shares a connection
	 * that has not shown yet whose it is makes place for a new one, the oldest first. */
	unsigned share_connections;
	size_t share_bodies_max_bytes, share_answers_max_bytes;
	bool encoded_slash_ok; /* %2f in a path is '/' (npm's scoped names) */
	/* Bodies may come in chunks; until one is whole it counts as the most that it may be. */
	bool chunks_ok;
	/* Of a body that is too large, and for which no leave was asked, so much is read and dropped before the answer, which
	 * comes at once where more is announced, and when nothing of the rest comes for two seconds;
	 * 0: the answer comes at once. git and curl take an earlier answer for the end of the request, and git sends the rest as
	 * a second one. */
	size_t drop_max_bytes;
	httpd_error_body *error_body;
	httpd_refuse *refuse;
	httpd_connect *connect; /* NULL: CONNECT is refused as what is no path is */
	/* Every path and method but CONNECT is this route's, and there is no other: neither path
	 * nor query is decoded, httpd_req_target() has both. */
	const struct httpd_route *any;
};

/* Binds and listens (ERRID_START_SOCKET); serving begins with the loop. */
MUST_CHECK int httpd_new(struct loop *l, const struct httpd_config *cfg,
			 struct httpd **ret, struct err *err);
/*
 * Of httpd_new: whoever may remove files beside the socket can remove it, and nobody could
 * connect any more. Is it still there? Else it is made anew, in the place of whatever socket lies
 * there; 1: that was so. ERRID_START_SOCKET.
 */
MUST_CHECK int httpd_renew(struct httpd *h, struct err *err);
/*
 * Serve on a listening TCP socket on 127.0.0.1 (ERRID_START_SOCKET for anything
 * else), which is taken in any case. Its clients are hostile: there is no peer uid
 * (httpd_req_peer says (uid_t)-1 and 0); at max_connections nothing more is accepted
 * until one ends, instead of an answer 503, and accepting is rate-limited, so that a
 * flood waits in its own backlog.
 */
MUST_CHECK int httpd_new_adopted(struct loop *l, const struct httpd_config *cfg,
				 int listen_fd, struct httpd **ret, struct err *err);
/*
 * A server that does not listen: its connections are given to it one by one. Its clients are
 * hostile.
 */
struct httpd *httpd_new_inner(struct loop *l, const struct httpd_config *cfg);
/* What came by a way of its own. */
struct httpd_guest {
	const char *const *hosts; /* NULL-terminated: instead of the server's */
	void (*gone)(
		void *arg); /* once, when its connection is over; from the loop or from
				     httpd_free() */
	void *arg;	    /* httpd_req_guest() of its requests */
};
/* fd, a connected stream socket that does not block, is taken; guest is kept by the caller
 * until gone. More than max_connections of them are the caller's fault. */
void httpd_add(struct httpd *h, int fd, const struct httpd_guest *guest);
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
/* All of them: i from 0; false at the end. */
bool httpd_req_header_at(const struct httpd_req *req, size_t i, const char **ret_name,
			 const char **ret_value);
/* As it came: "/path?query", of CONNECT "host:port". */
const char *httpd_req_method(const struct httpd_req *req);
void httpd_req_target(const struct httpd_req *req, struct buf *out);
void *httpd_req_guest(const struct httpd_req *req);
/*
 * Of CONNECT: its connection leaves the server, nothing was answered on it, and nothing of what
 * comes behind its head was read. Ends the request. -1: the client is gone.
 */
int httpd_req_take_fd(struct httpd_req *req);
const void *httpd_req_body(const struct httpd_req *req, size_t *ret_len);
/* SO_PEERCRED at accept. */
void httpd_req_peer(const struct httpd_req *req, uid_t *ret_uid, pid_t *ret_pid);
/* A slot for the authenticator's principal (any pointer; freed with free_fn). */
/* By the authenticator, when it knows whose the request is: it and its connection count
 * against this share. ERRID_HTTP_BUSY: it has no room for them. */
MUST_CHECK int httpd_req_charge(struct httpd_req *req, struct httpd_share *share,
				struct err *err);
void httpd_req_set_ctx(struct httpd_req *req, void *ctx, void (*free_fn)(void *));
void *httpd_req_ctx(const struct httpd_req *req);
/* Called once if the client goes away before the reply. A later reply is then a no-op
 * that frees req. */
void httpd_req_on_gone(struct httpd_req *req, void (*fn)(void *arg), void *arg);

/* Has the client gone away already? Then no callback of the above comes. */
bool httpd_req_is_gone(const struct httpd_req *req);

/* One more header of the reply, before it; copied. At most 24, together 4 KiB; of these
 * four and 512 bytes are kept for this function. */
void httpd_req_add_header(struct httpd_req *req, const char *name, const char *value);
/* The same with a field that came from outside. False: it has no room, or is none, and is
 * left out. */
bool httpd_req_pass_header(struct httpd_req *req, const char *name, const char *value);

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

/*
 * Streaming answers: chunked, of unknown length. From start the stream is the
 * caller's until on_close (the client went, took nothing for idle_usec, or let the
 * backlog pass its cap), end or abort; on_close comes from the loop, never from inside
 * a call, and not after end or abort. Headers: httpd_req_add_header before start.
 */
struct httpd_stream;
/* NULL when the client is gone already; req is freed either way. */
struct httpd_stream *httpd_stream_start(struct httpd_req *req, int status,
					const char *content_type,
					void (*on_close)(void *arg), void *arg);
/* One chunk; nothing for len 0. False when the backlog cap would be passed: the client
 * is cut off (on_close follows). Stay below it by httpd_stream_backlog and on_drain. */
bool httpd_stream_send(struct httpd_stream *s, const void *data, size_t len);
size_t httpd_stream_backlog(const struct httpd_stream *s); /* bytes not yet written */
/* Called whenever the backlog has been written down to half of the cap, or to `mark`. */
void httpd_stream_on_drain(struct httpd_stream *s, void (*fn)(void *arg), void *arg);
void httpd_stream_set_mark(struct httpd_stream *s, size_t mark);
void httpd_stream_end(struct httpd_stream *s); /* the last chunk */
/* What was sent goes out, then the connection closes without a last chunk: the client
 * sees that the answer is not whole. */
void httpd_stream_abort(struct httpd_stream *s);

/* Server-sent events: a stream of 200 text/event-stream, whose connection closes at its
 * end. Its reader may stop for as long as it lives (a shell's ^Z): who feeds the stream
 * stays below the cap by on_drain, and it is not cut off for having taken nothing. */
struct httpd_stream *httpd_sse_start(struct httpd_req *req, void (*on_close)(void *arg),
				     void *arg);
/* One event; id may be NULL; data is one line of JSON. False as httpd_stream_send. */
bool httpd_sse_send(struct httpd_stream *s, const char *id, const char *event,
		    const char *data, size_t len);
/* A line that no client takes for an event: it only says that somebody is there. */
bool httpd_sse_comment(struct httpd_stream *s);

/* The answer to a HEAD: the head of a stream, and nothing of it. */
void httpd_reply_head_only(struct httpd_req *req, int status, const char *content_type);

/* The gate's pure parts, for tests and the fuzzer. */
MUST_CHECK int
httpd_gate_path(const char *raw, bool encoded_slash_ok, char *out, size_t size,
		struct err *err); /* decode, refuse %00, %2f, control, '..' */
/*
 * A raw query (NULL: none) may hold the parameters of allowed (NULL-terminated) and no
 * others: ERRID_HTTP_QUERY. The decoded value of the first of them is copied into out,
 * "" when it is absent or empty.
 */
MUST_CHECK int httpd_gate_query(const char *raw, const char *const *allowed, char *out,
				size_t size, struct err *err);

#endif
