/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Pictures, sound and PDF that the parts carry, as they are or in base64 (alone, in a data URL, within
 * a text): each is decoded once and known by its whole structure (media.h).
 *
 * Theory of operation. What is one to its last byte is taken out of the text, for the letters of its
 * base64 mean nothing: the root goes on behind it, as behind a line's end. What can be read in
 * it is a root of its own, in which only what is grave counts, for noise must not refuse a
 * picture; nothing in it can be rewritten. Whether one of its kind may go out at all is the
 * configuration's to say. What is none stays where it is and is read as text.
 */
#include "vessel/gate/scan.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/text/runs.h"

#include <stdlib.h>
#include <string.h>

#define LETTERS_MIN 64 /* of base64 */
#define TEXT_ROOM_BYTES                                                                  \
	4096 /* beside thrice what it is made of: each line has an end, strings are read twice */
#define HEAD_MAX_BYTES 64 /* "data:image/png;base64," and the like */

/* The first letters of the kinds, and what is before them. */
static const struct {
	const char *text;
	size_t skip;
	bool is_first; /* of the part: too short to look for elsewhere */
} begins[] = {
	{"iVBORw0KGgo", 0, false}, {"/9j/", 0, false}, {"R0lGOD", 0, false},
	{"UklGR", 0, false},	   {"SUQz", 0, false}, {"JVBERi0", 0, false},
	{"base64,//", 7, false},   {"//", 0, true},
};
#define N_BEGINS ARRAY_SIZE(begins)

struct seeker {
	const char *s;
	size_t len;
	size_t next[N_BEGINS]; /* of each, from where we are on; len: none */
};

static void seek(struct seeker *k, size_t i, size_t from)
{
	size_t n = strlen(begins[i].text);
	const char *at = NULL;

	if (from < k->len && !begins[i].is_first)
		at = memmem(k->s + from, k->len - from, begins[i].text, n);
	else if (from == 0 && k->len >= n && memcmp(k->s, begins[i].text, n) == 0)
		at = k->s;
	k->next[i] = at ? (size_t)(at - k->s) + begins[i].skip : k->len;
}

/* The first letter that may be one's, at `from` or behind; len: there is none. */
static size_t seek_first(struct seeker *k, size_t from)
{
	size_t first = k->len;

	for (size_t i = 0; i < N_BEGINS; i++) {
		if (k->next[i] < from)
			seek(k, i, from);
		first = k->next[i] < first ? k->next[i] : first;
	}
	return first;
}

static void keep(struct scan *s, uint32_t part, size_t from, size_t to, bool is_encoded,
		 const void *data, size_t len)
{
	struct carried c = {
		.part = part, .from = from, .to = to, .depth = is_encoded ? 1 : 0};

	buf_init(&c.text, 3 * len + TEXT_ROOM_BYTES);
	if (media_walk(data, len, &c.text, &c.media) != MEDIA_WHOLE) {
		buf_done(&c.text);
		return;
	}
	if (!s->carried)
		s->carried = xcalloc(GATE_CARRIED_MAX, sizeof(*s->carried));
	s->carried[s->n_carried++] = c;
}

/* The run of base64 at `from`; its end. */
static size_t take_run(struct scan *s, uint32_t part, const char *data, size_t len,
		       size_t from)
{
	size_t to = gate_run_end(gate_values64, data, len, from), n = 0;
	cleanup_free char *bytes = NULL;
	size_t letters = to - from;

	for (unsigned pad = 0; pad < 2 && to < len && data[to] == '='; pad++)
		to++;
	if (letters < LETTERS_MIN || letters > s->budget ||
	    (from > 0 && gate_values64[(unsigned char)data[from - 1]]) ||
	    base64_decode(data + from, to - from, &bytes, &n, NULL) < 0)
		return to;
	s->budget -= n;
	keep(s, part, from, to, true, bytes, n);
	return to;
}

