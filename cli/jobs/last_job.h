/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The job that a command is about when it was given no number: the last one.
 */
#ifndef LYCH_CLI_JOBS_LAST_JOB_H
#define LYCH_CLI_JOBS_LAST_JOB_H

#include "cli/base/client.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>

/* An *id that is 0 becomes that of the person's newest job, which is said on stderr: the api
 * socket has one owner, so that all its jobs are this person's. ERRID_RUN_NOT_FOUND: there is
 * none yet. to_end: the job is to be ended, so ERRID_RUN_STATE when it has. */
MUST_CHECK int last_job_take(struct client *c, bool to_end, job_id_t *id,
			     struct err *err);

#endif
