/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * HTTP/1.1 over a stream socket, from the client's side: one request, one answer (RFC 9112).
 * What comes may be a stranger's: every length is checked, and an answer that does not come
 * to its own end is an error, not a short answer. For programs that wait for it: lych, and
 * the tools inside a job. Daemons have common/net/httpc.h.
 */
#ifndef LYCH_COMMON_HTTP1_H
#define LYCH_COMMON_HTTP1_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_LINE_MAX_BYTES 16384
#define HTTP1_HEAD_LINES_MAX 128

struct http1 {
	int fd;
	/* Called before each read, and when the socket takes no more, with POLLIN or POLLOUT: 0
	 * when it may be ready, -1 with err to give up. NULL: the socket itself blocks. */
	int (*wait)(short events, void *arg, struct err *err);
	void *arg;
	/* The error of an answer that is cut off, is no HTTP, or cannot be read. */
	enum err_id bad;
	/* Private: what of in[] is not taken yet. */
	size_t at, len;
	char in[65536];
};

/* How long the body is; filled by http1_head. */
struct http1_head {
	int status; /* 200 to 599 */
	bool chunked, sized;
	uint64_t size;
};

typedef void http1_header(const char *name, const char *value, void *arg);
/* Non-zero ends the reading and is returned; -1 with err set. */
typedef int http1_data(const void *data, size_t len, void *arg, struct err *err);

/* All of it, or until the other side has closed: it may have answered before, so that is no
 * error. -1: wait() gave up. */
MUST_CHECK int http1_send(struct http1 *h, const void *data, size_t len, struct err *err);
/* A head with its empty line, and a body of len bytes. ERRID_CORE_USAGE: the head was too long
 * for its buffer. */
MUST_CHECK int http1_request(struct http1 *h, const struct buf *head, const void *body,
			     size_t len, struct err *err);
/* header may be NULL; name and value live for its call. A head that does not say how long its body
 * is is refused, but for 204 and 304. */
MUST_CHECK int http1_head(struct http1 *h, struct http1_head *ret, http1_header *header,
			  void *arg, struct err *err);
/* The whole body, in pieces of 1 to 65536 bytes. */
MUST_CHECK int http1_body(struct http1 *h, const struct http1_head *head,
			  http1_data *data, void *arg, struct err *err);

#endif
