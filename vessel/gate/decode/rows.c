/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * An encoding that was cut into pieces of one length, with something else around each of them: a
 * list's marks, a comment's, numbers, quotes, names. What that is does not matter: of each line the
 * longest run of the alphabet's letters is one of the pieces, and others of that length beside it are, too.
 * lines.c has those whose lines hold nothing but letters.
 */
#include "common/mem.h"
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/text/runs.h"
#include <string.h>

#define PIECE_MIN 8 /* letters: most lines have a shorter word */
#define MANY 3	    /* so many of one length are no chance, whatever is around them */

struct row {
	size_t at, end, next; /* the line, without its end */
	size_t from, to;      /* from its first piece to its last one */
	size_t n;	      /* letters of each; 0: there are none */
	size_t pieces;
	size_t before; /* runs of letters before the first piece */
	bool is_whole; /* there is nothing else in the line */
};

static struct row row_at(const uint8_t in[256], const char *s, size_t len, size_t at)
{
	const char *nl = memchr(s + at, '\n', len - at);
	size_t end = nl ? (size_t)(nl - s) : len;
	size_t first = 0, last = 0, n = 0, pieces = 0, before = 0, runs = 0;

	for (size_t i = at, from; i < end; i++) {
		if (!in[(unsigned char)s[i]])
			continue;
		for (from = i; i < end && in[(unsigned char)s[i]];)
			i++;
		if (i - from > n) {
			n = i - from;
			first = from;
			pieces = 0;
			before = runs;
		}
		if (i - from == n) {
			last = i;
			pieces++;
		}
		runs++;
	}
	return (struct row){.at = at,
			    .end = end,
			    .next = nl ? end + 1 : len,
			    .from = first,
			    .to = last,
			    .n = n,
			    .pieces = pieces,
			    .before = before,
			    .is_whole = pieces == 1 && gate_is_edge(s + at, first - at) &&
					gate_is_edge(s + last, end - last)};
}

/* The run of letters behind `skip` others of s[at, end); false: there is none. */
static bool run_behind(const uint8_t in[256], const char *s, size_t at, size_t end,
		       size_t skip, struct gate_stretch *ret)
{
	for (size_t i = at; i < end; i++) {
		size_t from = i;

		while (i < end && in[(unsigned char)s[i]])
			i++;
		if (i > from && skip-- == 0) {
			*ret = (struct gate_stretch){from, i};
			return true;
		}
	}
	return false;
}

/* The same stands before both, but for digits: numbers of lines and of bytes. */
static bool is_same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < a_len && gate_values16[(unsigned char)a[i]])
			i++;
		while (k < b_len && gate_values16[(unsigned char)b[k]])
			k++;
		if (i == a_len || k == b_len)
			return i == a_len && k == b_len;
		if (a[i++] != b[k++])
			return false;
	}
}

static void put(struct gate_rows *ret, const char *s, size_t n)
{
	if (ret->n + n > ret->room) {
		ret->room = (ret->n + n) * 2;
		ret->letters = xreallocarray(ret->letters, ret->room, 1);
	}
	memcpy(ret->letters + ret->n, s, n);
	ret->n += n;
}

static void put_pieces(const uint8_t in[256], const char *s, const struct row *r,
		       struct gate_rows *ret)
{
	for (size_t i = r->from; i < r->to; i++) {
		size_t from = i;

		while (i < r->to && in[(unsigned char)s[i]])
			i++;
		if (i - from == r->n)
			put(ret, s + from, r->n);
	}
	ret->to = r->to;
}

static bool begins_with(const char *s, size_t len, char sign, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (i == len || s[i] != sign)
			return false;
	return true;
}

/* A sign that each piece begins with is none of it, though it is a letter: `+`, `-`, `//`. The pieces
 * are of `width` letters, but for those behind `whole`. How many signs there were. */
