/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the build.
 * See words.h.
 */
#include "vessel/gate/rules/words.h"
#include "common/attr.h"
#include "common/mem.h"
#include "vessel/gate/valid/form.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define TEMPLATE_MAX 96 /* bytes of a name and its brackets */
#define RUN_AROUND 160
#define RUNS_MAX_BYTES 65536
#define PUBLISHED_BEFORE 8 /* letters of such a value before a word of it, at least */

const char *const gate_words[] = {
#define W(word) word,
#define P(value, where)
#include "vessel/gate/rules/words.def"
#undef W
#undef P
};
const size_t gate_words_n = ARRAY_SIZE(gate_words);

static const struct {
	const char *value;
	size_t len;
} published[] = {
#define W(word)
#define P(value, where) {value, sizeof(value) - 1},
#include "vessel/gate/rules/words.def"
#undef W
#undef P
};

/* The words by their first letter, of both cases: 1 + their places, in order. */
static const struct heads {
	uint8_t first[256], next[ARRAY_SIZE(gate_words)], len[ARRAY_SIZE(gate_words)];
} *heads_of_words(void)
{
	static struct heads h;
	static bool is_made;

	for (size_t i = ARRAY_SIZE(gate_words); i-- > 0 && !is_made;) {
		unsigned char c = (unsigned char)gate_words[i][0];

		h.len[i] = (uint8_t)strlen(gate_words[i]);
		h.next[i] = h.first[c];
		h.first[c] = h.first[toupper(c)] = (uint8_t)(i + 1);
	}
	is_made = true;
	return &h;
}

/* The length of the word at s, 0: there is none. */
static size_t word_at(const struct heads *h, const char *s, size_t len)
{
	for (size_t i = h->first[(unsigned char)s[0]]; i > 0; i = h->next[i - 1])
		if (h->len[i - 1] <= len &&
		    strncasecmp(s, gate_words[i - 1], h->len[i - 1]) == 0)
			return h->len[i - 1];
	return 0;
}

size_t gate_without_words(const char *s, size_t len, char *out)
{
	const struct heads *h = heads_of_words();
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		size_t word = word_at(h, s + i, len - i);

		if (!word)
			out[n++] = s[i];
		i += word ? word : 1;
	}
	return n;
}

/* ---- templates ----------------------------------------------------------- */

static const struct bracket {
	const char *open, *close;
} brackets[] = {
	{"${", "}"}, {"{{", "}}"}, {"$(", ")"}, {"%(", ")s"}, {"%(", ")d"},
	{"<", ">"},  {"{", "}"},   {"[", "]"},	{"(", ")"},   {"%", "%"},
};

/* The length of the template at s; 0: there is none. */
static size_t template_at(const char *s, size_t len)
{
	size_t max = len < TEMPLATE_MAX ? len : TEMPLATE_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(brackets); i++) {
		size_t open = strlen(brackets[i].open);
		size_t close = strlen(brackets[i].close);
		const char *end;

		if (max <= open || memcmp(s, brackets[i].open, open) != 0)
			continue;
		end = memmem(s + open, max - open, brackets[i].close, close);
		if (end && gate_is_name(s + open, (size_t)(end - s) - open))
			return (size_t)(end - s) + close;
	}
	return 0;
}

bool gate_is_template(const char *s, size_t len)
{
	return len > 0 && (template_at(s, len) == len ||
			   (s[0] == '$' && gate_is_name(s + 1, len - 1)));
}

/* ---- what everybody knows ----------------------------------------------------------- */

bool gate_is_published(const char *text, size_t len, size_t start, size_t end)
{
	for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
		const char *value = published[i].value, *at;
		size_t n = published[i].len, before;

		if (end - start > n)
			continue;
		at = memmem(value, n, text + start, end - start);
		before = at ? (size_t)(at - value) : 0;
		if (at && before <= start && n <= len - (start - before) &&
		    memcmp(text + start - before, value, n) == 0)
			return true;
	}
	return false;
}

/* ---- a text without the words that are glued to it ------------------------------------- */

/* A letter, a digit; the signs that numbers of telephones and keys begin with. */
static bool begins_value(const char *s, size_t len)
{
	unsigned char c = len > 0 ? (unsigned char)s[0] : 0;
	unsigned char next = len > 1 ? (unsigned char)s[1] : 0;

	return isalnum(c) || ((c == '+' || c == '/') && (isalnum(next) || next == '_')) ||
	       (c == '(' && isdigit(next));
}

/* A word of signs touches what passwords begin and end with, too; a line of stars does not. */
static bool is_of_value(const char *s, size_t len, char word)
{
	const char *signs = word == '*'	  ? "_-+~!=."
			    : word == '.' ? "_-+~!="
					  : "_-+~!=.*@#&^$/";

	return len > 0 && (begins_value(s, len) || (*s && strchr(signs, *s)));
}

static bool touches(const char *s, size_t len, const struct gate_span *w)
{
	const char *before = s + w->start - (w->start > 0), *behind = s + w->end;

	if (isalnum((unsigned char)s[w->start]))
		return (w->start > 0 && isalnum((unsigned char)*before)) ||
		       begins_value(behind, len - w->end);
	return is_of_value(before, w->start, s[w->start]) ||
	       is_of_value(behind, len - w->end, s[w->start]);
}

/* "sk_test_": the middle of a name is not put there. */
static bool is_joint(const char *s, const struct gate_span *w)
{
	return w->start > 0 && s[w->start - 1] == '_' && s[w->end - 1] == '_';
}

