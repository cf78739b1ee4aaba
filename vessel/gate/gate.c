/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Theory of operation. All parts are joined into one root text ("name: value" for an
 * object's members, a newline between others), what the other side itself had given into
 * another one. look() searches a layer, then makes the layers below it: the folded text, what
 * runs of base64, hex, gzip and UTF-16 decode to, what characters that show nothing stand for
 * (unseen.c), the text backwards. Each layer knows its way back to the root, so that each
 * finding ends as a span of a part; a span inside an encoded run is all of the run.
 *
 * A third root holds only the borders between parts of one tag, and the end of what was
 * sent before, without anything between: what is found across a border there is a secret
 * that was cut.
 *
 * Bytes that were decoded are paid from a budget of eight times the input; the deadline is
 * looked at before each layer and within the search. Both running out mean 1.0.
 */
#include "vessel/gate/gate.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/gate/decode/public.h"
#include "vessel/gate/git/git.h"
#include "vessel/gate/scan.h"
#include "vessel/gate/score.h"
#include "vessel/gate/text/backwards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_DEFAULT_USEC (2 * USEC_PER_SEC)
/* A text of nothing but base64 is read three ways in each of three layers. */
#define DECODED_RATIO 8
#define DECODED_MIN_BYTES ((size_t)512 << 10)
#define LAYERS_MAX 512

_Static_assert(GATE_UNPACKED_MAX_BYTES == PACK_TOTAL_MAX_BYTES,
	       "what is told of a pack is what is taken");

static void look(struct scan *s, const struct layer *l);

/* Before each step: whoever watches sees it, and it ends at its deadline. */
static bool scan_goes_on(struct scan *s)
{
	const struct gate *g = s->g;

	if (g->on_progress)
		g->on_progress(g->progress_arg);
	s->failed |= clock_thread_usec() > s->deadline;
	return !s->failed;
}

static void look_below(struct scan *s, const struct layer *l)
{
	const struct layer *above = s->layer;

	look(s, l);
	s->layer = above;
}

static void look_in_blocks(struct scan *s, const struct layer *l,
			   const struct gate_decoded *d, enum gate_encoding e)
{
	const struct layer below = layer_of_blocks(l, d, e);

	if (d->n && !s->failed)
		look_below(s, &below);
}

/* The layer with its escapes undone: the decoders of `from` to `to`. */
static void look_at_unescaped(struct scan *s, const struct layer *l, unsigned how,
			      enum gate_encoding from, enum gate_encoding to)
{
	const struct gate_stretches none = {0};
	struct gate_folded f;
	struct layer plain;

	gate_fold(l->data, l->len, how, &f);
	plain = layer_of_folded(l, &f, LAYER_FOLDED);
	plain.depth++;
	for (unsigned e = from; e <= to && !s->failed; e++) {
		struct gate_decoded d;

		gate_decode((enum gate_encoding)e, f.data, f.len, &none, s->budget, &d);
		scan_pay(s, &d);
		look_in_blocks(s, &plain, &d, (enum gate_encoding)e);
		gate_decoded_done(&d);
	}
	if (f.had_nested && plain.depth < GATE_DEPTH_MAX && !s->failed)
		look_at_unescaped(s, &plain, how, from, to);
	gate_folded_done(&f);
}

/* Bytes of a compressed stream, and characters that stand for bytes, which were written as escapes: the
 * folded text has them not. */
static void look_at_escaped_bytes(struct scan *s, const struct layer *l,
				  const struct gate_folded *f)
{
	const enum gate_encoding packed = GATE_DEFLATE;
	unsigned how[GATE_FOLD_WAYS_MAX];
	size_t n = gate_fold_ways(f, how);

	for (size_t i = 0; i < n && !s->failed; i++)
		look_at_unescaped(s, l, how[i], packed, packed);
	if (f->had_unseen && !s->failed)
		look_at_unescaped(s, l, FOLD_ESCAPES, GATE_TAGS, GATE_SELECTORS);
}

static void fold(struct scan *s, const struct layer *l)
{
	struct gate_folded f;
	struct layer below;

	gate_fold_around(l->data, l->len, GATE_REACH, &f);
	below = layer_of_folded(l, &f, LAYER_FOLDED);
	below.depth += f.had_escapes ? 1U : 0U;
	if (f.changed && (f.had_escapes || l->kind != LAYER_FOLDED))
		look_below(s, &below);
	if (!s->failed)
		look_at_escaped_bytes(s, l, &f);
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
	below = layer_of_folded(l, &f, LAYER_WORDLESS);
	if (f.changed)
		look_below(s, &below);
	gate_folded_done(&f);
}

static void reverse(struct scan *s, const struct layer *l)
{
	char *data = gate_backwards(l->data, l->len);
	struct layer below = {.kind = LAYER_REVERSED,
			      .parent = l,
			      .data = data,
			      .len = l->len,
			      .depth = l->depth + 1};

	look_below(s, &below);
	free(data);
}

static void decode(struct scan *s, const struct layer *l)
{
	struct gate_stretches media = layer_media(s, l);
	struct gate_decoded d[GATE_ENCODING_MAX_] = {0};

	for (unsigned e = 0; e < GATE_ENCODING_MAX_ && scan_goes_on(s); e++) {
		gate_decode((enum gate_encoding)e, l->data, l->len, &media, s->budget,
			    &d[e]);
		scan_pay(s, &d[e]);
		layer_pass_on_loose(l, &d[e]);
	}
	look_for_binary(s, &media, d);
	free(media.one);
	for (unsigned e = 0; e < GATE_ENCODING_MAX_ && !layer_is_backwards(l); e++)
		for (size_t i = 0; i < d[e].n_opaque && !s->failed; i++)
			scan_found(s, "opaque", GATE_BINARY, SEVERITY_OPAQUE,
				   d[e].opaque[i].start, d[e].opaque[i].end);
	for (unsigned e = 0; e < GATE_ENCODING_MAX_; e++) {
		look_in_blocks(s, l, &d[e], (enum gate_encoding)e);
		gate_decoded_done(&d[e]);
	}
}

static void look_here(struct scan *s, const struct layer *l)
{
	unsigned with = s->root->is_split ? GATE_RULE_SPLIT : 0;
	unsigned without = l->kind == LAYER_REVERSED ? GATE_RULE_WEAK : 0;

	if (s->failed || l->len == 0)
		return;
	s->layer = l;
	if (++s->layers > LAYERS_MAX || !scan_goes_on(s) ||
	    !gate_matcher_run(s->g->matcher, l->data, l->len, with, without, s->deadline,
			      scan_on_match, s)) {
		s->failed = true;
		return;
	}
	look_for_canaries(s);
	if (scan_goes_on(s))
		look_for_private(s);
	if (s->failed || l->kind == LAYER_WORDLESS)
		return;
	if (l->kind != LAYER_REVERSED) /* where no word is one */
		without_words(s, l);
	if (!s->root->is_split)
		look_at_kinds(s);
	if (!s->failed && l->depth >= GATE_DEPTH_MAX) {
		struct gate_stretches media = layer_media(s, l);

		look_for_binary(s, &media, NULL);
		free(media.one);
	}
	if (s->failed || l->depth >= GATE_DEPTH_MAX)
		return;
	fold(s, l);
	decode(s, l);
	/* look-alikes are folded when what is above is read backwards */
	if (!layer_is_backwards(l) && !s->root->is_split &&
	    (l->kind != LAYER_FOLDED || l->depth > l->parent->depth))
		reverse(s, l);
}

static void look(struct scan *s, const struct layer *l)
{
	struct layer here = *l;

	if (l->kind == LAYER_ROOT || l->kind == LAYER_BLOCKS)
		here.public = gate_find_public(l->data, l->len);
	look_here(s, &here);
	s->layer = l; /* which outlives this call */
	free(here.public.one);
}

static void look_at_root(struct scan *s, const struct root *r)
{
	const struct layer l = {.kind = LAYER_ROOT,
				.data = r->data,
				.len = r->len,
				.depth = r->of ? r->of->depth : 0};

	s->root = r;
	s->layer = &l;
	if (r->of && s->g->cfg.refuses[r->of->media.medium])
		scan_found(s, r->of->media.name,
			   r->of->media.medium == GATE_PDF ? GATE_FILE : GATE_MEDIA, 1.0,
			   0, 0);
	else if (r->len) /* a picture without words has nothing to look at */
		look(s, &l);
	s->root = NULL;
	s->layer = NULL;
}

/* What came from the other side is a text of its own: it makes nothing of what stands beside it,
 * and hides nothing of it. */
static void look_at_parts(struct scan *s, bool of_echoes)
{
	struct root r = {0};

	root_join(&r, s, of_echoes);
	if (r.n)
		look_at_root(s, &r);
	root_done(&r);
}

static void look_at_carried(struct scan *s)
{
	for (size_t i = 0; i < s->n_carried && !s->failed; i++) {
		const struct carried *c = &s->carried[i];
		const struct root r = {.data = c->text.data, .len = c->text.len, .of = c};

		look_at_root(s, &r);
	}
}

static void look_at_borders(struct scan *s, bool with_echoes)
{
	struct root r = {.is_split = true};

	root_all_borders(&r, s, with_echoes);
	if (r.n)
		look_at_root(s, &r);
	root_done(&r);
}

/* The values that the other side gave are no secret one by one; in a row, which the job chose,
 * they can spell one that may never leave. */
static void look_across_borders(struct scan *s)
{
	look_at_borders(s, false);
	for (size_t i = 0; i < s->in->n_parts && !s->only_never; i++)
		s->only_never = s->in->parts[i].kind == GATE_PART_ECHO;
	if (s->only_never)
		look_at_borders(s, true);
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

static void scan_parts(struct gate *g, const struct gate_input *in, usec_t deadline,
		       struct gate_report *ret)
{
	struct scan s = {.g = g, .in = in, .r = ret, .deadline = deadline};
	size_t bytes = 0;

	ret->n = 0;
	ret->n_judged = 0;
	ret->note[0] = '\0';
	ret->unpacked = 0;
	if (fits(in, &bytes)) {
		s.budget = bytes * DECODED_RATIO;
		if (s.budget < DECODED_MIN_BYTES)
			s.budget = DECODED_MIN_BYTES;
		carried_find(&s);
		look_at_parts(&s, false);
		look_at_parts(&s, true);
		look_at_carried(&s);
		judged_find(&s);
		look_across_borders(&s);
		judged_done(&s);
		carried_done(&s);
	} else {
		s.failed = true;
	}
	if (s.failed)
		fail(&s);
	qsort(ret->finding, ret->n, sizeof(ret->finding[0]), by_place);
	ret->score = gate_score_of(ret->finding, ret->n, in->carry,
				   g->cfg.portal_threshold, g->cfg.forbidden_threshold);
	ret->verdict = gate_judge(ret->score, g->cfg.portal_threshold,
				  g->cfg.forbidden_threshold);
}

/* ---- requests of git's ------------------------------------------------------------ */

/*
 * A question whose last part is the body of a request of git's. What is before it (the URL, header fields) is read
 * as ever. The body is unpacked into words and ids (git/git.h). The words are a text like any other; ids came from
 * the other side or are digests, and only what may never leave counts in them. Nothing of it can be rewritten without
 * breaking it, so there is no score between: below the forbidden threshold it passes, from there on the request is
 * refused as a whole, and what could not be read is refused too.
 */
struct git_scan {
	struct gate *g;
	const struct gate_input *in;
	usec_t began, deadline; /* of all of it */
	struct gate_report *ret;
	struct gate_report *one; /* of what is looked at now */
};

static bool git_scan_is_for(const struct gate_input *in)
{
	return in->n_parts > 0 && gate_part_is_git(in->parts[in->n_parts - 1].kind);
}

/* Of no place that could be rewritten. */
static void git_add(struct git_scan *s, const struct gate_finding *f)
{
	struct gate_finding *to;

	if (s->ret->n == GATE_FINDINGS_MAX)
		return;
	to = &s->ret->finding[s->ret->n++];
	*to = *f;
	to->part = (uint32_t)(s->in->n_parts - 1);
	to->offset = 0;
	to->len = 1;
	to->is_split = true;
}

static void git_refuse(struct git_scan *s, const char *note)
{
	s->ret->score = 1.0;
	s->ret->verdict = GATE_REFUSE;
	(void)snprintf(s->ret->note, sizeof(s->ret->note), "%.*s", GATE_NOTE_SIZE - 1,
		       note);
}

static void git_refuse_unread(struct git_scan *s, const struct err *why)
{
	static const struct gate_finding unreadable = {
		.family = GATE_UNREADABLE, .severity = 1.0, .rule = "unreadable"};

	/* how much it took is not known */
	s->ret->unpacked = GATE_UNPACKED_MAX_BYTES;
	/* the last of so many findings says less */
	s->ret->n -= s->ret->n == GATE_FINDINGS_MAX;
	git_add(s, &unreadable);
	git_refuse(s, why->msg);
}

/* What made it refused: what does so by itself, or all of it together. */
static void git_take(struct git_scan *s)
{
	double forbidden = s->g->cfg.forbidden_threshold, most = 0;

	for (size_t i = 0; i < s->one->n; i++)
		if (s->one->finding[i].severity > most)
			most = s->one->finding[i].severity;
	for (size_t i = 0; i < s->one->n; i++)
		if (most < forbidden || s->one->finding[i].severity >= forbidden)
			git_add(s, &s->one->finding[i]);
}

/* False: it may not leave. name: what it is, for the person who has to look for it. */
static bool git_look(struct git_scan *s, const char *name, const struct git_words *w)
{
	const struct gate_part part[] = {
		{.data = buf_str(&w->text), .len = w->text.len, .kind = GATE_PART_TEXT},
		{.data = buf_str(&w->ids), .len = w->ids.len, .kind = GATE_PART_ECHO},
		{.data = buf_str(&w->numbers),
		 .len = w->numbers.len,
		 .kind = GATE_PART_ECHO},
	};
	const struct gate_input in = {.parts = part,
				      .n_parts = ARRAY_SIZE(part),
				      .canaries = s->in->canaries,
				      .n_canaries = s->in->n_canaries};
	char note[GATE_NOTE_SIZE];
	bool is_cut;

	scan_parts(s->g, &in, s->deadline, s->one);
	if (s->one->verdict != GATE_REFUSE)
		return true;
	git_take(s);
	is_cut = gate_has_family(s->one->finding, s->one->n, GATE_UNREADABLE);
	if (is_cut)
		s->ret->unpacked = GATE_UNPACKED_MAX_BYTES;
	(void)snprintf(note, sizeof(note), "%s%s", name,
		       is_cut ? ": it could not be read to its end" : "");
	git_refuse(s, note);
	return false;
}

/* A pack may hold more than a text does: it has the time that a text of as many bytes would have. */
static void git_count(struct git_scan *s, size_t bytes)
{
	usec_t whole = s->g->cfg.deadline_usec;

	s->ret->unpacked += bytes;
	if (s->ret->unpacked > GATE_INPUT_MAX_BYTES)
		s->deadline = s->began + whole * s->ret->unpacked / GATE_INPUT_MAX_BYTES;
}

/* The first that may not leave is told, and the rest is not looked at. */
static bool git_on_object(const struct pack_object *o, void *arg)
{
	struct git_scan *s = arg;
	cleanup_git_words struct git_words w;
	char id[2 * SHA1_SIZE + 1], name[64];
	struct err err = ERR_INIT;

	git_count(s, o->len);
	if (git_read_object(o, &w, &err) < 0) {
		git_refuse_unread(s, &err);
		return false;
	}
	hex_encode(o->id, SHA1_SIZE, id);
	(void)snprintf(name, sizeof(name), "in %s %s", pack_type_name(o->type), id);
	return git_look(s, name, &w);
}

static void git_read_body(struct git_scan *s)
{
	const struct gate_part *body = &s->in->parts[s->in->n_parts - 1];
	bool is_push = body->kind == GATE_PART_GIT_PUSH;
	cleanup_git_words struct git_words w;
	const void *pack = NULL;
	struct err err = ERR_INIT;
	size_t pack_len = 0;

	if ((is_push ? git_read_push(body->data, body->len, &w, &pack, &pack_len, &err)
		     : git_read_fetch(body->data, body->len, &w, &err)) < 0)
		git_refuse_unread(s, &err);
	else if (git_look(s, "in the request itself", &w) && pack &&
		 pack_read(pack, pack_len, git_on_object, s, &err) < 0)
		git_refuse_unread(s, &err);
}

static void git_scan(struct gate *g, const struct gate_input *in, usec_t deadline,
		     struct gate_report *ret)
{
	cleanup_free struct gate_report *one = xnew(struct gate_report);
	struct git_scan s = {.g = g,
			     .in = in,
			     .began = deadline - g->cfg.deadline_usec,
			     .deadline = deadline,
			     .ret = ret,
			     .one = one};
	struct gate_input before = *in;

	before.n_parts--;
	scan_parts(g, &before, deadline, ret);
	/* what is refused already needs no second reason */
	if (ret->verdict != GATE_REFUSE)
		git_read_body(&s);
}

void gate_scan(struct gate *g, const struct gate_input *in, struct gate_report *ret)
{
	usec_t deadline = clock_thread_usec() + g->cfg.deadline_usec;

	if (git_scan_is_for(in))
		git_scan(g, in, deadline, ret);
	else
		scan_parts(g, in, deadline, ret);
}

void gate_on_progress(struct gate *g, void (*fn)(void *arg), void *arg)
{
	g->on_progress = fn;
	g->progress_arg = arg;
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

int gate_rules_check(struct err *err)
{
	struct gate_matcher *m = NULL;

	if (gate_matcher_new(&m, err) < 0)
		return -1;
	gate_matcher_free(m);
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
