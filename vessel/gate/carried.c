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
#include "vessel/gate/decode_priv.h"
#include "vessel/gate/runs.h"

#include <string.h>

#define CARRIED_MAX 256	     /* of one question: further ones are read as text */
#define LETTERS_MIN 64	     /* of base64 */
#define TEXT_ROOM_BYTES 4096 /* beside twice what it is made of: each line has an end */
#define HEAD_MAX_BYTES 64    /* "data:image/png;base64," and the like */

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

	buf_init(&c.text, 2 * len + TEXT_ROOM_BYTES);
	if (media_walk(data, len, &c.text, &c.media) != MEDIA_WHOLE) {
		buf_done(&c.text);
		return;
	}
	if (!s->carried)
		s->carried = xcalloc(CARRIED_MAX, sizeof(*s->carried));
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
	for (size_t at = seek_first(&k, 0); at < k.len && s->n_carried < CARRIED_MAX;)
		at = seek_first(&k, take_run(s, part, p->data, p->len, at));
}

void carried_find(struct scan *s)
{
	for (size_t i = 0; i < s->in->n_parts && s->n_carried < CARRIED_MAX; i++)
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
