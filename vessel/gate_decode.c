/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/gate_decode.h"
#include "common/mem.h"
#include "vessel/gate_kind.h"
#include "vessel/gate_runs.h"
#include "vessel/gate_valid.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#define BASE64_MIN 12	   /* characters of a run */
#define BASE64_LINE_MIN 40 /* a run goes on over a line's end behind that many */
#define HEX_MIN 16
#define UTF16_MIN 6    /* characters */
#define READABLE_MIN 8 /* bytes in a row, for a run to be taken */
#define OPAQUE_MIN 192 /* bytes decoded of which nothing is known */
#define DEFLATE_STEP 256
/* What a stream may have taken beyond what it gave: the head of a block is below 300 bytes. */
#define DEFLATE_MUTE_MAX 512

static bool reserve(struct gate_decoded *d, size_t more)
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

static void put(struct gate_decoded *d, char c)
{
	if (reserve(d, 1))
		d->data[d->len++] = c;
}

static size_t begin_block(struct gate_decoded *d)
{
	if (d->len) {
		put(d, '\n');
		put(d, '\n');
	}
	return d->len;
}

/* The block is what was put since `out`. */
static void end_block(struct gate_decoded *d, size_t out, size_t src, size_t src_len)
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
	};
}

static bool has_utf16(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < len && n < READABLE_MIN / 2; i += 2)
		n = (s[i] == 0) != (s[i + 1] == 0) ? n + 1 : 0;
	return n >= READABLE_MIN / 2;
}

/* Something can be read in it, or its first bytes are known. */
static bool is_worth(const char *s, size_t len)
{
	static const char gzip[] = "\x1f\x8b\x08", zlib[] = "\x78\x9c";

	return gate_has_readable(s, len, READABLE_MIN) ||
	       (len > 18 && memcmp(s, gzip, 3) == 0) ||
	       (len > 8 && memcmp(s, zlib, 2) == 0) || has_utf16(s, len) ||
	       gate_kind_of(s, len);
}

/* Drops the block again unless it is worth it. */
static bool keep(struct gate_decoded *d, size_t out, size_t src, size_t src_len)
{
	size_t n = d->len - out;

	if (n && !d->too_large && is_worth(d->data + out, n)) {
		end_block(d, out, src, src_len);
		return true;
	}
	d->len = out;
	return false;
}

/* ---- base64 ---------------------------------------------------------------------- */