static void look_in_part(struct scan *s, uint32_t part)
{
	const struct gate_part *p = &s->in->parts[part];
	struct seeker k = {.s = p->data, .len = p->len};
	size_t before = s->n_carried;

	if (p->len < LETTERS_MIN)
		return;
	keep(s, part, 0, p->len, false, p->data, p->len);
	if (s->n_carried > before)
		return;
	for (size_t i = 0; i < N_BEGINS; i++)
		seek(&k, i, 0);
	for (size_t at = seek_first(&k, 0);
	     at < k.len && s->n_carried < GATE_CARRIED_MAX;)
		at = seek_first(&k, take_run(s, part, p->data, p->len, at));
}

void carried_find(struct scan *s)
{
	for (size_t i = 0; i < s->in->n_parts && s->n_carried < GATE_CARRIED_MAX; i++)
		if (s->in->parts[i].kind == GATE_PART_TEXT)
			look_in_part(s, (uint32_t)i);
}

void carried_done(struct scan *s)
{
	for (size_t i = 0; i < s->n_carried; i++)
		buf_done(&s->carried[i].text);
	free(s->carried);
}

bool carried_is_all_of(const struct scan *s, uint32_t part)
{
	for (size_t i = 0; i < s->n_carried && s->carried[i].part <= part; i++)
		if (s->carried[i].part == part && s->carried[i].from <= HEAD_MAX_BYTES &&
		    s->carried[i].to == s->in->parts[part].len)
			return true;
	return false;
}

/* ---- what was judged as a whole ------------------------------------------------------ */

/* A border begins behind a picture or the like, also one that was cut, and behind a run of random
 * bytes that was found, and it ends before one. */

static int by_part(const void *a, const void *b)
{
	const struct judged *x = a, *y = b;

	return x->part < y->part ? -1 : x->part > y->part;
}

static void note_judged(struct scan *s, uint32_t part, size_t from, size_t to)
{
	s->judged[s->n_judged++] = (struct judged){.part = part, .from = from, .to = to};
}

/* One for each part: from where the first begins to where the last ends. */
static void join_judged(struct scan *s)
{
	size_t kept = 0;

	qsort(s->judged, s->n_judged, sizeof(*s->judged), by_part);
	for (size_t i = 0; i < s->n_judged; i++) {
		struct judged *last = kept ? &s->judged[kept - 1] : NULL;
		const struct judged *j = &s->judged[i];

		if (!last || last->part != j->part) {
			s->judged[kept++] = *j;
			continue;
		}
		last->from = j->from < last->from ? j->from : last->from;
		last->to = j->to > last->to ? j->to : last->to;
	}
	s->n_judged = kept;
}

void judged_find(struct scan *s)
{
	const struct gate_report *r = s->r;

	if (s->n_carried + r->n == 0)
		return;
	s->judged = xcalloc(s->n_carried + r->n, sizeof(*s->judged));
	for (size_t i = 0; i < s->n_carried; i++)
		note_judged(s, s->carried[i].part, s->carried[i].from, s->carried[i].to);
	for (size_t i = 0; i < r->n; i++) {
		const struct gate_finding *f = &r->finding[i];

		if ((f->family == GATE_BINARY || f->family == GATE_MEDIA) && !f->is_split)
			note_judged(s, f->part, f->offset, (size_t)f->offset + f->len);
	}
	join_judged(s);
	for (size_t i = 0; i < s->n_judged; i++)
		s->r->judged[s->r->n_judged++] = (struct gate_judged){
			.part = s->judged[i].part,
			.left = (uint32_t)(s->in->parts[s->judged[i].part].len -
					   s->judged[i].to)};
}

void judged_done(struct scan *s)
{
	free(s->judged);
}

const struct judged *judged_in(const struct scan *s, uint32_t part)
{
	const struct judged key = {.part = part};

	if (s->n_judged == 0)
		return NULL;
	return bsearch(&key, s->judged, s->n_judged, sizeof(key), by_part);
}