/* Of a published value a word is never the beginning. */
static bool is_in_published(const char *s, size_t len, const struct gate_span *w)
{
	for (size_t i = 1; i <= PUBLISHED_BEFORE; i++)
		if (i > w->start || !(isalnum((unsigned char)s[w->start - i]) ||
				      strchr("+/", s[w->start - i])))
			return false;
	return gate_is_published(s, len, w->start, w->end);
}

static bool is_glued(const char *s, size_t len, const struct gate_span *w)
{
	return touches(s, len, w) && !is_joint(s, w) &&
	       (s[w->start] == '%' || isalnum((unsigned char)s[w->start]) ||
		!template_at(s + w->start, len - w->start)) &&
	       !is_in_published(s, len, w);
}

/* A piece ends between two words, so that nothing is cut: at the blank that is nearest to its
 * edge, if there is any. */
static size_t begin_piece(const char *s, size_t edge, size_t word)
{
	size_t i = edge;

	while (i > 0 && i < word && !isspace((unsigned char)s[i - 1]))
		i++;
	return i < word ? i : edge;
}

static size_t end_piece(const char *s, size_t len, size_t word, size_t edge)
{
	size_t i = edge;

	while (i < len && i > word && !isspace((unsigned char)s[i]))
		i--;
	return i > word ? i : edge;
}

/* Words that are near each other, glued ones: the first, one behind the last. */
struct piece {
	size_t from, to, first, end;
};

static struct piece piece_at(const char *s, size_t len, const struct gate_span *glued,
			     size_t n, size_t i, size_t around, size_t done)
{
	size_t from = glued[i].start - done > around ? glued[i].start - around : done;
	struct piece p = {.from = begin_piece(s, from, glued[i].start), .first = i};

	do {
		size_t behind = glued[i].end;

		p.to = len - behind > around ? behind + around : len;
		p.to = end_piece(s, len, behind, p.to);
	} while (++i < n && glued[i].start <= p.to);
	p.end = i;
	return p;
}

/* "xxxxx": the first or the last of them may be of what it stands beside. */
static bool is_run(const char *s, const struct gate_span *w)
{
	size_t i = w->start;

	while (i < w->end &&
	       tolower((unsigned char)s[i]) == tolower((unsigned char)s[w->start]))
		i++;
	return i == w->end && isalnum((unsigned char)s[w->start]);
}

static void make_room(struct gate_folded *f, size_t *cap, size_t more)
{
	if (f->len + more < *cap)
		return;
	*cap = (f->len + more) * 2 + 64;
	f->data = xreallocarray(f->data, *cap, 1);
	f->map = xreallocarray(f->map, *cap, sizeof(*f->map));
}

static void put(struct gate_folded *f, const char *s, size_t from, size_t to)
{
	if (from >= to)
		return;
	memcpy(f->data + f->len, s + from, to - from);
	for (; from < to; from++)
		f->map[f->len++] = (uint32_t)from;
}

/* Signs of one run that stay: so many at its beginning, at its end. */
struct keep {
	const struct gate_span *run;
	size_t first, last;
};

static void put_piece(struct gate_folded *f, size_t *cap, const char *s,
		      const struct gate_span *glued, const struct piece *p,
		      const struct keep *keep)
{
	size_t at = p->from;

	make_room(f, cap, p->to - p->from + 1);
	if (f->len) {
		f->map[f->len] = (uint32_t)at;
		f->data[f->len++] = '\n';
	}
	for (size_t i = p->first; i < p->end; i++) {
		const struct gate_span *w = &glued[i];

		if (w->start < at || w->end > p->to)
			continue;
		put(f, s, at, w->start + (w == keep->run ? keep->first : 0));
		at = w->end - (w == keep->run ? keep->last : 0);
	}
	put(f, s, at, p->to);
}

/* What is near each of its runs once more, in each way that it can be cut. Where a text has
 * more of them than of anything else, not each: only what proves itself by all of its
 * letters, and ends with an x, is lost then. */
static void put_runs(struct gate_folded *f, size_t *cap, const char *s, size_t len,
		     const struct gate_span *glued, const struct piece *p)
{
	static const uint8_t ways[][2] = {{1, 0}, {0, 1}, {1, 1}, {2, 0}, {0, 2}};

	for (size_t i = p->first; i < p->end; i++) {
		const struct gate_span *run = &glued[i];
		struct piece near = *p;

		if (!is_run(s, run))
			continue;
		if (run->start - p->from > RUN_AROUND)
			near.from = begin_piece(s, run->start - RUN_AROUND, run->start);
		if (p->to - run->end > RUN_AROUND)
			near.to = end_piece(s, len, run->end, run->end + RUN_AROUND);
		for (size_t k = 0; k < ARRAY_SIZE(ways); k++) {
			const struct keep keep = {run, ways[k][0], ways[k][1]};

			if (f->len < 2 * len + RUNS_MAX_BYTES)
				put_piece(f, cap, s, glued, &near, &keep);
		}
	}
}

void gate_fold_words(const char *s, size_t len, const struct gate_span *word, size_t n,
		     size_t around, struct gate_folded *ret)
{
	struct gate_span *glued = xreallocarray(NULL, n + 1, sizeof(*glued));
	const struct keep nothing = {0};
	size_t cap = 0, done = 0, n_glued = 0;

	*ret = (struct gate_folded){0};
	for (size_t i = 0; i < n; i++)
		if (is_glued(s, len, &word[i]))
			glued[n_glued++] = word[i];
	for (size_t i = 0; i < n_glued;) {
		const struct piece p = piece_at(s, len, glued, n_glued, i, around, done);

		put_piece(ret, &cap, s, glued, &p, &nothing);
		put_runs(ret, &cap, s, len, glued, &p);
		done = p.to;
		i = p.end;
	}
	ret->changed = ret->len > 0;
	free(glued);
}
