/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. All parts are joined into one root text ("name: value" for an
 * object's members, a newline between others). look() searches a layer, then makes the
 * layers below it: the folded text, what runs of base64, hex, gzip and UTF-16 decode to,
 * the text backwards. Each layer knows its way back to the root, so that each finding ends
 * as a span of a part; a span inside an encoded run is all of the run.
 *
 * A second root holds only the borders between parts of one tag, and the end of what was
 * sent before, without anything between: what is found across a border there is a secret
 * that was cut.
 *
 * Bytes that were decoded are paid from a budget of four times the input; the deadline is
 * looked at before each layer and within the search. Both running out mean 1.0.
 */
#include "vessel/gate.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/gate_decode.h"
#include "vessel/gate_fold.h"
#include "vessel/gate_kind.h"
#include "vessel/gate_mac.h"
#include "vessel/gate_matcher.h"
#include "vessel/gate_private.h"
#include "vessel/gate_runs.h"
#include "vessel/gate_score.h"
#include "vessel/gate_valid.h"

#define DEADLINE_DEFAULT_USEC (2 * USEC_PER_SEC)
#define DECODED_RATIO 4
#define DECODED_MIN_BYTES ((size_t)256 << 10)
#define SEVERITY_BINARY 0.85
#define SEVERITY_OPAQUE 0.6
#define LAYERS_MAX 512

static const char rule_binary[] = "binary";

struct gate {
	struct gate_config cfg;
	struct gate_matcher *matcher;
	const struct gate_private *private;
};

enum layer_kind {
	LAYER_ROOT,
	LAYER_FOLDED,
	LAYER_BLOCKS,
	LAYER_REVERSED,
	LAYER_WORDLESS, /* has a map, as the folded one */
};

struct layer {
	enum layer_kind kind;
	const struct layer *parent;
	const char *data;
	size_t len;
	unsigned depth; /* encodings undone */
	const uint32_t *map;
	const struct gate_block *block;
	size_t n_blocks;
	enum gate_encoding encoding; /* of blocks */
};

/* A root text, and where its parts are. */
struct root {
	char *data;
	size_t len, cap;
	struct {
		size_t start;
		uint32_t part;
	} *piece;
	size_t n, n_cap;
	bool is_split; /* only what lies across a piece's start counts */
};

struct scan {
	struct gate *g;
	const struct gate_input *in;
	struct gate_report *r;
	const struct root *root;
	const struct layer *layer; /* being searched */
	usec_t deadline;
	size_t budget; /* bytes that may still be decoded */
	unsigned layers;
	bool failed;
};

/* ---- roots ----------------------------------------------------------------------- */

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

static void root_piece(struct root *r, size_t part)
{
	if (r->n == r->n_cap) {
		r->n_cap = r->n_cap * 2 + 16;
		r->piece = xreallocarray(r->piece, r->n_cap, sizeof(*r->piece));
	}
	r->piece[r->n].start = r->len;
	r->piece[r->n++].part = (uint32_t)part;
}

static void root_done(struct root *r)
{
	if (r->data)
		explicit_bzero(r->data, r->len);
	free(r->data);
	free(r->piece);
}

static void root_join(struct root *r, const struct gate_input *in)
{
	for (size_t i = 0; i < in->n_parts; i++) {
		const struct gate_part *p = &in->parts[i];
		bool is_name = p->kind == GATE_PART_NAME;

		root_piece(r, i);
		root_add(r, p->data, p->len);
		root_add(r, is_name ? ": " : "\n", is_name ? 2 : 1);
	}
}

struct tagged {
	uint32_t tag, part;
};

/* The parts of one tag, each cut to its two ends. */
static void root_borders(struct root *r, const struct gate_input *in,
			 const struct tagged *of, size_t n)
{
	bool has_before = false;

	for (size_t i = 0; i < in->n_tails; i++)
		if (in->tails[i].tag == of->tag && in->tails[i].len) {
			root_add(r, in->tails[i].data, in->tails[i].len);
			has_before = true;
		}
	for (size_t i = 0; i < n; i++) {
		const struct gate_part *p = &in->parts[of[i].part];
		size_t head = p->len < GATE_TAIL_BYTES ? p->len : GATE_TAIL_BYTES;

		if (has_before) {
			root_piece(r, of[i].part);
			root_add(r, p->data, head);
		}
		if (!has_before || p->len > GATE_TAIL_BYTES) {
			root_add(r, "\n\n", 2);
			root_add(r, p->data + p->len - head, head);
		}
		has_before = true;
	}
	root_add(r, "\n\n", 2);
}

static int by_tag(const void *a, const void *b)
{
	const struct tagged *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return x->part < y->part ? -1 : x->part > y->part;
}

static void root_all_borders(struct root *r, const struct gate_input *in)
{
	cleanup_free struct tagged *t = xcalloc(in->n_parts + 1, sizeof(*t));
	size_t n = 0, end;

	for (size_t i = 0; i < in->n_parts; i++)
		if (in->parts[i].kind == GATE_PART_TEXT && in->parts[i].len) {
			t[n].tag = in->parts[i].tag;
			t[n++].part = (uint32_t)i;
		}
	qsort(t, n, sizeof(*t), by_tag);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && t[end].tag == t[i].tag; end++)
			;
		root_borders(r, in, t + i, end - i);
	}
}

