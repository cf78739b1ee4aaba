/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The result of a job (docs/PROTOCOL.md) as JSON.
 */
#ifndef LYCH_TOMB_JOB_REPORT_H
#define LYCH_TOMB_JOB_REPORT_H

#include "common/buf.h"
#include "tomb/broker/proxy.h"
#include "tomb/files/harvest.h"
#include "tomb/job/denials.h"
#include "tomb/job/job.h"

struct report {
	const struct job *job;
	const struct harvest *harvest; /* NULL: nothing was harvested */
	const struct denials *denials;
	const struct proxy_refused *broker_refused;
	uint64_t stdout_bytes, stderr_bytes;
	bool stdout_truncated, stderr_truncated;
	bool unrooted; /* the daemons have no private root */
};

/* Never fails: what is listed is capped so that it stays below RESULT_MAX_BYTES. */
void report_write(const struct report *r, struct buf *out);

#endif
