/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * From a match in a layer to a finding in a part, and which of two findings stays.
 */
#include "vessel/gate/scan.h"

#include "common/crypto/hmac.h"
#include "vessel/gate/score.h"

#include <string.h>

#define SEVERITY_GRAVE 0.85
#define OPAQUE_ACROSS_MIN 128 /* letters */

const char gate_rule_binary[] = "binary";

/* From a layer's span to that of the one above. */
static void layer_up(const struct layer *l, size_t *start, size_t *end)
{
	size_t from = *start, to = *end;

	switch (l->kind) {
	case LAYER_ROOT:
		return;
	case LAYER_REVERSED:
		*start = l->len - to;
		*end = l->len - from;
		break;
	case LAYER_WORDLESS:
		*start = l->map[from];
		*end = l->map[to - 1] + 1U;
		break;
	case LAYER_FOLDED:
		while (to < l->len && l->map[to] == l->map[to - 1])
			to++;
		*start = l->map[from];
		*end = l->map[to];
		break;
	case LAYER_BLOCKS:
		*start = SIZE_MAX;
		*end = 0;
		for (size_t i = 0; i < l->n_blocks; i++) {
			const struct gate_block *b = &l->block[i];

			if (b->out >= to || b->out + b->out_len <= from)
				continue;
			if (b->src < *start)
				*start = b->src;
			if (b->src + b->src_len > *end)
				*end = b->src + b->src_len;
		}
		if (*start > *end) /* between two blocks */
			*start = *end = 0;
		break;
	}
}

/* Across a piece's start; the keyword before a value counts as a part of it. */
static bool place_split(const struct root *r, struct span whole, struct span span,
			struct gate_finding *f)
{
	size_t at = root_piece_at(r, whole.end - 1), begin = r->piece[at].start;

	if (begin <= whole.start || begin >= whole.end)
		return false;
	if (span.end <= begin)
		span = whole;
	if (span.start < begin)
		span.start = begin;
	f->part = r->piece[at].part;
	f->offset = (uint32_t)(span.start - begin);
	f->len = (uint32_t)(span.end - span.start);
	f->is_split = true;
	return true;
}

/* The one that has most of it. Random bytes go on over a line's end, and so over a part's; but
 * what goes on there is not they. */
static struct span in_one_piece(const struct root *r, struct span span)
{
	struct span best = span;
	size_t most = 0;

	for (size_t at = root_piece_at(r, span.start);
	     at < r->n && r->piece[at].start < span.end; at++) {
		size_t from = r->piece[at].start, to = from + r->piece[at].len;

		from = from > span.start ? from : span.start;
		to = to < span.end ? to : span.end;
		if (to > from && to - from > most) {
			most = to - from;
			best = (struct span){from, to};
		}
	}
	return best;
}

/*
 * Across a border: so much of the run stands beside the text that has most of it. What a text has
 * alone was looked at where it stands, with all that says what it is (a list of checksums, a
 * certificate, a picture that was cut), and was let out, or was found there: that its end was cut out
 * and a word follows makes it no other thing.
 */
static bool is_made_by_border(const struct root *r, struct span span)
{
	size_t from = span.start, most = 0;

	for (size_t at = root_piece_at(r, span.start);
	     at < r->n && r->piece[at].start < span.end; at++) {
		size_t start = r->piece[at].start;

		if (start <= from)
			continue;
		most = start - from > most ? start - from : most;
		from = start;
	}
	most = span.end - from > most ? span.end - from : most;
	return span.end - span.start - most >= OPAQUE_ACROSS_MIN;
}

bool finding_place(const struct scan *s, struct span whole, struct span span,
		   struct gate_finding *f)
{
	const struct root *r = s->root;
	size_t at, in_piece, start = span.start, end = span.end;

	if (r->of) {
		f->part = r->of->part;
		f->offset = (uint32_t)r->of->from;
		f->len = (uint32_t)(r->of->to - r->of->from);
		f->is_split = true;
		return true;
	}
	if (start >= end || r->n == 0)
		return false;
	if (r->is_split)
		return place_split(r, whole, span, f);
	at = root_piece_at(r, start);
	in_piece = start - r->piece[at].start;
	f->part = r->piece[at].part;
	f->offset = (uint32_t)(r->piece[at].from + in_piece);
	f->len = (uint32_t)(end - start);
	if (in_piece + f->len > r->piece[at].len) {
		/* on into the next part: no placeholder could stand for it */
		f->is_split = true;
		if (in_piece >= r->piece[at].len)
			return false;
		f->len = (uint32_t)(r->piece[at].len - in_piece);
	}
	return true;
}

