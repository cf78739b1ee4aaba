/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Decoder of base64 and base64url, in one line or many.
 */
#include "common/mem.h"
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/decode/kind.h"
#include "vessel/gate/text/runs.h"
#include "vessel/gate/valid/valid.h"
#include <string.h>

#define BASE64_MIN 12	   /* characters of a run */
#define BASE64_LINE_MIN 40 /* a run goes on over a line's end behind that many */
#define ROWS_MIN 16	   /* of pieces with something else around them */
#define KIND_BYTES 18	   /* by which gate_kind_of() knows most of them */

const uint8_t gate_values64[256] = {
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
	return gate_values64[(unsigned char)c] - 1;
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

/* A file of a known kind begins at s: its letters are no part of what came before. */
static bool begins_kind(const char *s, size_t len)
{
	char out[KIND_BYTES];
	unsigned bits = 0, have = 0;
	size_t n = 0;

	for (size_t i = 0; i < len && n < sizeof(out); i++) {
		int v = value64(s[i]);

		if (v < 0)
			break;
		bits = (bits << 6 | (unsigned)v) & 0xffffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (char)(bits >> have);
		}
	}
	return gate_kind_of(out, n) != NULL;
}

/* The line that ends a key or a certificate is of the alphabet, too, up to its blank. */
static bool is_pem(const char *s, size_t len)
{
	return len >= 5 && memcmp(s, "-----", 5) == 0;
}

/* Line ends at s: how many bytes. */
static size_t line_end(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && n < 3 && (s[n] == '\r' || s[n] == '\n'))
		n++;
	return n;
}

