/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Shared by httpd*.c, its tests and the gate's fuzz target; nobody else.
 */
#ifndef LYCH_COMMON_NET_HTTPD_PRIV_H
#define LYCH_COMMON_NET_HTTPD_PRIV_H

#include "common/net/httpd.h"
#include <stdint.h>

#define GATE_HEAD_MAX_BYTES 8192
#define GATE_HEADERS_MAX 64
#define GATE_QUERY_MAX 16
#define GATE_SEGMENTS_MAX 16

struct gate_pair {
	const char *name, *value;
};

/* A request head that passed the gate. Strings point into the head's own bytes. */
struct gate_head {
	const char *method;
	const char *path;  /* raw, without the query */
	const char *query; /* raw, NULL when there is no '?' */
	struct gate_pair headers[GATE_HEADERS_MAX];
	size_t n_headers;
	uint64_t content_length;
	bool close, expect_continue, is_connect, is_chunked;
};

/*
 * Look at the head's raw bytes from *scanned on. 1: it ends at *ret_len
 * (including the empty line); 0: more bytes are needed; -1: refused.
 */
MUST_CHECK int gate_head_end(const char *data, size_t len, size_t *scanned,
			     size_t *ret_len, struct err *err);
/* head: exactly the bytes that gate_head_end measured, plus a NUL; modified. hosts: the
 * allowed ones, NULL-terminated; NULL: {"lychgate"}. Whether a body may come in chunks is the
 * server's to say (is_chunked). */
MUST_CHECK int gate_parse(char *head, size_t len, const char *const *hosts,
			  struct gate_head *ret, struct err *err);
/* The same of a CONNECT, whose target (path) is what stands there. It may be HTTP/1.0 and without
 * Host, as Python before 3.12 writes it; a Host that says another one is refused. */
MUST_CHECK int gate_parse_connect(char *head, size_t len, struct gate_head *ret,
				  struct err *err);
/* ---- a body in chunks (httpd_chunks.c) ---- */

enum gate_chunk_at {
	CHUNK_SIZE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LAST_CR,
	CHUNK_LAST_LF,
	CHUNK_OVER,
};
struct gate_chunks {
	enum gate_chunk_at at;
	uint64_t left; /* of the chunk */
	unsigned digits;
	size_t max; /* of the body */
};
void gate_chunks_begin(struct gate_chunks *c, size_t max);
/*
 * The next bytes: those of the body are added to it, whose ceiling is max; NULL: they are dropped, and there is
 * none. 1: it is whole, and ends behind *ret_used of them; 0: more are needed, all were used.
 * ERRID_HTTP_FRAMING; ERRID_HTTP_BODY: more than max, said before the chunk is read, which *ret_used
 * of them stand before: who goes on there with NULL drops the rest.
 */
MUST_CHECK int gate_chunks_feed(struct gate_chunks *c, const char *data, size_t len,
				struct buf *body, size_t *ret_used, struct err *err);

/* Split and decode in place. */
MUST_CHECK int gate_query(char *query, struct gate_pair out[GATE_QUERY_MAX],
			  size_t *ret_n, struct err *err);
const char *gate_header(const struct gate_head *g, const char *name);

/* ---- the server's own structures ---- */

enum conn_state {
	CONN_HEAD,   /* waiting for a request or in its head */
	CONN_BODY,   /* reading the declared body */
	CONN_DROP,   /* it is too large: its rest is dropped, and then answered */
	CONN_BUSY,   /* a handler owns the request */
	CONN_FLUSH,  /* the answer is being written */
	CONN_STREAM, /* an answer of unknown length is open */
	CONN_LINGER, /* answered and half-closed: what still comes in is dropped */
};

/* Connections of which nobody knows yet whose they are, in the order of their coming. */
struct strangers {
	struct conn *oldest, *newest;
};

struct httpd {
	struct loop *loop;
	struct httpd_config cfg;
	char *socket_path; /* NULL: adopted */
	dev_t dev;
	ino_t ino;
	int fd;
	struct loop_io *io;
	struct loop_timer *pause; /* accept again later */
	struct conn *conns;
	unsigned n_conns;
	struct strangers strangers;
	size_t bodies_bytes; /* declared by the requests in conns */
	bool full;	     /* adopted: waits for a connection to end */
};

