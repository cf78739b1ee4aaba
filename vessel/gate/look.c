/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * What is looked for in a layer beside the rules: canaries, registered terms, kinds of files, and
 * bytes that nobody can read.
 */
#include "vessel/gate/scan.h"

#include "common/mem.h"
#include "vessel/gate/decode/kind.h"
#include "vessel/gate/private.h"
#include "vessel/gate/text/runs.h"
#include "vessel/gate/valid/valid.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define SEVERITY_BINARY 0.85

/* A canary is what it is, whatever becomes of it; what was planted in a job's environment is it in any case of letters. */
struct search {
	const struct gate_canary *c;
	uint8_t in[256]; /* its letters, in both cases */
};

static struct search search_of(const struct gate_canary *c)
{
	struct search x = {.c = c};

	for (size_t i = 0; c->is_planted && i < c->len; i++) {
		unsigned char u = (unsigned char)c->data[i];

		x.in[tolower(u)] = x.in[toupper(u)] = 1;
	}
	return x;
}

/* From `at` on; len: it is not there. */
static size_t next_canary(const struct search *x, const char *s, size_t len, size_t at)
{
	size_t n = x->c->len;
	const char *found;

	if (!x->c->is_planted || n < GATE_RUN_MIN || n > GATE_RUN_MAX) {
		found = memmem(s + at, len - at, x->c->data, n);
		return found ? (size_t)(found - s) : len;
	}
	while ((at = gate_next_run(x->in, n, s, len, at)) < len &&
	       strncasecmp(s + at, x->c->data, n) != 0)
		at++;
	return at;
}

void look_for_canaries(struct scan *s)
{
	const struct layer *l = s->layer;

	for (size_t i = 0; i < s->in->n_canaries; i++) {
		const struct gate_canary *c = &s->in->canaries[i];
		const struct search x = search_of(c);
		size_t at = 0;

		while (!s->failed &&
		       (at = next_canary(&x, l->data, l->len, at)) < l->len) {
			scan_found(s, "canary",
				   c->is_planted ? GATE_PLANTED : GATE_CANARY, 1.0, at,
				   at + c->len);
			at += c->len;
		}
	}
}

static bool on_private(size_t offset, size_t len, void *arg)
{
	struct scan *s = arg;

	scan_found(s, "private", GATE_EXACT, 1.0, offset, offset + len);
	return !s->failed;
}

struct layer layer_of_folded(const struct layer *above, const struct gate_folded *f,
			     enum layer_kind kind)
{
	return (struct layer){
		.kind = kind,
		.parent = above,
		.data = f->data,
		.len = f->len,
		.depth = above->depth,
		.map = f->map,
	};
}

/* Registered terms in a layer, whose text is put into their form first. */
static void look_for_terms(struct scan *s, const struct layer *above, unsigned how)
{
	const struct layer *before = s->layer;
	struct gate_folded f;
	struct layer l;

	gate_fold(above->data, above->len, how, &f);
	l = layer_of_folded(above, &f, LAYER_FOLDED);
	s->layer = &l;
	gate_private_search(s->g->private, f.data, f.len, on_private, s);
	s->layer = before;
	gate_folded_done(&f);
}

void scan_pay(struct scan *s, const struct gate_decoded *d)
{
	s->failed |= d->too_large;
	s->budget -= d->len <= s->budget ? d->len : s->budget;
}

struct layer layer_of_blocks(const struct layer *above, const struct gate_decoded *d,
			     enum gate_encoding e)
{
	return (struct layer){
		.kind = LAYER_BLOCKS,
		.parent = above,
		.data = d->data,
		.len = d->len,
		.depth = above->depth + 1,
		.block = d->block,
		.n_blocks = d->n,
		.encoding = e,
	};
}

/* Any word may be base64 of a few letters: nobody but who registered them can say. */
static void look_for_short_terms(struct scan *s, const struct layer *above)
{
	struct gate_decoded d;

	if (above->depth >= GATE_DEPTH_MAX)
		return;
	gate_decode_short(above->data, above->len, s->budget, &d);
	scan_pay(s, &d);
	if (d.n && !s->failed) {
		const struct layer l = layer_of_blocks(above, &d, GATE_BASE64);

		look_for_terms(s, &l, FOLD_SHAPES | FOLD_CASE | FOLD_LETTERS);
		look_for_short_terms(s, &l);
	}
	gate_decoded_done(&d);
}