/* The run at s, over line ends: its length; *ret_n characters of the alphabet. */
static size_t run64(const char *s, size_t len, size_t *ret_n)
{
	size_t i = 0, line = 0, n = 0;

	for (;;) {
		size_t skip;

		while (i < len && value64(s[i]) >= 0) {
			i++;
			n++;
			line++;
		}
		skip = line_end(s + i, len - i);
		if (line < BASE64_LINE_MIN || skip == 0 || i + skip >= len ||
		    value64(s[i + skip]) < 0 || is_pem(s + i + skip, len - i - skip) ||
		    begins_kind(s + i + skip, len - i - skip))
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

	if (!decoded_reserve(d, n))
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

struct taker {
	const char *s;
	size_t len;
	struct gate_decoded *d;
	uint8_t *six; /* the values of a run */
	size_t room;
};

/* The values of the letters of s, n or less, into t->six; how many. */
static size_t read64(struct taker *t, const char *s, size_t len, size_t n)
{
	size_t k = 0;

	if (!t->six || n > t->room) {
		t->room = n * 2;
		t->six = xreallocarray(t->six, t->room, 1);
	}
	for (size_t i = 0; i < len; i++)
		if (value64(s[i]) >= 0)
			t->six[k++] = (uint8_t)value64(s[i]);
	return k;
}

/* The k values in t->six, which came from [at, at + run). is_loose: what is whole in it is read by itself,
 * too. */
static bool take_six(struct taker *t, size_t at, size_t run, size_t k, bool is_loose)
{
	struct gate_decoded *d = t->d;
	bool kept = false;

	/* It may begin with letters that are none of it. */
	for (unsigned skip = 0; skip < 4 && !kept && !d->too_large; skip++) {
		size_t before = d->len, out = decoded_begin(d);

		put64(d, t->six, k, skip);
		kept = decoded_keep(d, out, at, run);
		if (!kept)
			d->len = before;
		else
			d->block[d->n - 1].is_loose = is_loose;
	}
	return kept;
}

/* The run [at, at + run), n characters of the alphabet and what lies between them. */
static void take(struct taker *t, size_t at, size_t run, size_t n, bool is_loose)
{
	struct gate_decoded *d = t->d;
	size_t k = read64(t, t->s + at, run, n);
	bool kept = take_six(t, at, run, k, is_loose);

	if (!kept && !is_loose && n / 4 * 3 >= GATE_OPAQUE64_MIN &&
	    distinct_bytes(t->s + at, run) > 40)
		decoded_note_opaque(d, at, run);
}

/* From the line at `at` on those of one length, and the shorter one that may be their end. */
static void take_lines_from(struct taker *t, size_t at, size_t end)
{
	size_t n = 0, width = 0, line, i = at;

	do {
		line = gate_run_end(gate_values64, t->s, end, i) - i;
		width = width ? width : line;
		n += line;
		i += line;
		if (line < width || i == end)
			break;
		line = line_end(t->s + i, end - i);
		i += line;
	} while (line && gate_run_end(gate_values64, t->s, end, i) - i <= width);
	if (n >= BASE64_MIN)
		take(t, at, i - at, n, false);
}

/*
 * A text of its own may begin, or end, at each line. What came before need not be a whole number
 * of groups of four: so each of the four ways to count is tried once, from the first line on where
 * it counts anew. And it must not be glued to what stands before or behind: so where a line has
 * another length than the one before, the lines up to there and those from there on are taken by
 * themselves, too.
 */
static void take_at_lines(struct taker *t, size_t at, size_t run, size_t n)
{
	bool tried[4] = {true};
	size_t k = 0, before = 0, from = at, from_k = 0, end = at + run;

	for (size_t i = at; i < end;) {
		size_t line = gate_run_end(gate_values64, t->s, end, i) - i;

		if (before && line != before) {
			if (k - from_k >= BASE64_MIN)
				take(t, from, i - from, k - from_k, false);
			take_lines_from(t, i, end);
			from = i;
			from_k = k;
		}
		if (before && !tried[k % 4] && n - k >= BASE64_MIN) {
			tried[k % 4] = true;
			take(t, i, end - i, n - k, false);
		}
		k += line;
		before = line;
		i += line;
		while (i < end && value64(t->s[i]) < 0)
			i++;
	}
}

static void take_runs(struct taker *t)
{
	const char *s = t->s;

	for (size_t i = gate_next_run(gate_values64, BASE64_MIN, s, t->len, 0);
	     i < t->len && !t->d->too_large;
	     i = gate_next_run(gate_values64, BASE64_MIN, s, t->len, i)) {
		size_t n = 0, run = run64(s + i, t->len - i, &n);

		if (is_mixed(s + i, run)) {
			take(t, i, run, n, false);
			take_at_lines(t, i, run, n);
		}
		i += run;
	}
}

/* Lines that are short, or that something stands before: no run goes on over their ends. */
static void take_lines(struct taker *t)
{
	struct gate_lines l;
	size_t at = 0;

	while (gate_next_lines(gate_values64, "", t->s, t->len, &at, &l)) {
		if (l.width >= BASE64_LINE_MIN && l.is_plain && !l.is_cut)
			continue;
		for (unsigned i = 0; i < l.n_ways && !t->d->too_large; i++) {
			const struct gate_lines_way *w = &l.way[i];

			if (w->n >= BASE64_MIN &&
			    is_mixed(t->s + w->from, w->to - w->from))
				take(t, w->from, w->to - w->from, w->n, w->is_loose);
		}
	}
}

/* Pieces with anything around them. */
static void take_rows(struct taker *t)
{
	struct gate_rows r = {0};
	size_t at = 0;

	while (!t->d->too_large && gate_next_rows(gate_values64, t->s, t->len, &at, &r))
		if (r.n >= ROWS_MIN && is_mixed(r.letters, r.n))
			(void)take_six(t, r.from, r.to - r.from,
				       read64(t, r.letters, r.n, r.n), true);
	free(r.letters);
}

void gate_decode_base64(const char *s, size_t len, struct gate_decoded *d)
{
	struct taker t = {.s = s, .len = len, .d = d};

	take_runs(&t);
	take_lines(&t);
	take_rows(&t);
	free(t.six);
}
