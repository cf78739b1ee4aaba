/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See diff.h.
 */
#include "cli/ui/diff.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <stdint.h>

#define CONTEXT 3
/* Above this many pairs of lines the middle is shown as replaced whole. */
#define PAIRS_MAX ((size_t)4 << 20)

struct line {
	const char *at;
	size_t len; /* without its newline */
};

struct text {
	struct line *line;
	size_t n;
};

static void text_done(struct text *t)
{
	free(t->line);
}
#define cleanup_text __attribute__((cleanup(text_done)))

/* One step of the way from one text to the other. */
struct step {
	char what; /* ' ', '-', '+' */
	size_t from, to;
};

static struct text split(const char *s)
{
	struct text t = {0};

	while (*s) {
		size_t len = strcspn(s, "\n");

		t.line = xreallocarray(t.line, t.n + 1, sizeof(*t.line));
		t.line[t.n++] = (struct line){s, len};
		s += len + (s[len] == '\n');
	}
	return t;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

/* lcs[i][k]: the longest common subsequence of what is left from line i and line k. */
static uint32_t *lcs_table(const struct line *a, size_t n, const struct line *b, size_t m)
{
	uint32_t *t = xcalloc((n + 1) * (m + 1), sizeof(*t));

	for (size_t i = n; i-- > 0;)
		for (size_t k = m; k-- > 0;) {
			uint32_t down = t[(i + 1) * (m + 1) + k];
			uint32_t right = t[i * (m + 1) + k + 1];

			t[i * (m + 1) + k] = same(&a[i], &b[k])
						     ? t[(i + 1) * (m + 1) + k + 1] + 1
					     : down > right ? down
							    : right;
		}
	return t;
}

/* The steps of the whole; at most a->n + b->n. */
static size_t find_steps(const struct text *a, const struct text *b, struct step *out)
{
	size_t head = 0, tail = 0, n_out = 0, i, k;

	while (head < a->n && head < b->n && same(&a->line[head], &b->line[head]))
		head++;
	while (tail < a->n - head && tail < b->n - head &&
	       same(&a->line[a->n - 1 - tail], &b->line[b->n - 1 - tail]))
		tail++;
	size_t n = a->n - head - tail, m = b->n - head - tail;
	bool small = (n + 1) <= PAIRS_MAX / (m + 1);
	cleanup_free uint32_t *t =
		small ? lcs_table(a->line + head, n, b->line + head, m) : NULL;

	for (i = 0; i < head; i++)
		out[n_out++] = (struct step){' ', i, i};
	for (i = k = 0; i < n || k < m;) {
		if (t && i < n && k < m && same(&a->line[head + i], &b->line[head + k])) {
			out[n_out++] = (struct step){' ', head + i++, head + k++};
		} else if (i < n &&
			   (k == m || !t ||
			    t[(i + 1) * (m + 1) + k] >= t[i * (m + 1) + k + 1])) {
			out[n_out++] = (struct step){'-', head + i++, head + k};
		} else {
			out[n_out++] = (struct step){'+', head + i, head + k++};
		}
	}
	for (i = 0; i < tail; i++)
		out[n_out++] = (struct step){' ', a->n - tail + i, b->n - tail + i};
	return n_out;
}

/* The end of the hunk that begins at a change: further changes at most twice the context
 * away belong to it. */
static size_t hunk_end(const struct step *s, size_t n, size_t first)
{
	size_t last = first;

	for (size_t i = first; i < n && i <= last + 2 * CONTEXT; i++)
		if (s[i].what != ' ')
			last = i;
	return last + CONTEXT + 1 < n ? last + CONTEXT + 1 : n;
}

static void put_hunk(const struct text *a, const struct text *b, const struct step *s,
		     size_t begin, size_t end, struct buf *out)
{
	size_t n_from = 0, n_to = 0;

	for (size_t i = begin; i < end; i++) {
		n_from += s[i].what != '+';
		n_to += s[i].what != '-';
	}
	buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", s[begin].from + (n_from > 0), n_from,
		 s[begin].to + (n_to > 0), n_to);
	for (size_t i = begin; i < end; i++) {
		const struct line *l =
			s[i].what == '+' ? &b->line[s[i].to] : &a->line[s[i].from];

		buf_addc(out, s[i].what);
		buf_add(out, l->at, l->len);
		buf_addc(out, '\n');
	}
}

bool diff_unified(const char *from_name, const char *from, const char *to_name,
		  const char *to, struct buf *out)
{
	cleanup_text struct text a = split(from ? from : "");
	cleanup_text struct text b = split(to ? to : "");
	cleanup_free struct step *s = xcalloc(a.n + b.n + 1, sizeof(*s));
	size_t n;

	if (str_eq(from, to))
		return false;
	n = find_steps(&a, &b, s);
	buf_addf(out, "--- %s\n+++ %s\n", from ? from_name : "/dev/null",
		 to ? to_name : "/dev/null");
	for (size_t i = 0, done = 0; i < n; i++) {
		size_t begin = i > CONTEXT && i - CONTEXT > done ? i - CONTEXT : done;

		if (s[i].what == ' ')
			continue;
		done = hunk_end(s, n, i);
		put_hunk(&a, &b, s, begin, done, out);
		i = done - 1;
	}
	return true;
}
