/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Encodings over short, indented, commented and quoted lines, as one text.
 */
#include "vessel/gate/decode/decode_priv.h"
#include <string.h>

#define WIDTH_MIN 4 /* letters of a line */

struct line {
	size_t from, to; /* its letters, without what stands before and behind them */
	size_t next;	 /* where the next line begins */
	size_t n;	 /* letters; 0: something else is in it */
};

/* What indents, quotes or comments a line out; in a list of strings what follows one. */
static bool is_edge(char c)
{
	return c && strchr(" \t\r>#*|\"'`,;]}", c);
}

/* The end of the letters that begin at `at`; *ret_n: how many. */
static size_t letters(const uint8_t in[256], const char *between, const char *s,
		      size_t end, size_t at, size_t *ret_n)
{
	size_t last = at;

	for (; at < end; at++) {
		if (in[(unsigned char)s[at]]) {
			++*ret_n;
			last = at + 1;
		} else if (!s[at] || !strchr(between, s[at])) {
			break;
		}
	}
	return last;
}

static struct line line_at(const uint8_t in[256], const char *between, const char *s,
			   size_t len, size_t at)
{
	const char *nl = memchr(s + at, '\n', len - at);
	size_t end = nl ? (size_t)(nl - s) : len, rest;
	struct line l = {.next = nl ? end + 1 : len};

	while (at < end && is_edge(s[at]))
		at++;
	l.from = at;
	l.to = rest = letters(in, between, s, end, at, &l.n);
	while (rest < end && (is_edge(s[rest]) || s[rest] == '='))
		rest++;
	if (rest < end)
		l.n = 0;
	return l;
}

/* The first one of a JSON string begins behind its key. */
static struct line first_line_at(const uint8_t in[256], const char *between,
				 const char *s, size_t len, size_t at)
{
	struct line l = line_at(in, between, s, len, at);
	size_t end = l.next - (l.next > at && s[l.next - 1] == '\n');
	const char *quote;

	if (l.n || end <= at || !in[(unsigned char)s[end - 1]])
		return l;
	quote = memrchr(s + at, '"', end - at);
	return quote ? line_at(in, between, s, len, (size_t)(quote + 1 - s)) : l;
}

/* Nothing but one line's end lies between the two. */
static bool is_plain(const char *s, const struct line *a, const struct line *b)
{
	return b->from - a->to == 1 || (b->from - a->to == 2 && s[a->to] == '\r');
}

bool gate_next_lines(const uint8_t in[256], const char *between, const char *s,
		     size_t len, size_t *at, struct gate_lines *ret)
{
	while (*at < len) {
		struct line first = first_line_at(in, between, s, len, *at), last = first;
		unsigned lines = 1;

		*at = first.next;
		*ret = (struct gate_lines){.from = first.from,
					   .n = first.n,
					   .width = first.n,
					   .is_plain = true,
					   .whole_to = first.to,
					   .whole_n = first.n};
		while (first.n >= WIDTH_MIN && last.n == first.n && *at < len) {
			struct line l = line_at(in, between, s, len, *at);

			if (l.n == 0 || l.n > first.n)
				break;
			ret->is_plain = ret->is_plain && is_plain(s, &last, &l);
			ret->n += l.n;
			last = l;
			lines++;
			/* a shorter one is the last one, or the first one of others */
			if (l.n == first.n) {
				*at = l.next;
				ret->whole_to = l.to;
				ret->whole_n = ret->n;
			}
		}
		ret->to = last.to;
		if (lines > 1)
			return true;
	}
	return false;
}