struct conn {
	struct httpd *httpd;
	struct conn *prev, *next;
	struct conn *older, *newer; /* among the strangers, while it has no share */
	struct httpd_share *share;
	size_t answer_bytes; /* of these counted there */
	struct bufferevent *bev;
	struct loop_timer
		*timer; /* idle, head and body deadlines; linger; deferred close */
	enum conn_state state;
	struct httpd_req *req;		 /* CONN_BODY, CONN_DROP, CONN_BUSY */
	struct httpd_stream *stream;	 /* CONN_STREAM */
	const struct httpd_guest *guest; /* NULL: it came by the listener */
	uid_t uid;
	pid_t pid;
	usec_t deadline;      /* the request must be whole; USEC_INFINITY: no limit */
	size_t scanned;	      /* of the head */
	size_t dropped_bytes; /* CONN_DROP, CONN_LINGER */
	bool close_after;     /* no further request on this connection */
	bool doomed;	      /* the timer closes it */
};

struct httpd_req {
	struct conn *conn; /* NULL once the client is gone */
	const struct httpd_route *route;
	struct request_id id;
	char *head; /* raw bytes that g points into */
	struct gate_head g;
	char path[GATE_HEAD_MAX_BYTES]; /* decoded; '/' became NUL */
	const char *segments[GATE_SEGMENTS_MAX];
	size_t n_segments;
	struct gate_pair query[GATE_QUERY_MAX];
	size_t n_query;
	struct buf body;
	struct gate_chunks chunks;
	struct err refusal;	   /* CONN_DROP */
	struct httpd_share *share; /* its body counts there until it is freed */
	uid_t uid;
	pid_t pid;
	void *ctx;
	void (*ctx_free)(void *);
	void (*gone)(void *arg);
	void *gone_arg;
	struct buf more_headers;
	unsigned n_more_headers;
	char reason[128]; /* "": the status' own */
};

struct httpd_stream {
	struct conn *conn;
	size_t backlog_max;
	void (*on_close)(void *arg);
	void *close_arg;
	void (*on_drain)(void *arg);
	void *drain_arg;
	bool cut; /* too slow: the connection closes in the next turn of the loop */
};

const struct httpd_config *httpd_config_of(const struct conn *c);
/* Cut the decoded path and find its route: ERRID_HTTP_ROUTE, ERRID_HTTP_METHOD. */
MUST_CHECK int httpd_find_route(const struct httpd_config *cfg, struct httpd_req *req,
				struct err *err);
/* A new client on fd, which is taken. */
struct conn *conn_new(struct httpd *h, int fd, uid_t uid, pid_t pid);
/* A connection ended: a listener that waited for that goes on. */
void httpd_listen_resume(struct httpd *h);
/* httpd_share.c: who holds what. */
void share_join(struct conn *c);
void share_leave(struct conn *c);
MUST_CHECK int share_admit_body(struct httpd_req *req, struct err *err);
/* False: the share has no room for an answer of len bytes. */
bool share_take_answer(struct conn *c, size_t len);
void share_answer_is_out(struct conn *c);
/* The oldest connection that is nobody's is closed; false: there is none. */
bool share_evict_stranger(struct httpd *h);
void httpd_req_free(struct httpd_req *req);
void conn_free(struct conn *c);
/* Is a client closed that takes nothing of its answer for idle_usec? Yes, but for SSE. */
void conn_cut_when_deaf(struct conn *c, bool yes);
/* Close in the next turn of the loop, so that a caller's stack stays valid. */
void conn_doom(struct conn *c);
/* Head of an answer into the connection's output. len UINT64_MAX: chunked. */
void reply_head(struct conn *c, const struct httpd_req *req, int status,
		const char *content_type, uint64_t len);
/* The whole answer is in the output (it may be empty when the connection is to close):
 * write it, then next request or close. */
void conn_flush(struct conn *c);
/* Answer without a handler (the gate, auth, routing): err's answer, then close. */
void reply_refusal(struct conn *c, struct httpd_req *req, const struct err *err);
/* From the loop, when output has drained. */
void stream_drained(struct httpd_stream *s);
/* The connection is going away under the stream. */
void stream_closed(struct httpd_stream *s);

#endif
