/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What jobs print, one directory an attempt: output/<job/256>/<job>.<epoch>/{stdout,
 * stdout.sum,stderr,stderr.sum,order,meta}. Bytes are appended at offsets, so that a
 * resent part changes nothing; meta appears when the attempt's output is complete.
 * No directory has so many entries that to list it would be long.
 * Every byte has a digest (output_sum.h), and none is given out that differs.
 */
#ifndef LYCH_VESSEL_STORE_OUTPUT_H
#define LYCH_VESSEL_STORE_OUTPUT_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/store/store.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output;

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_STREAM_MAX_ };
const char *output_stream_name(enum output_stream s);
bool output_stream_from_name(const char *name, enum output_stream *ret);

struct output_end {
	uint64_t bytes[OUTPUT_STREAM_MAX_];
	bool truncated[OUTPUT_STREAM_MAX_];
};

/* Below data_fd (borrowed until output_free). Bytes found count against the budget. */
MUST_CHECK int output_new(int data_fd, struct store_budget *budget,
			  uint64_t stream_max_bytes, struct output **ret,
			  struct err *err);
void output_free(struct output *o);

/*
 * Bytes at offset. Those already stored are skipped; a gap is ERRID_RUN_GAP with
 * *ret_size the bytes stored. The first part of a new epoch removes what older
 * epochs of the job left. After the end only repetitions are taken (ERRID_RUN_STATE).
 */
MUST_CHECK int output_append(struct output *o, job_id_t job, int64_t epoch,
			     enum output_stream s, uint64_t offset, const void *data,
			     size_t len, uint64_t *ret_size, struct err *err);
/* Make it durable and final. A stream that was not truncated must be complete:
 * ERRID_RUN_GAP with *ret_expected else. Repeating it is success. */
MUST_CHECK int output_finish(struct output *o, job_id_t job, int64_t epoch,
			     const struct output_end *end, uint64_t *ret_expected,
			     struct err *err);
/* Nothing stored is size 0, not final. */
MUST_CHECK int output_size(const struct output *o, job_id_t job, int64_t epoch,
			   enum output_stream s, uint64_t *ret_size, bool *ret_final,
			   struct err *err);
/* Bytes from offset on, at most room: *ret_len, 0 at the end and when nothing is stored.
 * ERRID_STORE_DAMAGED, which names the bytes: *ret_next is where others follow. */
MUST_CHECK int output_read(const struct output *o, job_id_t job, int64_t epoch,
			   enum output_stream s, uint64_t offset, void *buf, size_t room,
			   size_t *ret_len, uint64_t *ret_next, struct err *err);
/* The highest epoch, at most `epoch`, that left output; 0 when none did. */
int64_t output_latest(const struct output *o, job_id_t job, int64_t epoch);
/* Every epoch of the job; missing is success. */
MUST_CHECK int output_remove(struct output *o, job_id_t job, struct err *err);
/* Ids (ascending, unique) above `after` that have a directory: the next ones, at most max and
 * perhaps fewer; none: there are no more. */
MUST_CHECK int output_jobs(const struct output *o, job_id_t after, job_id_t *ret_ids,
			   size_t max, size_t *ret_n, struct err *err);

#endif
