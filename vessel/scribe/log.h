/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * The log as its one writer has it: an open segment, the head of the chain, and the last
 * number of each producer's stream. Events are staged and become durable together, with
 * one write and one fdatasync (scribe_log_commit); nobody is told "written" before it.
 *
 * A failed write or fsync is final: what of it reached the disk is not known, and an
 * fsync that is tried again may report success for pages that were thrown away. The
 * caller ends the process; the next one recovers from the files.
 */
#ifndef LYCH_VESSEL_SCRIBE_LOG_H
#define LYCH_VESSEL_SCRIBE_LOG_H

#include "common/clock.h"
#include "common/jsonw.h"
#include "vessel/scribe/seal.h"
#include "vessel/scribe/streams.h"

#define SCRIBE_SEGMENT_BYTES ((uint64_t)64 << 20)
/* Staged at most: then a commit is due. */
#define SCRIBE_BATCH_EVENTS 512
#define SCRIBE_BATCH_BYTES ((size_t)1 << 20)
struct scribe_log;

struct scribe_log_config {
	const char *dir;
	uint64_t segment_bytes; /* 0: SCRIBE_SEGMENT_BYTES */
	const struct clock_ops *clock;
	const struct random_ops *rng;
	struct uuid kernel_boot;
};

/*
 * Take the directory (ours, 0700; locked for the life of the process), check the last two
 * segments, cut a torn last line; what was sealed must be there as it was. Keys begin where
 * there are none. ERRID_AUDIT_DIR, _CHAIN, _SEAL, _WRITE, ERRID_START_LOCKED, _LIMIT. Of the log nothing is written yet but the cut; the first record of this writer is staged, so
 * scribe_log_commit() comes next.
 */
MUST_CHECK int scribe_log_open(const struct scribe_log_config *cfg,
			       struct scribe_log **ret, struct err *err);
void scribe_log_free(struct scribe_log *l);

/* The last number of a stream, 0 when it is new; staged events count. */
uint64_t scribe_log_last(struct scribe_log *l, const char *prod,
			 const struct uuid *stream);

enum scribe_taken { SCRIBE_STAGED, SCRIBE_DUPLICATE };
/*
 * Stage an event: pseq must be the stream's next. One that was written before is dropped
 * if it is the very same (SCRIBE_DUPLICATE), refused if it is another one or lies too far
 * back. ERRID_AUDIT_EVENT (too long, one producer too many), ERRID_AUDIT_ORDER (gap, other
 * content).
 * members: the event's members, encoded, without braces.
 */
MUST_CHECK int scribe_log_add(struct scribe_log *l, const char *prod,
			      const struct uuid *stream, uint64_t pseq,
			      const char *members, size_t len,
			      enum scribe_taken *ret_taken, struct err *err);
/* A record of the scribe's own. */
MUST_CHECK int scribe_log_own(struct scribe_log *l, const char *event,
			      const struct buf *more, struct err *err);
bool scribe_log_is_full(const struct scribe_log *l); /* commit before the next add */
/* Write and fdatasync what is staged; begins a new segment when the old one is full. */
MUST_CHECK int scribe_log_commit(struct scribe_log *l, struct err *err);

/*
 * Seals (seals.h). One is due after 256 records or 60 s, but not twice in a second. It seals what
 * is durable, so commit first. ends_epoch: the key that signs it is wiped, the next one goes on;
 * an hour does that by itself. What fails is final.
 */
bool scribe_log_seal_is_due(const struct scribe_log *l);
MUST_CHECK int scribe_log_seal(struct scribe_log *l, bool ends_epoch, struct err *err);
/* The newest; there is one from scribe_log_open() on. */
const struct seal *scribe_log_newest(const struct scribe_log *l);
/* The public key with which the log's keys began. */
void scribe_log_genesis(const struct scribe_log *l, char ret[SEAL_TEXT32]);

struct scribe_counts {
	uint64_t events, batches, duplicates, recovered_bytes, seq;
	uint64_t seals; /* that were made */
};
struct scribe_counts scribe_log_counts(const struct scribe_log *l);
const struct uuid *scribe_log_id(const struct scribe_log *l);

#endif