void look_for_private(struct scan *s)
{
	static const struct gate_stops others = {
		.one = {UINT8_MAX, UINT8_MAX, UINT8_MAX, UINT8_MAX}, .above = 0x7f};
	const unsigned how = FOLD_SHAPES | FOLD_CASE | FOLD_LETTERS;
	const struct layer *l = s->layer;

	if (!s->g->private || gate_private_count(s->g->private) == 0)
		return;
	look_for_terms(s, l, how);
	if (memchr(l->data, '+', l->len) || memchr(l->data, '\\', l->len))
		look_for_terms(s, l, how | FOLD_FORM);
	/* registered before FOLD_LETTERS was */
	if (gate_next_stop(&others, l->data, l->len, 0) < l->len)
		look_for_terms(s, l, FOLD_SHAPES | FOLD_CASE);
	if (gate_private_has_short(s->g->private, GATE_SHORT_MAX))
		look_for_short_terms(s, l);
}

/* The lines of a picture or a key in base64 look drawn by lot, and it is known by what. */
static void forget_entropy(struct scan *s, size_t start, size_t end)
{
	struct span whole = layer_span_in_root(s->layer, start, end);
	struct gate_report *r = s->r;
	struct gate_finding f = {0};
	size_t kept = 0;

	if (!finding_place(s, whole, whole, &f))
		return;
	for (size_t i = 0; i < r->n; i++)
		if (r->finding[i].family != GATE_ENTROPY ||
		    !finding_covers(&f, &r->finding[i]))
			r->finding[kept++] = r->finding[i];
	r->n = kept;
}

static void look_at_kind(struct scan *s, size_t start, size_t len, bool is_loose)
{
	const struct gate_kind *k = gate_kind_of(s->layer->data + start, len);

	if (!k)
		return;
	if (s->layer->kind == LAYER_BLOCKS && !is_loose &&
	    gate_is_media(s->layer->data + start, len))
		forget_entropy(s, start, start + len);
	if (k->severity > 0)
		scan_found(s, k->name, k->family, k->severity, start, start + len);
}

void look_at_kinds(struct scan *s)
{
	const struct layer *l = s->layer;

	for (size_t i = 0; l->kind == LAYER_ROOT && i < s->root->n; i++)
		look_at_kind(s, s->root->piece[i].start, s->root->piece[i].len, false);
	for (size_t i = 0; l->kind == LAYER_BLOCKS && i < l->n_blocks; i++)
		look_at_kind(s, l->block[i].out, l->block[i].out_len,
			     l->block[i].is_loose);
}

static bool is_within(const struct gate_decoded *d, size_t at, size_t *ret_end)
{
	for (size_t i = 0; i < d->n; i++)
		if (!d->block[i].is_strange && at >= d->block[i].src &&
		    at < d->block[i].src + d->block[i].src_len) {
			*ret_end = d->block[i].src + d->block[i].src_len;
			return true;
		}
	return false;
}

struct gate_stretches layer_media(const struct scan *s, const struct layer *l)
{
	bool is_root = l->kind == LAYER_ROOT && !s->root->is_split;
	size_t n = is_root ? s->root->n : l->kind == LAYER_BLOCKS ? l->n_blocks : 0;
	struct gate_stretches all = {0};

	for (size_t i = 0; i < n; i++) {
		size_t start = is_root ? s->root->piece[i].start : l->block[i].out;
		size_t len = is_root ? s->root->piece[i].len : l->block[i].out_len;

		if (!gate_is_media(l->data + start, len))
			continue;
		if (!all.one)
			all.one = xreallocarray(NULL, n - i, sizeof(*all.one));
		all.one[all.n++] = (struct gate_stretch){start, start + len};
	}
	return all;
}

/* The block of the layer, which are in the order of their bytes, that begins at `at` or before it. */
static const struct gate_block *block_at(const struct layer *l, size_t at)
{
	size_t lo = 0, hi = l->n_blocks;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->block[mid].out <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &l->block[lo - 1] : NULL;
}

/* What a layer has in [from, to) is of a block that is loose itself, or of more than one. */
static bool is_of_loose(const struct layer *l, size_t from, size_t to)
{
	const struct gate_block *b;

	for (; l && l->kind != LAYER_BLOCKS; l = l->parent) {
		if (!l->map)
			return false;
		from = l->map[from];
		to = l->map[to];
	}
	b = l ? block_at(l, from) : NULL;
	return l && (!b || b->is_loose || to > (size_t)b->out + b->out_len);
}

void layer_pass_on_loose(const struct layer *l, struct gate_decoded *below)
{
	for (size_t i = 0; i < below->n; i++) {
		struct gate_block *b = &below->block[i];

		b->is_loose |= is_of_loose(l, b->src, (size_t)b->src + b->src_len);
	}
}

/* Bytes of the layer's [from, to) that are no text, and that no decoder made text of. below: what
 * the layer decodes to; NULL: that was not tried. */
