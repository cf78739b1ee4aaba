/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Inside a scan (gate.c): the roots (root.c), what is found in a layer and where that is
 * in the parts (found.c), and what is looked for in each layer (look.c).
 */
#ifndef LYCH_VESSEL_GATE_SCAN_H
#define LYCH_VESSEL_GATE_SCAN_H

#include "common/attr.h"
#include "common/clock.h"
#include "vessel/gate/decode/decode.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/media/media.h"
#include "vessel/gate/rules/matcher.h"
#include "vessel/gate/text/fold.h"

struct gate {
	struct gate_config cfg;
	struct gate_matcher *matcher;
	const struct gate_private *private;
	void (*on_progress)(void *arg);
	void *progress_arg;
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
	struct gate_stretches public;
};

/* A picture, sound or PDF in a part. */
struct carried {
	uint32_t part;
	size_t from, to; /* of the part: its letters, or its bytes */
	unsigned depth;	 /* encodings undone */
	struct media media;
	struct buf text; /* what can be read in it */
};

/* What of a part was judged as a whole: from where the first of it begins to where the last ends. */
struct judged {
	uint32_t part;
	size_t from, to;
};

/* A root text, and where its parts are. */
struct root {
	char *data;
	size_t len, cap;
	struct {
		size_t start, len;
		uint32_t part;
		size_t from; /* of the part */
	} *piece;
	size_t n, n_cap;
	bool is_split;		  /* only what lies across a piece's start counts */
	const struct carried *of; /* the text of one of these, which has no pieces */
};

struct scan {
	struct gate *g;
	const struct gate_input *in;
	struct gate_report *r;
	const struct root *root;
	const struct layer *layer; /* being searched */
	struct carried *carried;   /* by part and place */
	size_t n_carried;
	struct judged *judged; /* by part */
	size_t n_judged;
	usec_t deadline;
	size_t budget; /* bytes that may still be decoded */
	unsigned layers;
	bool failed;
	bool only_never; /* nothing counts but what may never leave: registered terms, canaries */
};

/* ---- root.c ---- */

/* All parts, one behind the other, without what they carry: those that the other side gave, or all
 * others. */
void root_join(struct root *r, const struct scan *s, bool of_echoes);
/* Only the borders between parts of one tag: of those that the other side did not give, or of all in the
 * tags where it gave one. */
void root_all_borders(struct root *r, const struct scan *s, bool with_echoes);
void root_done(struct root *r);
/* The piece that the byte lies in; r->n > 0. */
size_t root_piece_at(const struct root *r, size_t at);

/* ---- carried.c ---- */

void carried_find(struct scan *s);
void carried_done(struct scan *s);
/* Nothing else is in that part. */
bool carried_is_all_of(const struct scan *s, uint32_t part);

/* Also for who asked: r->judged. Of what was found until now. */
void judged_find(struct scan *s);
void judged_done(struct scan *s);
/* NULL: nothing in that part. */
const struct judged *judged_in(const struct scan *s, uint32_t part);

/* ---- found.c ---- */

struct span {
	size_t start, end;
};

/* From the layer's span to the root's. */
struct span layer_span_in_root(const struct layer *l, size_t start, size_t end);
/* Where in the parts it is; false when it is nowhere that counts. */
MUST_CHECK bool finding_place(const struct scan *s, struct span whole, struct span span,
			      struct gate_finding *f);
bool finding_covers(const struct gate_finding *a, const struct gate_finding *b);
/* In the layer being searched: [start, end). */
void scan_found(struct scan *s, const char *rule, enum gate_family family,
		double severity, size_t start, size_t end);
/* For gate_matcher_run; arg is the scan. */
bool scan_on_match(const struct gate_rule *rule, const struct gate_match *m, void *arg);
extern const char gate_rule_binary[];

/* ---- look.c ---- */

/* What was decoded is paid for. */
void scan_pay(struct scan *s, const struct gate_decoded *d);
struct layer layer_of_blocks(const struct layer *above, const struct gate_decoded *d,
			     enum gate_encoding e);
/* kind: one that has a map. */
struct layer layer_of_folded(const struct layer *above, const struct gate_folded *f,
			     enum layer_kind kind);
void look_for_canaries(struct scan *s);
void look_for_private(struct scan *s);
void look_at_kinds(struct scan *s);
/* Pictures, sound and their like: they are a finding as such, and are not read. The caller frees
 * the list. */
struct gate_stretches layer_media(const struct scan *s, const struct layer *l);
/* What was decoded of a block that may be more than belongs together is no more than that; and what goes over
 * the end of a block, neither. */
void layer_pass_on_loose(const struct layer *l, struct gate_decoded *below);
/* What is opaque backwards is so forwards, unless it is something that can be known. */
bool layer_is_backwards(const struct layer *l);
/* below: what the layer decodes to; NULL: that was not tried. */
void look_for_binary(struct scan *s, const struct gate_stretches *media,
		     const struct gate_decoded *below);

#define SEVERITY_OPAQUE 0.6

#endif
