/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See wire.h.
 */
#include "common/proto/wire.h"

#include <assert.h>
#include <string.h>

const char *wire_bytes(struct wire *w, size_t n)
{
	const char *at = w->at;

	if (w->failed || n > w->left) {
		w->failed = true;
		return NULL;
	}
	w->at += n;
	w->left -= n;
	return at;
}

bool wire_take(struct wire *w, void *out, size_t n)
{
	const char *at = wire_bytes(w, n);

	if (at && n > 0)
		memcpy(out, at, n);
	return !w->failed;
}

uint64_t wire_uint(struct wire *w, unsigned bytes)
{
	const char *at = wire_bytes(w, bytes);
	uint64_t v = 0;

	assert(bytes <= sizeof(v));
	for (unsigned i = bytes; at && i > 0; i--)
		v = v << 8 | (unsigned char)at[i - 1];
	return v;
}

uint64_t wire_uint_be(struct wire *w, unsigned bytes)
{
	const char *at = wire_bytes(w, bytes);
	uint64_t v = 0;

	assert(bytes <= sizeof(v));
	for (unsigned i = 0; at && i < bytes; i++)
		v = v << 8 | (unsigned char)at[i];
	return v;
}

const char *wire_sized(struct wire *w, unsigned len_bytes, size_t max, size_t *ret_len)
{
	uint64_t len = wire_uint(w, len_bytes);
	const char *at = NULL;

	if (len > max)
		w->failed = true;
	else
		at = wire_bytes(w, (size_t)len);
	*ret_len = w->failed ? 0 : (size_t)len;
	return at ? at : "";
}

const char *wire_string(struct wire *w, unsigned len_bytes, size_t max, char **at)
{
	size_t len;
	const char *from = wire_sized(w, len_bytes, max, &len);
	char *s = *at;

	if (w->failed || memchr(from, '\0', len)) {
		w->failed = true;
		return "";
	}
	memcpy(s, from, len);
	s[len] = '\0';
	*at += len + 1;
	return s;
}

bool wire_is_done(const struct wire *w)
{
	return !w->failed && w->left == 0;
}

void wire_put_uint(struct buf *out, uint64_t v, unsigned bytes)
{
	unsigned char le[sizeof(v)];

	assert(bytes <= sizeof(v));
	for (unsigned i = 0; i < bytes; i++, v >>= 8)
		le[i] = (unsigned char)v;
	if (v != 0)
		out->failed = true;
	else
		buf_add(out, le, bytes);
}

void wire_put_sized(struct buf *out, unsigned len_bytes, const void *data, size_t len)
{
	wire_put_uint(out, len, len_bytes);
	buf_add(out, data, len);
}
