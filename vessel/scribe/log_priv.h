/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * What log.c and recover.c share.
 */
#ifndef LYCH_VESSEL_SCRIBE_LOG_PRIV_H
#define LYCH_VESSEL_SCRIBE_LOG_PRIV_H

#include "vessel/scribe/log.h"
#include "vessel/scribe/seals.h"
#include "vessel/scribe/unsealed.h"

#define HEADER_EVENT "scribe.segment"

struct scribe_log {
	struct scribe_log_config cfg;
	int dirfd, lock_fd, fd;
	uint64_t segment, size;
	struct audit_chain chain;
	struct streams streams;
	struct seals *seals;
	struct err
		seal_flaw; /* of what was recovered; the chain's own flaw comes first */
	struct unsealed found; /* what was recovered behind the last seal */
	usec_t sealed_at;
	struct buf staged;
	size_t n_staged;
	bool is_broken; /* a commit failed: nothing works any more */
	struct scribe_counts counts;
};

MUST_CHECK int log_open_segment(struct scribe_log *l, uint64_t n, int flags,
				struct err *err);
/* Read what a writer before us has left, and judge it; the seals are open. */
MUST_CHECK int log_recover(struct scribe_log *l, struct err *err);

#endif