/* 1 + the value of each character of both alphabets; 0: of none. */
static const uint8_t values64[256] = {
	['A'] = 1,  ['B'] = 2,	['C'] = 3,  ['D'] = 4,	['E'] = 5,  ['F'] = 6,
	['G'] = 7,  ['H'] = 8,	['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12,
	['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18,
	['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
	['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30,
	['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36,
	['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
	['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54,
	['2'] = 55, ['3'] = 56, ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60,
	['8'] = 61, ['9'] = 62, ['+'] = 63, ['-'] = 63, ['/'] = 64, ['_'] = 64,
};

static int value64(char c)
{
	return values64[(unsigned char)c] - 1;
}

/* Words and names of one case decode to nothing: base64 of a text has both, that of a
 * number at least capitals and digits. */
static bool is_mixed(const char *s, size_t len)
{
	bool upper = false, other = false;

	for (size_t i = 0; i < len && !(upper && other); i++) {
		upper |= s[i] >= 'A' && s[i] <= 'Z';
		other |= (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');
	}
	return upper && other;
}

/* The run at s, over line ends: its length; *ret_n characters of the alphabet. */
static size_t run64(const char *s, size_t len, size_t *ret_n)
{
	size_t i = 0, line = 0, n = 0;

	for (;;) {
		size_t skip = 0;

		while (i < len && value64(s[i]) >= 0) {
			i++;
			n++;
			line++;
		}
		while (i + skip < len && skip < 3 && strchr("\r\n", s[i + skip]) &&
		       s[i + skip])
			skip++;
		if (line < BASE64_LINE_MIN || skip == 0 || i + skip >= len ||
		    value64(s[i + skip]) < 0)
			break;
		i += skip;
		line = 0;
	}
	for (unsigned pad = 0; pad < 2 && n >= BASE64_MIN && i < len && s[i] == '=';
	     pad++)
		i++;
	*ret_n = n;
	return i;
}

/* Six bits for each of n characters, without the first `skip`. */
static void put64(struct gate_decoded *d, const uint8_t *six, size_t n, unsigned skip)
{
	char *out;
	size_t i = skip;

	if (!reserve(d, n))
		return;
	out = d->data + d->len;
	for (; i + 4 <= n; i += 4, out += 3) {
		out[0] = (char)(six[i] << 2 | six[i + 1] >> 4);
		out[1] = (char)(six[i + 1] << 4 | six[i + 2] >> 2);
		out[2] = (char)(six[i + 2] << 6 | six[i + 3]);
	}
	if (i + 2 <= n)
		*out++ = (char)(six[i] << 2 | six[i + 1] >> 4);
	if (i + 3 <= n)
		*out++ = (char)(six[i + 1] << 4 | six[i + 2] >> 2);
	d->len = (size_t)(out - d->data);
}

static void note_opaque(struct gate_decoded *d, size_t src, size_t src_len)
{
	if (src_len > d->opaque_len) {
		d->opaque = (uint32_t)src;
		d->opaque_len = (uint32_t)src_len;
	}
}

/* The run s[i, i + run), n characters of the alphabet. six: room for all of them. */
static void take_run64(struct gate_decoded *d, const char *s, size_t i, size_t run,
		       size_t n, uint8_t *six)
{
	bool kept = false;
	size_t k = 0;

	for (size_t at = i; at < i + run; at++)
		if (value64(s[at]) >= 0)
			six[k++] = (uint8_t)value64(s[at]);
	/* It may begin with letters that are none of it. */
	for (unsigned skip = 0; skip < 4 && !kept && !d->too_large; skip++) {
		size_t before = d->len, out = begin_block(d);

		put64(d, six, k, skip);
		kept = keep(d, out, i, run);
		if (!kept)
			d->len = before;
	}
	if (!kept && n / 4 * 3 >= OPAQUE_MIN && distinct_bytes(s + i, run) > 40)
		note_opaque(d, i, run);
}

static void decode_base64(const char *s, size_t len, struct gate_decoded *d)
{
	uint8_t *six = NULL;
	size_t room = 0;

	for (size_t i = gate_next_run(values64, BASE64_MIN, s, len, 0);
	     i < len && !d->too_large;
	     i = gate_next_run(values64, BASE64_MIN, s, len, i)) {
		size_t n = 0, run = run64(s + i, len - i, &n);

		if (!six || n > room) {
			room = n * 2;
			six = xreallocarray(six, room, 1);
		}
		if (is_mixed(s + i, run))
			take_run64(d, s, i, run, n, six);
		i += run;
	}
	free(six);
}

/* ---- hex ------------------------------------------------------------------------- */

static const uint8_t values16[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static int value16(char c)
{
	return values16[(unsigned char)c] - 1;
}

static bool pair_at(const char *s, size_t len, size_t i)
{
	return i + 1 < len && value16(s[i]) >= 0 && value16(s[i + 1]) >= 0;
}

/* Pairs from s on, each two with `between` between them (0: nothing). */
static size_t pairs(const char *s, size_t len, char between, size_t *ret_run)
{
	size_t i = 0, n = 0;

	while (pair_at(s, len, i)) {
		n++;
		i += 2;
		if (!between)
			continue;
		if (i >= len || s[i] != between || !pair_at(s, len, i + 1))
			break;
		i++;
	}
	*ret_run = i;
	return n;
}

static void put_pairs(struct gate_decoded *d, const char *s, size_t n, size_t stride)
{
	if (!reserve(d, n))
		return;
	for (size_t i = 0; i < n; i++, s += stride)
		d->data[d->len++] = (char)(value16(s[0]) << 4 | value16(s[1]));
}

static void take_pairs(struct gate_decoded *d, const char *s, size_t at, size_t n,
		       size_t stride, size_t run)
{
	size_t before = d->len, out = begin_block(d);

	put_pairs(d, s + at, n, stride);
	if (!keep(d, out, at, run))
		d->len = before;
}

static void decode_joined_hex(const char *s, size_t len, struct gate_decoded *d)
{
	size_t run = 0;

	for (size_t i = gate_next_run(values16, HEX_MIN, s, len, 0);
	     i < len && !d->too_large;
	     i = gate_next_run(values16, HEX_MIN, s, len, i + run)) {
		size_t n = pairs(s + i, len - i, 0, &run);

		take_pairs(d, s, i, n, 2, run);
		run += run < len - i && value16(s[i + run]) >= 0;
	}
}

/* A blank or a colon at q, pairs on both sides of it, and the like after the second.
 * q: 2 bytes of s before it, 3 behind. It is seldom so: one branch for all of it. */
static bool is_between_pairs(const char *s, size_t q)
{
	const uint8_t *u = (const uint8_t *)s + q;

	return ((u[0] == ' ') | (u[0] == ':')) & (u[3] == u[0]) & (values16[u[1]] != 0) &
	       (values16[u[2]] != 0) & (values16[u[-1]] != 0) & (values16[u[-2]] != 0);
}

/* The pairs around s[q], from `done` on; where they end. */
static size_t take_spaced(struct gate_decoded *d, const char *s, size_t len, size_t q,
			  size_t done)
{
	size_t at = q - 2, run = 0, n;

	while (at >= done + 3 && s[at - 1] == s[q] && pair_at(s, len, at - 3))
		at -= 3;
	/* the end of a longer number is no pair */
	if (at > done && value16(s[at - 1]) >= 0)
		at += 3;
	n = pairs(s + at, len - at, s[q], &run);
	if (n >= HEX_MIN / 2)
		take_pairs(d, s, at, n, 3, run);
	return at + run;
}

/* Pairs apart from each other: of three places in a row one is between two of them. */
static void decode_spaced_hex(const char *s, size_t len, struct gate_decoded *d)
{
	const size_t stride = 3 * (HEX_MIN / 2 - 2) - 3;
	size_t done = 0, i = 2;

	while (i + 6 <= len && !d->too_large) {
		size_t q = i;

		while (q < i + 3 && !is_between_pairs(s, q))
			q++;
		if (q < i + 3) {
			done = take_spaced(d, s, len, q, done);
			i = done + 2 > i + 3 ? done + 2 : i + 3;
		} else {
			i += stride;
		}
	}
}

static void decode_hex(const char *s, size_t len, struct gate_decoded *d)
{
	decode_joined_hex(s, len, d);
	decode_spaced_hex(s, len, d);
}

/* ---- gzip, zlib ------------------------------------------------------------------ */

/* One call of inflate() into d; the state after it. */
static int inflate_some(z_stream *z, struct gate_decoded *d)
{
	size_t room = d->max - d->len < 65536 ? d->max - d->len : 65536;
	int r;

	if (room == 0)
		d->too_large = true;
	if (room == 0 || !reserve(d, room))
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
		       size_t *ret_used)
{
	z_stream z = {.avail_out = 1};
	size_t out = begin_block(d), fed = 0;
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
	(void)inflateEnd(&z);
	return d->too_large || d->len - out >= (r == Z_STREAM_END ? 4 : 16);
}

static void decode_deflate(const char *s, size_t len, struct gate_decoded *d)
{
	/* The second byte of each head is one that text seldom has. */
	static const struct gate_stops second = {.one = {1, 0x8b, 0x9c, 0xda},
						 .above = UINT8_MAX};

	for (size_t i = 0; i + 8 < len && !d->too_large; i++) {
		const unsigned char *u;
		size_t before = d->len, out, used = 0;

		i = gate_next_stop(&second, s, len, i + 1) - 1;
		u = (const unsigned char *)s + i;
		if (i + 8 >= len)
			break;
		if (!(u[0] == 0x1f && u[1] == 0x8b && u[2] == 8) &&
		    !(u[0] == 0x78 && (u[1] == 1 || u[1] == 0x9c || u[1] == 0xda)))
			continue;
		out = before ? before + 2 : 0;
		if (!inflate_at(s + i, len - i, d, &used)) {
			d->len = before;
			if (used >= GATE_STRANGE_MIN) /* else no finding anyway */
				end_block(d, before, i, used);
			continue;
		}
		end_block(d, out, i, used);
		i += used ? used - 1 : 0;
	}
}

/* ---- UTF-16 ---------------------------------------------------------------------- */

static bool is_wide(const char *s, size_t low)
{
	unsigned char c = (unsigned char)s[low];

	return s[1 - low] == 0 && (c >= 0x20 || c == '\n' || c == '\t' || c == '\r') &&
	       c < 0x7f;
}

static void decode_utf16(const char *s, size_t len, struct gate_decoded *d)
{
	/* Without a NUL there is none. */
	const char *zero = memchr(s, 0, len);

	for (size_t i = zero && zero > s ? (size_t)(zero - s) - 1 : 0;
	     zero && i + 1 < len && !d->too_large;) {
		size_t low = is_wide(s + i, 0) ? 0 : 1, n = 0, out;

		while (i + 2 * n + 1 < len && is_wide(s + i + 2 * n, low))
			n++;
		if (n < UTF16_MIN) {
			i++;
			continue;
		}
		out = begin_block(d);
		for (size_t k = 0; k < n; k++)
			put(d, s[i + 2 * k + low]);
		end_block(d, out, i, 2 * n);
		i += 2 * n;
	}
}

void gate_decode(enum gate_encoding e, const char *s, size_t len, size_t max,
		 struct gate_decoded *ret)
{
	static void (*const decoders[GATE_ENCODING_MAX_])(const char *, size_t,
							  struct gate_decoded *) = {
		[GATE_BASE64] = decode_base64,
		[GATE_HEX] = decode_hex,
		[GATE_DEFLATE] = decode_deflate,
		[GATE_UTF16] = decode_utf16,
	};

	*ret = (struct gate_decoded){.max = max};
	decoders[e](s, len, ret);
}

void gate_decoded_done(struct gate_decoded *d)
{
	free(d->data);
	free(d->block);
	*d = (struct gate_decoded){0};
}
