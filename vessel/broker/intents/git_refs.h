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
	bool is_refused; /* it was told; all that comes is dropped */
};
void git_refs_done(struct git_refs *r);

/* What may go on is added to out. Where what comes is no such beginning, or is of a repository whose
 * ids are not SHA-1's, that is the error of a server that takes no push (a status is out already, and git shows
 * nothing of a reply that is cut); *ret_reason and err, which are else untouched, say why. */
void git_refs_feed(struct git_refs *r, const void *data, size_t len, struct buf *out,
		   enum reason *ret_reason, struct err *err);
/* It must have had its first line; as above. */
void git_refs_end(struct git_refs *r, struct buf *out, enum reason *ret_reason,
		  struct err *err);

#endif
