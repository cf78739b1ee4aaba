/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Encodings over short, indented, commented and quoted lines, as one text.
 */
#include "vessel/gate/decode/decode_priv.h"
#include <string.h>

#define WIDTH_MIN 4   /* letters of a whole line */
#define LABEL_MAX 8   /* letters of a label */
#define BORDER_MIN 24 /* letters of two lines of which neither is whole */

struct line {
	size_t from,
		to;    /* its first letters, without what stands before and behind them */
	size_t next;   /* where the next line begins */
	size_t n;      /* letters; 0: it begins with something else */
	bool is_whole; /* there is nothing else in it */
};

/* What indents, quotes or comments a line out; in a list of strings what follows one. */
static const bool edges[256] = {
	[' '] = true, ['\t'] = true, ['\r'] = true, ['>'] = true,  ['#'] = true,
	['*'] = true, ['|'] = true,  ['"'] = true,  ['\''] = true, ['`'] = true,
	[','] = true, [';'] = true,  [']'] = true,  ['}'] = true,
};

static bool is_edge(char c)
{
	return edges[(unsigned char)c];
}

bool gate_is_edge(const char *s, size_t len)
{
	while (len && is_edge(s[len - 1]))
		len--;
	return len == 0;
}

static bool is_between(const char *between, char c)
{
	return *between && c && strchr(between, c);
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
		} else if (!is_between(between, s[at])) {
			break;
		}
	}
	return last;
}

static struct line line_at(const uint8_t in[256], const char *between, const char *s,
			   size_t len, size_t at)
{
	const char *nl = memchr(s + at, '\n', len - at);
	size_t end = nl ? (size_t)(nl - s) : len, n = 0, to, rest;

	while (at < end && is_edge(s[at]))
		at++;
	rest = to = letters(in, between, s, end, at, &n);
	while (n && rest < end && (is_edge(s[rest]) || s[rest] == '='))
		rest++;
	return (struct line){.from = at,
			     .to = to,
			     .next = nl ? end + 1 : len,
			     .n = n,
			     .is_whole = n && rest == end};
}

/* The last letters of the line that ends before `at`, whatever stands before them. */
static struct line tail_before(const uint8_t in[256], const char *between, const char *s,
			       size_t at)
{
	struct line l = {.next = at};
	size_t i = at ? at - 1 : 0;

	while (i > 0 && is_edge(s[i - 1]))
		i--;
	l.from = l.to = i;
	for (; i > 0; i--) {
		if (in[(unsigned char)s[i - 1]]) {
			l.n++;
			l.from = i - 1;
		} else if (!is_between(between, s[i - 1])) {
			break;
		}
	}
	for (i = l.from; i > 0 && is_edge(s[i - 1]);)
		i--;
	l.is_whole = l.n && (i == 0 || s[i - 1] == '\n');
	return l;
}

/* What stands before and behind a certificate is none of it, though it is of base64's letters. */
static bool is_pem(const char *s, size_t from, size_t to)
{
	return to - from >= 5 &&
	       (memcmp(s + from, "-----", 5) == 0 || memcmp(s + to - 5, "-----", 5) == 0);
}

/* Nothing but one line's end lies between the two. */
static bool is_plain(const char *s, const struct line *a, const struct line *b)
{
	return b->from - a->to == 1 || (b->from - a->to == 2 && s[a->to] == '\r');
}

static void add_way(struct gate_lines *l, size_t from, size_t to, size_t n, size_t skip,
		    bool is_loose)
{
	l->way[l->n_ways++] = (struct gate_lines_way){
		.from = from, .to = to, .n = n, .is_loose = is_loose, .skip = skip};
}

/* Two lines of which one or both hold something else, too: the first before, the second behind. */
static bool is_border(const struct line *tail, const struct line *l)
{
	return tail->n && l->n && l->n <= 2 * tail->n && l->n + tail->n >= BORDER_MIN &&
	       !(tail->is_whole && l->is_whole);
}

static void take_border(const char *s, const struct line *tail, const struct line *l,
			struct gate_lines *ret)
{
	*ret = (struct gate_lines){.width = tail->n, .is_plain = is_plain(s, tail, l)};
	add_way(ret, tail->from, l->to, tail->n + l->n, tail->n % 2, true);
}

/* Lines of one length from `first` on; *at: where the next ones may begin. */
static void take_lines(const uint8_t in[256], const char *between, const char *s,
		       size_t len, const struct line *first, const struct line *tail,
		       size_t *at, struct gate_lines *ret)
{
	struct line last = *first, head = {0};
	size_t n = first->n, lines = 1, short_n = 0, short_to = 0;

	*ret = (struct gate_lines){.width = first->n, .is_plain = true};
	while (*at < len && short_n == 0 && head.n == 0) {
		struct line l = line_at(in, between, s, len, *at);

		if (l.n == 0 || l.n > first->n ||
		    (!l.is_whole && is_pem(s, l.from, l.to)))
			break;
		ret->is_plain = ret->is_plain && is_plain(s, &last, &l);
		if (!l.is_whole) {
			head = l;
		} else if (l.n < first->n) {
			/* the last one, or the first one of others */
			short_n = l.n;
			short_to = l.to;
		} else {
			n += l.n;
			last = l;
			lines++;
			*at = l.next;
		}
	}
	if (short_n)
		add_way(ret, first->from, short_to, n + short_n, first->n % 2, false);
	if (lines > 1)
		add_way(ret, first->from, last.to, n, first->n % 2, false);
	if (head.n)
		add_way(ret, first->from, head.to, n + head.n, first->n % 2, true);
	if (tail->n == 0)
		return;
	ret->is_plain = ret->is_plain && is_plain(s, tail, first);
	ret->is_cut = tail->n < ret->width;
	add_way(ret, tail->from,
		short_n	 ? short_to
		: head.n ? head.to
			 : last.to,
		tail->n + n + short_n + head.n,
		tail->n > first->n ? tail->n - first->n : tail->n % 2, true);
}

bool gate_next_lines(const uint8_t in[256], const char *between, const char *s,
		     size_t len, size_t *at, struct gate_lines *ret)
{
	while (*at < len) {
		size_t begin = *at;
		struct line first = line_at(in, between, s, len, begin), tail;

		*at = first.next;
		if (first.n == 0)
			continue;
		tail = tail_before(in, between, s, begin);
		if (is_pem(s, tail.from, tail.to))
			tail.n = 0;
		if (!first.is_whole || first.n < WIDTH_MIN) {
			if (!is_border(&tail, &first))
				continue;
			take_border(s, &tail, &first, ret);
			return true;
		}
		/* a longer one that is whole had this one as its last, unless it is longer by a
		 * label of the same letters: "1: " before hex */
		if (tail.is_whole && (tail.n == first.n || tail.n > first.n + LABEL_MAX ||
				      2 * tail.n < first.n))
			tail.n = 0;
		/* the first one of a JSON string begins behind its key */
		if (tail.n == first.n && tail.from > 0 && s[tail.from - 1] == '"') {
			first = tail;
			tail.n = 0;
			*at = begin;
		}
		take_lines(in, between, s, len, &first, &tail, at, ret);
		if (ret->n_ways)
			return true;
	}
	return false;
}
