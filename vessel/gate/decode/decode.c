/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See decode.h.
 */
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/decode/kind.h"
#include "vessel/gate/decode/public.h"
#include "vessel/gate/text/fold.h"
#include "vessel/gate/text/runs.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#define UTF16_MIN 4    /* characters */
#define READABLE_MIN 8 /* bytes in a row, for a run to be taken */
#define UTF16_SEEN 8   /* the same: four characters */
#define DEFLATE_STEP 256
#define TEXT_MIN                                                                         \
	12 /* what begins with `x^` may be a formula: a stream that is cut begins with so much text */
/* Flags of gzip's header. */
#define GZIP_EXTRA 4u
#define GZIP_NAME 8u
#define GZIP_COMMENT 16u
#define GZIP_EXTRA_MAX 8
/* What a stream may have taken beyond what it gave: the head of a block is below 300 bytes. */
#define DEFLATE_MUTE_MAX 512

bool decoded_reserve(struct gate_decoded *d, size_t more)
{
	if (more > d->max || d->len > d->max - more) {
		d->too_large = true;
		return false;
	}
	if (d->len + more > d->cap) {
		d->cap = (d->len + more) * 2;
		d->data = xreallocarray(d->data, d->cap, 1);
	}
	return true;
}

static void decoded_put(struct gate_decoded *d, char c)
{
	if (decoded_reserve(d, 1))
		d->data[d->len++] = c;
}

size_t decoded_begin(struct gate_decoded *d)
{
	if (d->len) {
		decoded_put(d, '\n');
		decoded_put(d, '\n');
	}
	return d->len;
}

void decoded_end(struct gate_decoded *d, size_t out, size_t src, size_t src_len)
{
	if (d->n == d->n_cap) {
		d->n_cap = d->n_cap ? d->n_cap * 2 : 16;
		d->block = xreallocarray(d->block, d->n_cap, sizeof(*d->block));
	}
	d->block[d->n++] = (struct gate_block){
		.out = (uint32_t)out,
		.out_len = (uint32_t)(d->len - out),
		.src = (uint32_t)src,
		.src_len = (uint32_t)src_len,
		.is_public = gate_is_public(d->data + out, d->len - out),
	};
}

/* The high byte of a letter or sign of UTF-16. */
static const uint8_t is_high[256] = {[0 ... 5] = 1, [0x1e] = 1, [0x20] = 1};

/*
 * The character of Latin, Greek or Cyrillic letters, or of their signs, whose low byte is s[low]; 0: none. Of other
 * scripts every second pair of bytes would be one.
 */
static uint32_t wide_at(const char *s, size_t low)
{
	uint32_t c = (unsigned char)s[low] | (uint32_t)(unsigned char)s[1 - low] << 8;
	bool is_sign =
		c == '\n' || c == '\t' || c == '\r' || (c >= 0x2010 && c <= 0x2027);
	bool is_letter = (c >= 0x20 && c < 0x7f) || (c >= 0xa0 && c < 0x250) ||
			 (c >= 0x370 && c < 0x530) || (c >= 0x1e00 && c < 0x1f00);

	return is_sign || is_letter ? c : 0;
}

static size_t wide_run(const char *s, size_t len, size_t low)
{
	size_t n = 0;

	while (2 * n + 1 < len && wide_at(s + 2 * n, low))
		n++;
	return n;
}

/* The first two of a run have what may be a high byte, each at the same place. */
static bool may_be_wide(const char *s, size_t len)
{
	const uint8_t *u = (const uint8_t *)s;

	return len >= 4 &&
	       ((is_high[u[0]] & is_high[u[2]]) | (is_high[u[1]] & is_high[u[3]]));
}

/* Four characters at s, of either order; or a zero in each two bytes, and none beside it. */
static bool is_wide(const char *s)
{
	size_t zeros = 0;

	for (size_t i = 0; i < UTF16_SEEN; i += 2)
		zeros += (s[i] == 0) != (s[i + 1] == 0);
	return 2 * zeros == UTF16_SEEN || 2 * wide_run(s, UTF16_SEEN, 0) == UTF16_SEEN ||
	       2 * wide_run(s, UTF16_SEEN, 1) == UTF16_SEEN;
}

/* As of UTF-16 of either order: four characters in a row. Each of them has a byte that is the high one
 * of a letter or sign, and few bytes of others are: only where four pairs in a row have one is it
 * looked at. */
static bool gate_has_utf16(const char *s, size_t len)
{
	unsigned high = 0; /* a bit for each of the last eight bytes */

	for (size_t i = 0; i < len; i++) {
		high = (high << 1 | is_high[(unsigned char)s[i]]) & 0xff;
		if (((high | high >> 1) & 0x55) == 0x55 && i + 1 >= UTF16_SEEN &&
		    is_wide(s + i + 1 - UTF16_SEEN))
			return true;
	}
	return false;
}

