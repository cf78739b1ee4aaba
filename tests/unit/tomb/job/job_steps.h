/* SPDX-License-Identifier: Apache-2.0 */
/* Events for the job machine that need no words of their own. */
#ifndef LYCH_TESTS_UNIT_TOMB_JOB_JOB_STEPS_H
#define LYCH_TESTS_UNIT_TOMB_JOB_JOB_STEPS_H

#include "tomb/job/job.h"

#include <criterion/criterion.h>

TestSuite(job_machine, .timeout = 20);

static const struct spawn_started started = {.type = SPAWN_STARTED};
static const struct spawn_refused refused = {
	.error_code = "LYCH-SANDBOX-004", .stage = "userns", .text = "no"};

static inline struct job_actions step(struct job *j, enum job_event_type type)
{
	struct job_event ev = {.type = type, .started = &started, .refused = &refused};
	struct job_actions a;

	job_step(j, &ev, &a);
	return a;
}

#endif
