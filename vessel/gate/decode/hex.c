/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Decoder of hexadecimal digits, with or without something between the pairs.
 */
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/text/runs.h"
#include "vessel/gate/valid/valid.h"
#include <stdlib.h>

#define HEX_MIN 16

const uint8_t gate_values16[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static int value16(char c)
{
	return gate_values16[(unsigned char)c] - 1;
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
	if (!decoded_reserve(d, n))
		return;
	for (size_t i = 0; i < n; i++, s += stride)
		d->data[d->len++] = (char)(value16(s[0]) << 4 | value16(s[1]));
}

/* What was put since `out` and came from s[src, src + src_len); opaque from that many bytes on. */
static bool keep_pairs(struct gate_decoded *d, size_t out, size_t src, size_t src_len,
		       size_t opaque_min)
{
	const char *s = d->data + out;
	size_t n = d->len - out;
	bool is_opaque = n >= opaque_min && distinct_bytes(s, n) > GATE_OPAQUE_DISTINCT;

	if (decoded_keep(d, out, src, src_len))
		return true;
	if (is_opaque)
		decoded_note_opaque(d, src, src_len);
	return false;
}

static void take_pairs(struct gate_decoded *d, const char *s, size_t at, size_t n,
		       size_t stride, size_t run)
{
	size_t before = d->len, out = decoded_begin(d);

	put_pairs(d, s + at, n, stride);
	if (!keep_pairs(d, out, at, run, GATE_OPAQUE16_MIN))
		d->len = before;
}

static void decode_joined_hex(const char *s, size_t len, struct gate_decoded *d)
{
	size_t run = 0;

	for (size_t i = gate_next_run(gate_values16, HEX_MIN, s, len, 0);
	     i < len && !d->too_large;
	     i = gate_next_run(gate_values16, HEX_MIN, s, len, i + run)) {
		size_t n = pairs(s + i, len - i, 0, &run);

		take_pairs(d, s, i, n, 2, run);
		run += run < len - i && value16(s[i + run]) >= 0;
	}
}

/* A blank or a colon at q, pairs on both sides of it, and the like after the second.
 * q: 2 bytes of s before it, 3 behind. Seldom are there two of them three bytes apart, and seldom pairs around. */
static bool is_between_pairs(const char *s, size_t q)
{
	const uint8_t *u = (const uint8_t *)s + q;

	return (((u[0] == ' ') | (u[0] == ':')) & (u[3] == u[0])) &&
	       ((gate_values16[u[1]] != 0) & (gate_values16[u[2]] != 0) &
		(gate_values16[u[-1]] != 0) & (gate_values16[u[-2]] != 0));
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

/* The digits of w, in lines of `width`, without the first `skip`. What is loose is no finding for
 * what it holds: what is whole in it is read by itself, too. */
static void take_digits(struct gate_decoded *d, const char *s,
			const struct gate_lines_way *w, size_t width, size_t skip)
{
	size_t before = d->len, out = decoded_begin(d), k = 0;
	/* Lines of forty digits are commits, by the dozen. */
	size_t opaque_min = w->is_loose		   ? SIZE_MAX
			    : width >= GATE_WIDE16 ? GATE_OPAQUE_WIDE_MIN
						   : GATE_OPAQUE16_MIN;
	int high = 0;

	if (w->n < HEX_MIN || !decoded_reserve(d, w->n / 2))
		return;
	for (size_t i = w->from; i < w->to; i++) {
		int v = value16(s[i]);

		if (v < 0)
			continue;
		if (skip) {
			skip--;
			continue;
		}
		if (k++ % 2)
			d->data[d->len++] = (char)(high << 4 | v);
		high = v;
	}
	if (keep_pairs(d, out, w->from, w->to - w->from, opaque_min))
		d->block[d->n - 1].is_loose = w->is_loose;
	else
		d->len = before;
}

/* Digits over lines' ends, as xxd -p and od write them. */
static void decode_hex_lines(const char *s, size_t len, struct gate_decoded *d)
{
	struct gate_lines l;
	size_t at = 0;

	while (!d->too_large && gate_next_lines(gate_values16, " :", s, len, &at, &l))
		for (unsigned i = 0; i < l.n_ways && !d->too_large; i++) {
			take_digits(d, s, &l.way[i], l.width, 0);
			if (l.way[i].skip)
				take_digits(d, s, &l.way[i], l.width, l.way[i].skip);
		}
}

/* Pieces with anything around them. */
static void decode_hex_rows(const char *s, size_t len, struct gate_decoded *d)
{
	struct gate_rows r = {0};
	size_t at = 0;

	while (!d->too_large && gate_next_rows(gate_values16, s, len, &at, &r)) {
		size_t before = d->len, out = decoded_begin(d);

		put_pairs(d, r.letters, r.n / 2, 2);
		if (r.n >= HEX_MIN && decoded_keep(d, out, r.from, r.to - r.from))
			d->block[d->n - 1].is_loose = true;
		else
			d->len = before;
	}
	free(r.letters);
}

void gate_decode_hex(const char *s, size_t len, struct gate_decoded *d)
{
	decode_joined_hex(s, len, d);
	decode_spaced_hex(s, len, d);
	gate_decode_listed_hex(s, len, d);
	decode_hex_lines(s, len, d);
	decode_hex_rows(s, len, d);
}
