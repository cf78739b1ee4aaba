/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See inflate.h.
 */
#include "vessel/gate/git/inflate.h"

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#define GZIP_HEAD 4 /* magic, method, flags */
#define GZIP_WINDOW (15 + 16)
#define STEP_BYTES 65536

bool git_is_gzip(const void *data, size_t len)
{
	return len > 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}

static int bad(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_GIT_REQUEST, "gzip: %s", why);
}

/* To the stream's end; Z_OK never. */
static int run(z_stream *z, struct buf *out)
{
	char piece[STEP_BYTES];
	int r = Z_OK;

	while (r == Z_OK && buf_ok(out)) {
		z->next_out = (Bytef *)piece;
		z->avail_out = sizeof(piece);
		r = inflate(z, Z_NO_FLUSH);
		buf_add(out, piece, sizeof(piece) - z->avail_out);
	}
	return r;
}

int git_gunzip(const void *data, size_t len, struct buf *out, struct err *err)
{
	/* a name, a comment or an extra field would be words that nobody reads */
	static const char head[GZIP_HEAD] = {0x1f, (char)0x8b, 8, 0};
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
	int r;

	if (len < GZIP_HEAD || memcmp(data, head, GZIP_HEAD) != 0)
		return bad(err, "its head has more than it must");
	if (len > UINT32_MAX || inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return bad(err, "it cannot be unpacked");
	r = run(&z, out);
	(void)inflateEnd(&z);
	if (!buf_ok(out))
		return bad(err, "it unpacks to more than is taken");
	if (r != Z_STREAM_END)
		return bad(err, "it is broken");
	if (z.avail_in > 0)
		return bad(err, "something stands behind it");
	return 0;
}

int git_plain(const void **data, size_t *len, struct buf *plain, struct err *err)
{
	if (!git_is_gzip(*data, *len))
		return 0;
	buf_init(plain, GIT_REQUEST_MAX_BYTES);
	if (git_gunzip(*data, *len, plain, err) < 0)
		return -1;
	*data = plain->data;
	*len = plain->len;
	return 0;
}

bool git_inflate(const void *data, size_t len, char *out, size_t out_len,
		 size_t *ret_used)
{
	char more; /* room for the byte that must not come */
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data,
		      .avail_in = (uInt)len,
		      .next_out = (Bytef *)out,
		      .avail_out = (uInt)out_len};
	int r;

	if (len > UINT32_MAX || out_len > UINT32_MAX || inflateInit(&z) != Z_OK)
		return false;
	r = inflate(&z, Z_NO_FLUSH);
	if (r == Z_OK && z.avail_out == 0) {
		z.next_out = (Bytef *)&more;
		z.avail_out = 1;
		r = inflate(&z, Z_NO_FLUSH);
	}
	*ret_used = len - z.avail_in;
	(void)inflateEnd(&z);
	return r == Z_STREAM_END && z.total_out == out_len;
}
