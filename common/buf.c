/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See buf.h.
 */
#include "common/buf.h"
#include "common/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){.max = max_bytes};
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

/* Room for extra more bytes and a NUL. */
static bool reserve(struct buf *b, size_t extra)
{
	size_t need, cap;

	if (b->failed)
		return false;
	if (__builtin_add_overflow(b->len, extra, &need) || need > b->max) {
		b->failed = true;
		return false;
	}
	if (need + 1 <= b->cap)
		return true;
	cap = b->cap ? b->cap : 64;
	while (cap < need + 1)
		cap += cap / 2 + 64;
	if (cap > b->max + 1)
		cap = b->max + 1;
	b->data = xreallocarray(b->data, cap, 1);
	b->cap = cap;
	return true;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	buf_add(b, text, (size_t)n);
	free(text);
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b, size_t *ret_len)
{
	char *data;

	if (b->failed)
		return NULL;
	(void)reserve(b, 0);
	data = b->data;
	data[b->len] = '\0';
	if (ret_len)
		*ret_len = b->len;
	*b = (struct buf){.max = b->max};
	return data;
}
