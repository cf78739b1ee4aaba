/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as lych and a job's tools read it: the pieces must not matter. */
#include "common/http1.h"

#include "common/cleanup.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
	size_t sum, len;
	int result, status;
};

static void add(struct heard *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		s->sum = s->sum * 31 + (unsigned char)data[i];
	s->len += len;
}

static void on_header(const char *name, const char *value, void *arg)
{
	add(arg, name, strlen(name) + 1);
	add(arg, value, strlen(value) + 1);
}

static int on_data(const void *data, size_t len, void *arg, struct err *err)
{
	(void)err;
	assert(len > 0);
	add(arg, data, len);
	return 0;
}

/* Everything that the socket holds comes at once; else a byte a read. */
struct pieces {
	const uint8_t *data;
	size_t left;
	int fd;
};

static int next_byte(short events, void *arg, struct err *err)
{
	struct pieces *p = arg;

	(void)events, (void)err;
	if (p->left) {
		assert(send(p->fd, p->data, 1, MSG_NOSIGNAL) == 1);
		p->data++;
		p->left--;
	} else if (p->fd >= 0) {
		fd_close(&p->fd);
	}
	return 0;
}

static struct heard hear(const uint8_t *data, size_t size, bool whole)
{
	static struct http1 h;
	struct heard s = {0};
	struct err err = ERR_INIT;
	struct http1_head head;
	struct pieces p = {.data = data, .left = size};
	int fds[2];

	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	h.fd = fds[0];
	h.bad = ERRID_HTTP_ANSWER;
	h.at = h.len = 0;
	h.wait = whole ? NULL : next_byte;
	h.arg = &p;
	p.fd = fds[1];
	if (whole) {
		assert(size == 0 || send(p.fd, data, size, 0) == (ssize_t)size);
		fd_close(&p.fd);
	}
	s.result = http1_head(&h, &head, on_header, &s, &err);
	if (s.result == 0) {
		s.status = head.status;
		s.result = http1_body(&h, &head, on_data, &s, &err);
	}
	assert(s.result == 0 || err.id == ERRID_HTTP_ANSWER);
	fd_close(&fds[0]);
	if (p.fd >= 0)
		fd_close(&p.fd);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heard whole, pieces;

	if (size > 32768)
		return 0;
	whole = hear(data, size, true);
	pieces = hear(data, size, false);
	assert(whole.result == pieces.result && whole.status == pieces.status);
	assert(whole.sum == pieces.sum && whole.len == pieces.len);
	return 0;
}
