/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Indexes that have no links within: those of Go modules and of crates. What comes is judged by
 * line or as a whole, and passes as it is; only a crate registry's config.json is written anew.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_REGISTRY_TEXT_H
#define LYCH_VESSEL_BROKER_INTENTS_REGISTRY_TEXT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "vessel/broker/intents/registry_rewrite.h"
#include <stddef.h>

#define REGISTRY_WHOLE_MAX ((size_t)64 << 10) /* a module's info, a note, a config.json */
#define REGISTRY_CRATE_LINE_MAX ((size_t)1 << 20)

struct registry_text {
	enum registry_form form; /* one of the text forms */
	registry_map *map;	 /* of config.json's "dl" */
	void *arg;
	struct buf held; /* the line, or all of it */
};

void registry_text_init(struct registry_text *t, enum registry_form form,
			registry_map *map, void *arg);
void registry_text_done(struct registry_text *t);
/* Both append to out, and fail with ERRID_REGISTRY_INDEX. */
MUST_CHECK int registry_text_feed(struct registry_text *t, const void *data, size_t len,
				  struct buf *out, struct err *err);
MUST_CHECK int registry_text_end(struct registry_text *t, struct buf *out,
				 struct err *err);

#endif
