/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * One text of all parts, and one of the borders between them.
 */
#include "vessel/gate/scan.h"

#include "common/cleanup.h"
#include "common/mem.h"

#include <string.h>

static void root_add(struct root *r, const char *s, size_t len)
{
	if (!len)
		return;
	if (r->len + len > r->cap) {
		r->cap = (r->len + len) * 2 + 64;
		r->data = xreallocarray(r->data, r->cap, 1);
	}
	memcpy(r->data + r->len, s, len);
	r->len += len;
}

static void root_piece(struct root *r, size_t part, size_t from, size_t len)
{
	if (r->n == r->n_cap) {
		r->n_cap = r->n_cap * 2 + 16;
		r->piece = xreallocarray(r->piece, r->n_cap, sizeof(*r->piece));
	}
	r->piece[r->n].start = r->len;
	r->piece[r->n].len = len;
	r->piece[r->n].from = from;
	r->piece[r->n++].part = (uint32_t)part;
}

void root_done(struct root *r)
{
	if (r->data)
		explicit_bzero(r->data, r->len);
	free(r->data);
	free(r->piece);
}

/* A part, piece by piece: between them is what it carries. */
static void root_part(struct root *r, const struct scan *s, size_t i, size_t *carried)
{
	const struct gate_part *p = &s->in->parts[i];
	size_t from = 0;

	for (; *carried < s->n_carried && s->carried[*carried].part == i; ++*carried) {
		const struct carried *c = &s->carried[*carried];

		root_piece(r, i, from, c->from - from);
		root_add(r, p->data + from, c->from - from);
		root_add(r, "\n", 1);
		from = c->to;
	}
	root_piece(r, i, from, p->len - from);
	root_add(r, p->data + from, p->len - from);
}

void root_join(struct root *r, const struct scan *s, bool of_echoes)
{
	const struct gate_input *in = s->in;
	size_t carried = 0;

	for (size_t i = 0; i < in->n_parts; i++) {
		const struct gate_part *p = &in->parts[i];
		bool is_name = p->kind == GATE_PART_NAME;

		if ((p->kind == GATE_PART_ECHO) != of_echoes) {
			root_add(r, "\n", r->len ? 1 : 0);
			continue;
		}
		root_part(r, s, i, &carried);
		root_add(r, is_name ? ": " : "\n", is_name ? 2 : 1);
	}
}

struct tagged {
	uint32_t tag, part;
};

/* Between what was not beside each other. Letters of an encoding go on over lines, and over no blank. */
static void root_apart(struct root *r)
{
	root_add(r, "\n \n", 3);
}

/* The two ends of a part, its tail behind its head, as far as they are read on. */
static void root_ends(struct root *r, const struct scan *s, uint32_t part,
		      bool has_before)
{
	const struct gate_part *p = &s->in->parts[part];
	const struct judged *j = judged_in(s, part);
	size_t head = j ? j->from : p->len, tail = j ? p->len - j->to : p->len;

	if (head > GATE_TAIL_BYTES)
		head = GATE_TAIL_BYTES;
	if (tail > GATE_TAIL_BYTES)
		tail = GATE_TAIL_BYTES;
	if (has_before) {
		root_piece(r, part, 0, head);
		root_add(r, p->data, head);
	}
	if (!has_before || j || p->len > GATE_TAIL_BYTES) {
		root_apart(r);
		root_add(r, p->data + p->len - tail, tail);
	}
}

/* The parts of one tag, each cut to its two ends. */
static void root_borders(struct root *r, const struct scan *s, const struct tagged *of,
			 size_t n)
{
	const struct gate_input *in = s->in;
	bool has_before = false;

	for (size_t i = 0; i < in->n_tails; i++)
		if (in->tails[i].tag == of->tag && in->tails[i].len) {
			root_add(r, in->tails[i].data, in->tails[i].len);
			has_before = true;
		}
	for (size_t i = 0; i < n; i++) {
		root_ends(r, s, of[i].part, has_before);
		has_before = true;
	}
	root_apart(r);
}

static int by_tag(const void *a, const void *b)
{
	const struct tagged *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return x->part < y->part ? -1 : x->part > y->part;
}

static bool has_borders(const struct scan *s, size_t part, bool with_echoes)
{
	const struct gate_part *p = &s->in->parts[part];

	return p->len && !carried_is_all_of(s, (uint32_t)part) &&
	       (p->kind == GATE_PART_TEXT || (with_echoes && p->kind == GATE_PART_ECHO));
}

void root_all_borders(struct root *r, const struct scan *s, bool with_echoes)
{
	const struct gate_input *in = s->in;
	cleanup_free struct tagged *t = xcalloc(in->n_parts + 1, sizeof(*t));
	size_t n = 0, end;

	for (size_t i = 0; i < in->n_parts; i++)
		if (has_borders(s, i, with_echoes)) {
			t[n].tag = in->parts[i].tag;
			t[n++].part = (uint32_t)i;
		}
	qsort(t, n, sizeof(*t), by_tag);
	for (size_t i = 0; i < n; i = end) {
		/* a row of texts alone was looked at without echoes */
		bool is_wanted = !with_echoes;

		for (end = i; end < n && t[end].tag == t[i].tag; end++)
			is_wanted |= in->parts[t[end].part].kind == GATE_PART_ECHO;
		if (is_wanted)
			root_borders(r, s, t + i, end - i);
	}
}

size_t root_piece_at(const struct root *r, size_t at)
{
	size_t lo = 0, hi = r->n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->piece[mid].start <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}
