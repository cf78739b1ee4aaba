/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * The seals of a log, one after the other, each checked against the one before it: whose key
 * signed it, by whom that key was signed, that none is missing in between.
 */
#ifndef LYCH_VESSEL_SCRIBE_SEAL_READ_H
#define LYCH_VESSEL_SCRIBE_SEAL_READ_H

#include "vessel/scribe/seal.h"

/* What a seal that is refused is. */
enum seal_flaw {
	SEAL_FORGED,  /* not signed by the key of its epoch, or impossible */
	SEAL_MISSING, /* it does not follow the one before it: there was one between */
};

struct seal_reader {
	int fd; /* -1: the log has no seals */
	struct buf b;
	uint64_t file_bytes;	 /* when it was opened */
	uint64_t read_bytes;	 /* of the seals that were read */
	uint64_t count;		 /* seals that were read */
	struct seal last;	 /* of these */
	struct merkle_hash hash; /* of the last; zeros before the first */
	uint64_t epoch;		 /* whose key signs the next one */
	uint8_t key[ED25519_PUBLIC_SIZE];
	uint8_t genesis[ED25519_PUBLIC_SIZE]; /* with which these keys began */
	uint64_t began;			      /* lines that were there when they began */
	uint64_t begins; /* how often keys began: once, or again after a restore */
	enum seal_flaw flaw;
};

/* Nothing fails where there is none: fd is -1 then. ERRID_AUDIT_DIR. */
MUST_CHECK int seal_reader_open(struct seal_reader *r, int dirfd, struct err *err);
void seal_reader_done(struct seal_reader *r);
/* 1: r->last is the next one; 0: there is no further one yet (ask again, of a log that is being
 * written); -1: ERRID_AUDIT_SEAL and r->flaw, or another error when it cannot be read. */
MUST_CHECK int seal_reader_next(struct seal_reader *r, struct err *err);

#endif