/* ---- findings -------------------------------------------------------------------- */

/* From a layer's span to the root's. */
static void to_root(const struct layer *l, size_t *start, size_t *end)
{
	for (; l->parent; l = l->parent) {
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
}

static size_t piece_at(const struct root *r, size_t at)
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

struct span {
	size_t start, end;
};

/* Across a piece's start; the keyword before a value counts as a part of it. */
static bool place_split(const struct root *r, struct span whole, struct span span,
			struct gate_finding *f)
{
	size_t at = piece_at(r, whole.end - 1), begin = r->piece[at].start;

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

/* Where in the parts it is; false when it is nowhere that counts. */
static bool place(const struct scan *s, struct span whole, struct span span,
		  struct gate_finding *f)
{
	const struct root *r = s->root;
	size_t at, begin, start = span.start, end = span.end;

	if (start >= end || r->n == 0)
		return false;
	if (r->is_split)
		return place_split(r, whole, span, f);
	at = piece_at(r, start);
	begin = r->piece[at].start;
	f->part = r->piece[at].part;
	f->offset = (uint32_t)(start - begin);
	f->len = (uint32_t)(end - start);
	if (f->offset + f->len > s->in->parts[f->part].len) {
		/* on into the next part: no placeholder could stand for it */
		f->is_split = true;
		if (f->offset >= s->in->parts[f->part].len)
			return false;
		f->len = (uint32_t)s->in->parts[f->part].len - f->offset;
	}
	return true;
}

static bool covers(const struct gate_finding *a, const struct gate_finding *b)
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
	return f->rule != rule_binary || f->depth > 0;
}

/* Of a text without words only what the words hid is new: the rest is the same thing with
 * another border. */
static bool is_known(const struct scan *s, const struct gate_finding *a,
		     const struct gate_finding *f)
{
	bool is_there = s->layer->kind == LAYER_WORDLESS && a->family == f->family
				? overlaps(a, f)
				: covers(a, f);

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
	for (size_t i = 0; i < r->n; i++)
		if (!(covers(f, &r->finding[i]) && tells_all(f) &&
		      f->severity >= r->finding[i].severity))
			r->finding[kept++] = r->finding[i];
	r->n = kept;
	if (r->n == GATE_FINDINGS_MAX)
		s->failed = true;
	else
		r->finding[r->n++] = *f;
}

static struct span span_in_root(const struct layer *l, size_t start, size_t end)
{
	to_root(l, &start, &end);
	return (struct span){start, end};
}

/* In the layer being searched: [start, end), of a match that begins at `whole`. */
static void found_in(struct scan *s, const char *rule, enum gate_family family,
		     double severity, size_t whole, size_t start, size_t end)
{
	struct gate_finding f = {.family = family,
				 .severity = severity,
				 .rule = rule,
				 .depth = (uint8_t)s->layer->depth};
	uint8_t mac[SHA256_SIZE];

	if (!place(s, span_in_root(s->layer, whole, end),
		   span_in_root(s->layer, start, end), &f))
		return;
	if (s->in->parts[f.part].kind == GATE_PART_ECHO && family != GATE_EXACT &&
	    family != GATE_CANARY)
		return;
	gate_mac(s->g->cfg.mac_key, s->layer->data + start, end - start, mac);
	memcpy(f.mac, mac, sizeof(f.mac));
	keep(s, &f);
}

static void found(struct scan *s, const char *rule, enum gate_family family,
		  double severity, size_t start, size_t end)
{
	found_in(s, rule, family, severity, start, start, end);
}

static bool on_match(const struct gate_rule *rule, const struct gate_match *m, void *arg)
{
	struct scan *s = arg;

	found_in(s, rule->name, m->family, m->severity, m->whole, m->start, m->end);
	return !s->failed;
}

/* ---- what is searched in each layer ------------------------------------------------ */

static void look_for_canaries(struct scan *s)
{
	const struct layer *l = s->layer;

	for (size_t i = 0; i < s->in->n_canaries; i++) {
		const struct gate_canary *c = &s->in->canaries[i];
		const char *at = memmem(l->data, l->len, c->data, c->len);

		if (at)
			found(s, "canary", GATE_CANARY, 1.0, (size_t)(at - l->data),
			      (size_t)(at - l->data) + c->len);
	}
}

static bool on_private(size_t offset, size_t len, void *arg)
{
	struct scan *s = arg;

	found(s, "private", GATE_EXACT, 1.0, offset, offset + len);
	return !s->failed;
}

/* Registered terms in a layer, whose text is put into their form first. */
static void look_for_terms(struct scan *s, const struct layer *above, unsigned how)
{
	const struct layer *before = s->layer;
	struct gate_folded f;
	struct layer l;

	gate_fold(above->data, above->len, how, &f);
	l = (struct layer){
		.kind = LAYER_FOLDED,
		.parent = above,
		.data = f.data,
		.len = f.len,
		.depth = above->depth,
		.map = f.map,
	};
	s->layer = &l;
	gate_private_search(s->g->private, f.data, f.len, on_private, s);
	s->layer = before;
	gate_folded_done(&f);
}

/* What was decoded is paid for. */
static void pay(struct scan *s, const struct gate_decoded *d)
{
	s->failed |= d->too_large;
	s->budget -= d->len <= s->budget ? d->len : s->budget;
}

static struct layer layer_of_blocks(const struct layer *above,
				    const struct gate_decoded *d, enum gate_encoding e)
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
	pay(s, &d);
	if (d.n && !s->failed) {
		const struct layer l = layer_of_blocks(above, &d, GATE_BASE64);

		look_for_terms(s, &l, FOLD_SHAPES | FOLD_CASE | FOLD_LETTERS);
		look_for_short_terms(s, &l);
	}
	gate_decoded_done(&d);
}

