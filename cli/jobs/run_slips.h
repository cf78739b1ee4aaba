/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A word on what a person probably meant, when a job ended as it does after a slip.
 */
#ifndef LYCH_CLI_JOBS_RUN_SLIPS_H
#define LYCH_CLI_JOBS_RUN_SLIPS_H

#include "cli/follow/job_end.h"
#include "cli/jobs/run_spec.h"
#include "common/json/json.h"

/* On stderr; nothing when nothing is known. job: as it ended. */
void run_slips_tell(const struct run_args *a, const struct json *job,
		    const struct job_end *end);

#endif
