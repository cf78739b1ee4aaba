/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a server of git says before a push (gitprotocol-http, receive-pack): its refs, and in the
 * first line what it can do. That line is written anew: with no-thin, so that the client sends packs
 * that can be read by themselves, and without what would make it send more than commands and a
 * pack (signed pushes, options). All behind it passes as it comes. Pure.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_GIT_REFS_H
#define LYCH_VESSEL_BROKER_INTENTS_GIT_REFS_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "vessel/egress/reason.h"
#include <stdbool.h>
#include <stddef.h>

/* Zero is a good beginning. */
struct git_refs {
	struct buf held;
	bool is_written; /* the first line; nothing is held from then on */
};
void git_refs_done(struct git_refs *r);

/* What may go on is added to out. Refused where what comes is no such beginning, or is of a
 * repository whose ids are not SHA-1's. */
MUST_CHECK int git_refs_feed(struct git_refs *r, const void *data, size_t len,
			     struct buf *out, enum reason *ret_reason, struct err *err);
/* It must have had its first line. */
MUST_CHECK int git_refs_end(const struct git_refs *r, enum reason *ret_reason,
			    struct err *err);

#endif