static void look_for_private(struct scan *s)
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

/* The lines of a picture in base64 look drawn by lot, and it is known by what. */
static void forget_entropy(struct scan *s, size_t start, size_t end)
{
	struct span whole = span_in_root(s->layer, start, end);
	struct gate_report *r = s->r;
	struct gate_finding f = {0};
	size_t kept = 0;

	if (!place(s, whole, whole, &f))
		return;
	for (size_t i = 0; i < r->n; i++)
		if (r->finding[i].family != GATE_ENTROPY || !covers(&f, &r->finding[i]))
			r->finding[kept++] = r->finding[i];
	r->n = kept;
}

static void look_at_kind(struct scan *s, size_t start, size_t len)
{
	const struct gate_kind *k = gate_kind_of(s->layer->data + start, len);

	if (!k)
		return;
	if (k->family == GATE_MEDIA && s->layer->kind == LAYER_BLOCKS)
		forget_entropy(s, start, start + len);
	found(s, k->name, k->family, k->severity, start, start + len);
}

static void look_at_kinds(struct scan *s)
{
	const struct layer *l = s->layer;

	for (size_t i = 0; l->kind == LAYER_ROOT && i < s->root->n; i++)
		look_at_kind(s, s->root->piece[i].start,
			     s->in->parts[s->root->piece[i].part].len);
	for (size_t i = 0; l->kind == LAYER_BLOCKS && i < l->n_blocks; i++)
		look_at_kind(s, l->block[i].out, l->block[i].out_len);
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

/* Pictures, sound and their like: they are a finding as such, and are not read. The caller frees
 * the list. */
static struct gate_stretches media_of(const struct scan *s, const struct layer *l)
{
	bool is_root = l->kind == LAYER_ROOT && !s->root->is_split;
	size_t n = is_root ? s->root->n : l->kind == LAYER_BLOCKS ? l->n_blocks : 0;
	struct gate_stretches all = {0};

	for (size_t i = 0; i < n; i++) {
		size_t start = is_root ? s->root->piece[i].start : l->block[i].out;
		size_t len = is_root ? s->in->parts[s->root->piece[i].part].len
				     : l->block[i].out_len;
		const struct gate_kind *k = gate_kind_of(l->data + start, len);

		if (!k || k->family != GATE_MEDIA)
			continue;
		if (!all.one)
			all.one = xreallocarray(NULL, n - i, sizeof(*all.one));
		all.one[all.n++] = (struct gate_stretch){start, start + len};
	}
	return all;
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

/* A run that was decoded because something in it can be read, or by chance looks so, and
 * that is mostly something else. */
static void look_for_opaque(struct scan *s, const struct gate_stretches *media,
			    const struct gate_decoded *below)
{
	const struct layer *l = s->layer;
	size_t min = l->encoding == GATE_HEX ? GATE_OPAQUE16_MIN : GATE_OPAQUE64_MIN;

	for (size_t i = 0; i < l->n_blocks; i++) {
		const struct gate_block *b = &l->block[i];
		const char *data = l->data + b->out;
		size_t at;

		if (b->out_len >= min && !gate_kind_of(data, b->out_len) &&
		    distinct_bytes(data, b->out_len) > GATE_OPAQUE_DISTINCT &&
		    find_unread(l, b->out, (size_t)b->out + b->out_len, media, below,
				&at))
			found(s, "opaque", GATE_BINARY, SEVERITY_OPAQUE, b->out,
			      (size_t)b->out + b->out_len);
	}
}

/* What is opaque backwards is so forwards, unless it is something that can be known. */
static bool is_backwards(const struct layer *l)
{
	for (; l; l = l->parent)
		if (l->kind == LAYER_REVERSED)
			return true;
	return false;
}

static void look_for_binary(struct scan *s, const struct gate_stretches *media,
			    const struct gate_decoded *below)
{
	const struct layer *l = s->layer;
	bool is_blocks = l->kind == LAYER_BLOCKS;
	size_t at;

	if (is_backwards(l))
		return;
	/* What happens to decode as base64 or hex must be long to be one. */
	if (is_blocks && (l->encoding == GATE_BASE64 || l->encoding == GATE_HEX))
		look_for_opaque(s, media, below);
	else if ((l->kind == LAYER_ROOT || (is_blocks && l->encoding == GATE_DEFLATE)) &&
		 find_unread(l, 0, l->len, media, below, &at))
		found(s, rule_binary, GATE_BINARY, SEVERITY_BINARY, at,
		      l->len - at > 64 ? at + 64 : l->len);
}

/* ---- layers ---------------------------------------------------------------------- */

static void look(struct scan *s, const struct layer *l);

static void look_below(struct scan *s, const struct layer *l)
{
	const struct layer *above = s->layer;

	look(s, l);
	s->layer = above;
}

static void fold(struct scan *s, const struct layer *l)
{
	struct gate_folded f;
	struct layer below;

	gate_fold_around(l->data, l->len, GATE_REACH, &f);
	below = (struct layer){
		.kind = LAYER_FOLDED,
		.parent = l,
		.data = f.data,
		.len = f.len,
		.depth = l->depth + (f.had_escapes ? 1U : 0U),
		.map = f.map,
	};
	if (f.changed && (f.had_escapes || l->kind != LAYER_FOLDED))
		look_below(s, &below);
	gate_folded_done(&f);
}

/* A word that was put before, behind or into something hides nothing. */
static void without_words(struct scan *s, const struct layer *l)
{
	size_t n;
	const struct gate_span *word = gate_matcher_words(s->g->matcher, &n);
	struct gate_folded f;
	struct layer below;

	if (n == 0)
		return;
	gate_fold_words(l->data, l->len, word, n, GATE_REACH / 2, &f);
	below = (struct layer){
		.kind = LAYER_WORDLESS,
		.parent = l,
		.data = f.data,
		.len = f.len,
		.depth = l->depth,
		.map = f.map,
	};
	if (f.changed)
		look_below(s, &below);
	gate_folded_done(&f);
}

/* Characters backwards: what is behind it in UTF-8 stays with its first byte. */
static char *reversed(const char *data, size_t len)
{
	char *ret = xmalloc(len + 1);

	for (size_t i = 0, n; i < len; i += n) {
		for (n = 1; n < 4 && i + n < len && (unsigned char)data[i] >= 0xc2 &&
			    ((unsigned char)data[i + n] & 0xc0) == 0x80;)
			n++;
		memcpy(ret + len - i - n, data + i, n);
	}
	return ret;
}

static void reverse(struct scan *s, const struct layer *l)
{
	char *data = reversed(l->data, l->len);
	struct layer below = {.kind = LAYER_REVERSED,
			      .parent = l,
			      .data = data,
			      .len = l->len,
			      .depth = l->depth + 1};

	look_below(s, &below);
	free(data);
}

static void look_in_blocks(struct scan *s, const struct layer *l,
			   const struct gate_decoded *d, enum gate_encoding e)
{
	const struct layer below = layer_of_blocks(l, d, e);

	if (d->n && !s->failed)
		look_below(s, &below);
}

static void decode(struct scan *s, const struct layer *l)
{
	struct gate_stretches media = media_of(s, l);
	struct gate_decoded d[GATE_ENCODING_MAX_];

	for (unsigned e = 0; e < GATE_ENCODING_MAX_; e++) {
		gate_decode((enum gate_encoding)e, l->data, l->len, &media, s->budget,
			    &d[e]);
		pay(s, &d[e]);
	}
	look_for_binary(s, &media, d);
	free(media.one);
	for (unsigned e = 0; e < GATE_ENCODING_MAX_ && !s->failed && !is_backwards(l);
	     e++)
		if (d[e].opaque_len)
			found(s, "opaque", GATE_BINARY, SEVERITY_OPAQUE, d[e].opaque,
			      (size_t)d[e].opaque + d[e].opaque_len);
	for (unsigned e = 0; e < GATE_ENCODING_MAX_; e++) {
		look_in_blocks(s, l, &d[e], (enum gate_encoding)e);
		gate_decoded_done(&d[e]);
	}
}

static void look(struct scan *s, const struct layer *l)
{
	unsigned with = s->root->is_split ? GATE_RULE_SPLIT : 0;
	unsigned without = l->kind == LAYER_REVERSED ? GATE_RULE_WEAK : 0;

	if (s->failed || l->len == 0)
		return;
	s->layer = l;
	if (++s->layers > LAYERS_MAX || clock_boot_usec() > s->deadline ||
	    !gate_matcher_run(s->g->matcher, l->data, l->len, with, without, s->deadline,
			      on_match, s)) {
		s->failed = true;
		return;
	}
	look_for_canaries(s);
	look_for_private(s);
	if (s->failed || l->kind == LAYER_WORDLESS)
		return;
	if (l->kind != LAYER_REVERSED) /* where no word is one */
		without_words(s, l);
	if (!s->root->is_split)
		look_at_kinds(s);
	if (!s->failed && l->depth >= GATE_DEPTH_MAX) {
		struct gate_stretches media = media_of(s, l);

		look_for_binary(s, &media, NULL);
		free(media.one);
	}
	if (s->failed || l->depth >= GATE_DEPTH_MAX)
		return;
	fold(s, l);
	decode(s, l);
	/* look-alikes are folded when what is above is read backwards */
	if (!is_backwards(l) && !s->root->is_split &&
	    (l->kind != LAYER_FOLDED || l->depth > l->parent->depth))
		reverse(s, l);
}

static void look_at_root(struct scan *s, const struct root *r)
{
	const struct layer l = {.kind = LAYER_ROOT, .data = r->data, .len = r->len};

	s->root = r;
	s->layer = &l;
	look(s, &l);
	s->layer = NULL;
}

static void look_across_borders(struct scan *s)
{
	struct root r = {.is_split = true};

	root_all_borders(&r, s->in);
	if (r.n)
		look_at_root(s, &r);
	root_done(&r);
}

/* ---- the whole ------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct gate_finding *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void fail(struct scan *s)
{
	static const struct gate_finding unreadable = {
		.family = GATE_UNREADABLE,
		.severity = 1.0,
		.len = 1,
		.rule = "unreadable",
		.is_split = true,
	};

	if (s->r->n == GATE_FINDINGS_MAX)
		s->r->n--;
	s->r->finding[s->r->n++] = unreadable;
}

static bool fits(const struct gate_input *in, size_t *ret_bytes)
{
	size_t bytes = 0;

	if (in->n_parts > GATE_PARTS_MAX)
		return false;
	for (size_t i = 0; i < in->n_parts; i++) {
		if (in->parts[i].len > GATE_INPUT_MAX_BYTES)
			return false;
		bytes += in->parts[i].len;
		if (bytes > GATE_INPUT_MAX_BYTES)
			return false;
	}
	*ret_bytes = bytes;
	return true;
}

void gate_scan(struct gate *g, const struct gate_input *in, struct gate_report *ret)
{
	struct scan s = {.g = g, .in = in, .r = ret};
	struct root r = {0};
	size_t bytes = 0;
	double bucket;

	ret->n = 0;
	s.deadline = clock_boot_usec() + g->cfg.deadline_usec;
	if (fits(in, &bytes)) {
		s.budget = bytes * DECODED_RATIO;
		if (s.budget < DECODED_MIN_BYTES)
			s.budget = DECODED_MIN_BYTES;
		root_join(&r, in);
		if (r.n)
			look_at_root(&s, &r);
		look_across_borders(&s);
	} else {
		s.failed = true;
	}
	if (s.failed)
		fail(&s);
	root_done(&r);
	qsort(ret->finding, ret->n, sizeof(ret->finding[0]), by_place);
	ret->score = gate_score(ret->finding, ret->n);
	ret->added = gate_added(ret->finding, ret->n);
	bucket = ret->added > 0 ? gate_bucket_score(in->carry + ret->added) : 0;
	if (bucket > ret->score)
		ret->score = bucket;
	ret->verdict = gate_judge(ret->score, g->cfg.portal_threshold,
				  g->cfg.forbidden_threshold);
}

int gate_new(const struct gate_config *cfg, struct gate **ret, struct err *err)
{
	struct gate *g = xnew(struct gate);

	g->cfg = *cfg;
	if (!g->cfg.deadline_usec)
		g->cfg.deadline_usec = DEADLINE_DEFAULT_USEC;
	if (gate_matcher_new(&g->matcher, err) < 0) {
		free(g);
		return -1;
	}
	*ret = g;
	return 0;
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	gate_matcher_free(g->matcher);
	explicit_bzero(&g->cfg, sizeof(g->cfg));
	free(g);
}

void gate_set_private(struct gate *g, const struct gate_private *p)
{
	g->private = p;
}