/* Of gzip the third byte is known, too. */
static bool begins_packed(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	return gate_begins_packed(u[0], u[1]) && (u[0] != 0x1f || u[2] == 8);
}

/* Something can be read in it, or its first bytes are known. */
static bool is_worth(const char *s, size_t len)
{
	return gate_has_readable(s, len, READABLE_MIN) || (len > 8 && begins_packed(s)) ||
	       gate_has_utf16(s, len) || gate_kind_of(s, len);
}

bool decoded_keep(struct gate_decoded *d, size_t out, size_t src, size_t src_len)
{
	size_t n = d->len - out;

	if (n && !d->too_large && is_worth(d->data + out, n)) {
		decoded_end(d, out, src, src_len);
		return true;
	}
	d->len = out;
	return false;
}

void decoded_note_opaque(struct gate_decoded *d, size_t src, size_t src_len)
{
	if (d->n_opaque == GATE_OPAQUE_RUNS_MAX)
		return;
	if (!d->opaque)
		d->opaque = xcalloc(GATE_OPAQUE_RUNS_MAX, sizeof(*d->opaque));
	d->opaque[d->n_opaque++] = (struct gate_stretch){src, src + src_len};
}

/* ---- gzip, zlib ------------------------------------------------------------------ */

/* One call of inflate() into d; the state after it. */
static int inflate_some(z_stream *z, struct gate_decoded *d)
{
	size_t room = d->max - d->len < 65536 ? d->max - d->len : 65536;
	int r;

	if (room == 0)
		d->too_large = true;
	if (room == 0 || !decoded_reserve(d, room))
		return Z_MEM_ERROR;
	z->next_out = (Bytef *)d->data + d->len;
	z->avail_out = (uInt)room;
	r = inflate(z, Z_SYNC_FLUSH);
	d->len += room - z->avail_out;
	return r;
}

/*
 * What can be inflated at s, and how much of s that took; false when it is no such stream, or
 * gave too little to be read. A stream that was cut is read as far as it goes.
 *
 * The bytes that it took are no finding by themselves, for they were read. That must not
 * change with what follows them, or a text could be made harmless by adding to it: so it does
 * not depend on how the stream ends, only on whether, step by step, about as much came out as
 * went in.
 */
static bool inflate_at(const char *s, size_t len, struct gate_decoded *d,
		       size_t *ret_used, bool *ret_is_whole)
{
	z_stream z = {.avail_out = 1};
	size_t out = decoded_begin(d), fed = 0;
	int r = Z_OK;

	/* 32: by its header, gzip or zlib */
	if (inflateInit2(&z, 15 + 32) != Z_OK)
		return false;
	while (r == Z_OK || r == Z_BUF_ERROR) {
		if (z.avail_in == 0 && z.avail_out > 0) {
			size_t n = len - fed < DEFLATE_STEP ? len - fed : DEFLATE_STEP;

			if (n == 0 || fed > d->len - out + DEFLATE_MUTE_MAX)
				break;
			z.next_in = (Bytef *)(uintptr_t)(s + fed);
			z.avail_in = (uInt)n;
			fed += n;
		}
		r = inflate_some(&z, d);
	}
	*ret_used = fed - z.avail_in;
	*ret_is_whole = r == Z_STREAM_END;
	(void)inflateEnd(&z);
	return d->too_large || d->len - out >= (r == Z_STREAM_END ? 4 : 16);
}

bool gate_stretches_has(const struct gate_stretches *s, size_t at, size_t *ret_end)
{
	for (size_t i = 0; i < s->n && s->one[i].start <= at; i++)
		if (at < s->one[i].end) {
			*ret_end = s->one[i].end;
			return true;
		}
	return false;
}

/* Up to the NUL; 0: that is no text. */
static size_t text_field(const char *s, size_t len)
{
	const char *end = memchr(s, 0, len);
	size_t n = end ? (size_t)(end - s) : 0;

	return end && utf8_is_valid(s, n) && !str_has_control(s, n) ? n + 1 : 0;
}

/*
 * A header of gzip (RFC 1952) without room for anything else: a name and a comment are text, which is read
 * as it stands there, and an extra field is as short as that of a block (BGZF).
 */
static bool has_plain_head(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t at = 10, n;

	if (len < at || u[0] != 0x1f) /* zlib's is two bytes */
		return true;
	if (u[3] & GZIP_EXTRA) {
		n = len >= at + 2 ? u[at] | (size_t)u[at + 1] << 8 : SIZE_MAX;
		if (n > GZIP_EXTRA_MAX)
			return false;
		at += 2 + n;
	}
	for (unsigned flag = GZIP_NAME; flag <= GZIP_COMMENT; flag <<= 1) {
		if (!(u[3] & flag))
			continue;
		n = at < len ? text_field(s + at, len - at) : 0;
		if (n == 0)
			return false;
		at += n;
	}
	return true;
}

