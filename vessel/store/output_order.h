/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * In which order the bytes of a job's two streams came, and when: a file of notes beside them.
 * A note is 16 bytes, both numbers with the least byte first: twice where the piece ends in its
 * stream, and 1 more for stderr; the second in which it came, since 1970. A piece is what came
 * of one stream within one second and without anything of the other between.
 *
 * It is about what is shown first, and no evidence: no digest covers it. Bytes of which there
 * is no note (the disk was full, there are too many, an older release stored them) count as
 * having come last.
 */
#ifndef LYCH_VESSEL_STORE_OUTPUT_ORDER_H
#define LYCH_VESSEL_STORE_OUTPUT_ORDER_H

#include "common/attr.h"
#include "common/err.h"
#include "vessel/store/output.h"

#define OUTPUT_NOTES_MAX ((size_t)1 << 17)

struct output_piece {
	enum output_stream stream;
	uint64_t end, sec;
};

/* A stream that was appended to has so many bytes now. */
void output_note(struct output *o, job_id_t job, int64_t epoch, enum output_stream s,
		 uint64_t end, uint64_t sec);
/* The notes from number `from` on, at most max; none: there are no more. */
MUST_CHECK int output_notes(const struct output *o, job_id_t job, int64_t epoch,
			    uint64_t from, struct output_piece *ret, size_t max,
			    size_t *ret_n, struct err *err);

#endif
