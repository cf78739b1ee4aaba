/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * Proofs for somebody who has the public key with which the log's keys began, and not the log:
 * that a record is in it (inclusion), that one checkpoint goes on from another (consistency).
 * docs/PROTOCOL.md, "Proofs", has the object.
 */
#ifndef LYCH_VESSEL_SCRIBE_AUDIT_PROOF_H
#define LYCH_VESSEL_SCRIBE_AUDIT_PROOF_H

#include "vessel/scribe/audit_read.h"

struct audit_question {
	uint64_t record; /* 0: consistency is asked for */
	uint64_t from;	 /* records of the older checkpoint */
	/* of the newer one, or that the record is proved by; 0: the last, or the first that has it */
	uint64_t to;
};

/* A log that does not verify gives no proof: r->verdict. Otherwise -1 means that there is no
 * such record or checkpoint (ERR_NOT_FOUND, _INVALID). */
MUST_CHECK int audit_prove(struct audit_reading *r, const char *dir,
			   const struct audit_question *q, struct buf *ret,
			   struct err *err);

#endif