static void end_stream(struct gate_decoded *d, size_t out, const char *s, size_t len,
		       size_t src, size_t src_len)
{
	decoded_end(d, out, src, src_len);
	d->block[d->n - 1].is_strange = !has_plain_head(s + src, len - src);
}

static void decode_deflate(const char *s, size_t len, const struct gate_stretches *unread,
			   struct gate_decoded *d)
{
	/* The second byte of each head is one that text seldom has. */
	static const struct gate_stops second = {
		.one = {1, 0x8b, 0x9c, 0xda}, .above = UINT8_MAX, .from = '^', .n = 1};

	for (size_t i = 0; i + 8 < len && !d->too_large; i++) {
		size_t before = d->len, out, used = 0, end = 0;
		bool is_stream, is_whole = false;

		i = gate_next_stop(&second, s, len, i + 1) - 1;
		if (i + 8 >= len)
			break;
		if (gate_stretches_has(unread, i, &end)) {
			i = end - 1;
			continue;
		}
		if (!begins_packed(s + i))
			continue;
		out = before ? before + 2 : 0;
		is_stream = inflate_at(s + i, len - i, d, &used, &is_whole);
		/* a formula: its letters mean no bytes */
		if (is_stream && s[i + 1] == '^' && !is_whole && !d->too_large &&
		    gate_readable(d->data + out, d->len - out) < TEXT_MIN) {
			d->len = before;
			continue;
		}
		if (!is_stream) {
			d->len = before;
			if (s[i + 1] != '^' &&
			    used >= GATE_STRANGE_MIN) /* else no finding anyway */
				end_stream(d, before, s, len, i, used);
			continue;
		}
		end_stream(d, out, s, len, i, used);
		/* one that was cut took what is behind it, too: another block, perhaps */
		i += is_whole ? used - 1 : 0;
	}
}

/* ---- UTF-16 ---------------------------------------------------------------------- */

static void add_wide(struct gate_decoded *d, const char *s, size_t at, size_t n,
		     size_t low)
{
	size_t out = decoded_begin(d);
	char utf8[4];

	for (size_t k = 0; k < n; k++) {
		size_t bytes = utf8_put(wide_at(s + at + 2 * k, low), utf8);

		for (size_t b = 0; b < bytes; b++)
			decoded_put(d, utf8[b]);
	}
	decoded_end(d, out, at, 2 * n);
}

static void decode_utf16(const char *s, size_t len, struct gate_decoded *d)
{
	/* the high byte of nearly all */
	static const struct gate_stops high = {.one = {0, 1, 3, 4}, .above = UINT8_MAX};
	size_t first = gate_next_stop(&high, s, len, 0);

	for (size_t i = first ? first - 1 : 0; i + 1 < len && !d->too_large;) {
		size_t low, n, other = 0;

		if (!may_be_wide(s + i, len - i)) {
			i++;
			continue;
		}
		low = wide_at(s + i, 0) ? 0 : 1;
		n = wide_run(s + i, len - i, low);
		if (n < UTF16_MIN) {
			i++;
			continue;
		}
		add_wide(d, s, i, n, low);
		/* A byte before a text of the other order reads as its first character, and
		 * its last one is left: which of both is meant nobody knows. */
		if (low == 0)
			other = wide_run(s + i + 1, len - i - 1, 1);
		if (other >= n)
			add_wide(d, s, i + 1, other, 1);
		i += 2 * n + (other >= n);
	}
}

void gate_decode(enum gate_encoding e, const char *s, size_t len,
		 const struct gate_stretches *unread, size_t max,
		 struct gate_decoded *ret)
{
	*ret = (struct gate_decoded){.max = max};
	switch (e) {
	case GATE_BASE64:
		gate_decode_base64(s, len, ret);
		break;
	case GATE_HEX:
		gate_decode_hex(s, len, ret);
		gate_note_one_case(s, len, ret);
		break;
	case GATE_DEFLATE:
		decode_deflate(s, len, unread, ret);
		break;
	case GATE_UTF16:
		decode_utf16(s, len, ret);
		break;
	case GATE_TAGS:
	case GATE_SELECTORS:
		gate_decode_unseen(e, s, len, ret);
		break;
	case GATE_ENCODING_MAX_:
		break;
	}
}

void gate_decoded_done(struct gate_decoded *d)
{
	free(d->data);
	free(d->block);
	free(d->opaque);
	*d = (struct gate_decoded){0};
}