bool finding_covers(const struct gate_finding *a, const struct gate_finding *b)
{
	return a->part == b->part && a->is_split == b->is_split &&
	       a->offset <= b->offset && a->offset + a->len >= b->offset + b->len;
}

static bool overlaps(const struct gate_finding *a, const struct gate_finding *b)
{
	return a->part == b->part && a->is_split == b->is_split &&
	       a->offset < b->offset + b->len && b->offset < a->offset + a->len;
}

/* "binary" says where it begins: what stands in the bytes behind is something else. What is
 * decoded has its whole run for a place. */
static bool tells_all(const struct gate_finding *f)
{
	return f->rule != gate_rule_binary || f->depth > 0;
}

/* Of a text without words only what the words hid is new: the rest is the same thing with
 * another border. */
static bool is_known(const struct scan *s, const struct gate_finding *a,
		     const struct gate_finding *f)
{
	bool is_there = s->layer->kind == LAYER_WORDLESS && a->family == f->family
				? overlaps(a, f)
				: finding_covers(a, f);

	return is_there && tells_all(a) && a->severity >= f->severity;
}

/* The stronger of two that tell the same stays. */
static void keep(struct scan *s, const struct gate_finding *f)
{
	struct gate_report *r = s->r;
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++)
		if (is_known(s, &r->finding[i], f))
			return;
	for (size_t i = 0; i < r->n; i++) {
		if (finding_covers(f, &r->finding[i]) && tells_all(f) &&
		    f->severity >= r->finding[i].severity)
			continue;
		if (kept < i)
			r->finding[kept] = r->finding[i];
		kept++;
	}
	r->n = kept;
	if (r->n == GATE_FINDINGS_MAX)
		s->failed = true;
	else
		r->finding[r->n++] = *f;
}

struct span layer_span_in_root(const struct layer *l, size_t start, size_t end)
{
	for (; l->parent; l = l->parent)
		layer_up(l, &start, &end);
	return (struct span){start, end};
}

/* Within a certificate or a public key. What it says of people and addresses, and that its
 * numbers look drawn by lot, was made to be shown. */
static bool is_in_public(const struct layer *l, size_t start, size_t end)
{
	for (; l; l = l->parent) {
		size_t to = 0;

		if (gate_stretches_has(&l->public, start, &to) && end <= to)
			return true;
		for (size_t i = 0; l->kind == LAYER_BLOCKS && i < l->n_blocks; i++) {
			const struct gate_block *b = &l->block[i];

			if (b->is_public && b->out <= start &&
			    end <= (size_t)b->out + b->out_len)
				return true;
		}
		layer_up(l, &start, &end);
	}
	return false;
}

/* What by itself refuses, and passwords: of all else chance and cameras make some. */
static bool counts_in_media(enum gate_family family, double severity)
{
	return severity >= SEVERITY_GRAVE || family == GATE_KEYWORD;
}

/* In the layer being searched: [start, end), of a match that begins at `whole`. */
static void scan_found_in(struct scan *s, const char *rule, enum gate_family family,
			  double severity, size_t whole, size_t start, size_t end)
{
	struct gate_finding f = {.family = family,
				 .severity = severity,
				 .rule = rule,
				 .depth = (uint8_t)s->layer->depth};
	uint8_t mac[SHA256_SIZE];
	struct span span = layer_span_in_root(s->layer, start, end);

	if ((family == GATE_BINARY || family == GATE_MEDIA) && s->root->n &&
	    !s->root->is_split)
		span = in_one_piece(s->root, span);
	if (family == GATE_BINARY && s->root->is_split && rule != gate_rule_binary &&
	    !is_made_by_border(s->root, span))
		return;
	if (!finding_place(s, layer_span_in_root(s->layer, whole, end), span, &f))
		return;
	if ((s->only_never || s->in->parts[f.part].kind == GATE_PART_ECHO) &&
	    family != GATE_EXACT && family != GATE_CANARY && family != GATE_PLANTED)
		return;
	if (s->root->of && !counts_in_media(family, severity))
		return;
	if ((gate_is_weak(family) || family == GATE_BINARY) &&
	    is_in_public(s->layer, start, end))
		return;
	gate_mac(s->g->cfg.mac_key, s->layer->data + start, end - start, mac);
	memcpy(f.mac, mac, sizeof(f.mac));
	keep(s, &f);
}

void scan_found(struct scan *s, const char *rule, enum gate_family family,
		double severity, size_t start, size_t end)
{
	scan_found_in(s, rule, family, severity, start, start, end);
}

bool scan_on_match(const struct gate_rule *rule, const struct gate_match *m, void *arg)
{
	struct scan *s = arg;

	scan_found_in(s, rule->name, m->family, m->severity, m->whole, m->start, m->end);
	return !s->failed;
}
