/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the vessel says of a job that has ended, in one JSON object of a record of the audit log
 * (docs/PROTOCOL.md, "Receipts"): what is long stands there by its SHA-256. Pure.
 */
#ifndef LYCH_VESSEL_API_RECEIPT_H
#define LYCH_VESSEL_API_RECEIPT_H

#include "vessel/api/job.h"
#include "vessel/store/output.h"

/* Less than AUDIT_DATA_MAX: never left out of the record. */
#define RECEIPT_MAX_BYTES ((size_t)8000)

/* What a job printed, as it is stored. */
struct receipt_output {
	uint64_t bytes[OUTPUT_STREAM_MAX_], damaged[OUTPUT_STREAM_MAX_];
	char sha256[OUTPUT_STREAM_MAX_][SHA256_HEX_SIZE];
};

/* j: with spec and result; epoch: of the attempt that ended it. False: it has not ended. */
bool receipt_write(const struct queue_job *j, int64_t epoch,
		   const struct receipt_output *output, const struct job_spent *spent,
		   struct buf *out);

#endif