static size_t drop_signs(struct gate_rows *r, size_t width, size_t whole)
{
	char sign = r->letters[0];
	bool is_one = sign == '+' || sign == '-' || sign == '/' || sign == '_';
	size_t n = 0, kept = 0;

	while (is_one && n + 1 < width) {
		for (size_t i = 0; i < whole && is_one; i += width)
			is_one = r->letters[i + n] == sign;
		n += is_one;
	}
	if (n && !begins_with(r->letters + whole, r->n - whole, sign, n))
		r->n = whole;
	for (size_t i = 0; n && i < r->n; i++)
		if (i % width >= n)
			r->letters[kept++] = r->letters[i];
	r->n = n ? kept : r->n;
	return n;
}

/* Rows of pieces as long as those of the first one. */
struct group {
	struct row first, last;
	struct row other; /* the line that ended it; at == len: none did */
	size_t pieces;
	bool is_plain; /* lines that hold nothing else */
	bool is_alike; /* the same stands before each */
	struct gate_stretch tail;
};

/* The piece that is shorter and the last: behind the others of a line, or in the line behind them. */
static bool find_tail(const uint8_t in[256], const char *s, struct group *g)
{
	const struct row *last = &g->last, *r = &g->other;

	if (last->pieces > 1 && run_behind(in, s, last->to, last->end, 0, &g->tail))
		return true;
	return r->n && run_behind(in, s, r->at, r->end, last->before, &g->tail) &&
	       g->tail.end - g->tail.start < last->n &&
	       is_same(s + last->at, last->from - last->at, s + r->at,
		       g->tail.start - r->at);
}

static bool find_group(const uint8_t in[256], const char *s, size_t len, struct group *g)
{
	g->last = g->first;
	g->pieces = g->first.pieces;
	g->is_plain = g->first.is_whole;
	g->is_alike = true;
	g->tail = (struct gate_stretch){0};
	for (size_t next = g->first.next;; next = g->other.next) {
		const struct row *r = &g->other;

		g->other = (struct row){.at = len};
		if (next >= len)
			break;
		g->other = row_at(in, s, len, next);
		if (r->n != g->first.n && r->n != 0)
			break;
		g->is_plain = g->is_plain && r->is_whole;
		if (r->n == 0)
			continue;
		g->is_alike =
			g->is_alike && is_same(s + g->last.at, g->last.from - g->last.at,
					       s + r->at, r->from - r->at);
		g->pieces += r->pieces;
		g->last = *r;
	}
	return (g->pieces >= MANY || g->is_alike) &&
	       (find_tail(in, s, g) || g->pieces > 1);
}

/* False: lines.c has them. */
static bool take_group(const uint8_t in[256], const char *s, size_t len,
		       const struct group *g, struct gate_rows *ret)
{
	size_t whole;

	ret->n = 0;
	ret->from = g->first.from;
	for (struct row r = g->first;; r = row_at(in, s, len, r.next)) {
		put_pieces(in, s, &r, ret);
		if (r.at >= g->last.at)
			break;
	}
	whole = ret->n;
	if (g->tail.end) {
		put(ret, s + g->tail.start, g->tail.end - g->tail.start);
		ret->to = g->tail.end;
	}
	return drop_signs(ret, g->first.n, whole) || !g->is_plain;
}

bool gate_next_rows(const uint8_t in[256], const char *s, size_t len, size_t *at,
		    struct gate_rows *ret)
{
	struct group g = {.other = {.at = len}};
	bool is_one;

	while (*at < len) {
		/* what ended the one before may begin the next */
		if (g.other.at != *at) {
			size_t run = gate_next_run(in, PIECE_MIN, s, len, *at);
			const char *nl = memrchr(s + *at, '\n', run - *at);

			if (run == len)
				break;
			*at = nl ? (size_t)(nl - s) + 1 : *at;
			g.other = row_at(in, s, len, *at);
		}
		g.first = g.other;
		*at = g.first.next;
		g.other = (struct row){.at = len};
		if (g.first.n < PIECE_MIN)
			continue;
		is_one = find_group(in, s, len, &g);
		*at = g.other.at;
		if (is_one && take_group(in, s, len, &g, ret))
			return true;
	}
	return false;
}
