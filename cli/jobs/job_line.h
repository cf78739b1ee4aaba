/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A job in one line: what it runs, how it ended, when. The list of jobs has no specs and no
 * results, so that each job is asked for once more; what can't change is remembered.
 */
#ifndef LYCH_CLI_JOBS_JOB_LINE_H
#define LYCH_CLI_JOBS_JOB_LINE_H

#include "cli/base/client.h"
#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stddef.h>

struct job_line {
	job_id_t id;
	char state
		[32];  /* the vessel's word for it, not escaped; neither is the command */
	char *command; /* as it could be typed */
	char end[32];  /* its exit code, or what ended it; "-": it has not */
	usec_t created, started, finished; /* 0: not yet */
	bool is_known, is_seen;
};

/* Zeros to begin with. */
struct job_lines {
	struct job_line *line;
	size_t n;
};
void job_lines_done(struct job_lines *l);
#define cleanup_job_lines __attribute__((cleanup(job_lines_done)))

/* The line of a job of the list, until the next call. *ret_changed (may be NULL): it is new or
 * in another state than it was. A job that was removed meanwhile has no command ("-"). */
MUST_CHECK int job_lines_take(struct job_lines *l, struct client *c,
			      const struct json *job, const struct job_line **ret,
			      bool *ret_changed, struct err *err);
/* Was it taken at the last look, or since? */
bool job_lines_know(const struct job_lines *l, job_id_t id);
/* Forget the jobs that were not taken since the last call. */
void job_lines_age(struct job_lines *l);

#endif