static bool find_unread(const struct layer *l, size_t from, size_t to,
			const struct gate_stretches *media,
			const struct gate_decoded *below, size_t *ret_at)
{
	size_t at;

	while (from < to && gate_find_binary(l->data + from, to - from, &at)) {
		size_t end = 0;

		at += from;
		if (!gate_stretches_has(media, at, &end) &&
		    (!below || (!is_within(&below[GATE_DEFLATE], at, &end) &&
				!is_within(&below[GATE_UTF16], at, &end)))) {
			*ret_at = at;
			return true;
		}
		from = end;
	}
	return false;
}

/* It is a finding as what it is, or none, and not as noise. */
static bool is_told(const char *data, size_t len)
{
	const struct gate_kind *k = gate_kind_of(data, len);

	return k && (k->family != GATE_MEDIA || gate_is_media(data, len));
}

/* Of hexadecimal digits in wide lines, by what lies between them, fewer are enough. */
static size_t opaque_min(const struct layer *l, const struct gate_block *b)
{
	size_t between = b->src_len > 2 * b->out_len ? b->src_len - 2 * b->out_len : 0;

	if (l->encoding == GATE_BASE64)
		return GATE_OPAQUE64_MIN;
	return between > 0 && between * GATE_WIDE16 <= 4 * b->out_len
		       ? GATE_OPAQUE_WIDE_MIN
		       : GATE_OPAQUE16_MIN;
}

/* Of letters drawn by lot a sixth are digits, and of capitals and small ones there are two fifths
 * each; of 256 one row in a million has less than is asked for here. */
static bool is_drawn(const char *s, size_t len)
{
	size_t digits = 0, capitals = 0, small = 0;

	for (size_t i = 0; i < len; i++) {
		digits += s[i] >= '0' && s[i] <= '9';
		capitals += s[i] >= 'A' && s[i] <= 'Z';
		small += s[i] >= 'a' && s[i] <= 'z';
	}
	return 24 * digits >= len && 8 * capitals >= len && 8 * small >= len;
}

/* Words that many texts have, one behind the other (the parameters that tools require, names of
 * files), are letters of base64 too. */
static bool is_row_of_words(const struct scan *s, const struct gate_block *b)
{
	const struct layer *l = s->layer;

	return s->root->is_split && l->encoding == GATE_BASE64 && l->parent &&
	       !is_drawn(l->parent->data + b->src, b->src_len);
}

/* A run that was decoded because something in it can be read, or by chance looks so, and
 * that is mostly something else. */
static void look_for_opaque(struct scan *s, const struct gate_stretches *media,
			    const struct gate_decoded *below)
{
	const struct layer *l = s->layer;

	for (size_t i = 0; i < l->n_blocks; i++) {
		const struct gate_block *b = &l->block[i];
		const char *data = l->data + b->out;
		size_t at;

		if (!b->is_loose && b->out_len >= opaque_min(l, b) &&
		    !is_told(data, b->out_len) &&
		    distinct_bytes(data, b->out_len) > GATE_OPAQUE_DISTINCT &&
		    !is_row_of_words(s, b) &&
		    find_unread(l, b->out, (size_t)b->out + b->out_len, media, below,
				&at))
			scan_found(s, "opaque", GATE_BINARY, SEVERITY_OPAQUE, b->out,
				   (size_t)b->out + b->out_len);
	}
}

bool layer_is_backwards(const struct layer *l)
{
	for (; l; l = l->parent)
		if (l->kind == LAYER_REVERSED)
			return true;
	return false;
}

/* What was unpacked and is no text, of what belongs together. */
static void look_for_strange(struct scan *s, const struct gate_stretches *media,
			     const struct gate_decoded *below)
{
	const struct layer *l = s->layer;
	size_t at;

	for (size_t i = 0; i < l->n_blocks; i++) {
		size_t end = (size_t)l->block[i].out + l->block[i].out_len;

		if (!l->block[i].is_loose &&
		    find_unread(l, l->block[i].out, end, media, below, &at)) {
			scan_found(s, gate_rule_binary, GATE_BINARY, SEVERITY_BINARY, at,
				   end - at > 64 ? at + 64 : end);
			return;
		}
	}
}

void look_for_binary(struct scan *s, const struct gate_stretches *media,
		     const struct gate_decoded *below)
{
	const struct layer *l = s->layer;
	bool is_blocks = l->kind == LAYER_BLOCKS;
	size_t at;

	if (layer_is_backwards(l))
		return;
	/* What happens to decode as base64, hex or selectors must be long to be one. */
	if (is_blocks && l->encoding != GATE_DEFLATE && l->encoding != GATE_UTF16)
		look_for_opaque(s, media, below);
	else if (is_blocks && l->encoding == GATE_DEFLATE)
		look_for_strange(s, media, below);
	else if (l->kind == LAYER_ROOT && find_unread(l, 0, l->len, media, below, &at))
		scan_found(s, gate_rule_binary, GATE_BINARY, SEVERITY_BINARY, at,
			   l->len - at > 64 ? at + 64 : l->len);
}
