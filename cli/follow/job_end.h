/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * How a job ended: read from its object, as an exit code, and in words.
 */
#ifndef LYCH_CLI_FOLLOW_JOB_END_H
#define LYCH_CLI_FOLLOW_JOB_END_H

#include "cli/base/client.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>

/* A job's object, as GET /v1/jobs/ID has it; cleanup_json. */
MUST_CHECK int job_get(struct client *c, job_id_t id, unsigned timeout_ms,
		       struct json **ret, struct err *err);
#define JOB_GET_MSEC 30000
/* How a job ended, from its object. */
struct job_end {
	enum job_state state;
	enum fail_class fail_class;
	bool has_exit_code;
	int exit_code;
	int signal;	/* 0: none */
	int exec_errno; /* the command could not be executed; 0: it was, or never tried */
	size_t denials;
	const char *detail;
};
MUST_CHECK int job_end_read(const struct json *job, struct job_end *ret, struct err *err);
/* What `lych run` exits with: the job's own code, 128+signal, 124, 78, 4; 126 or 127 when
 * it could not be executed. */
int job_end_exit_code(const struct job_end *e);
/* Two lines on stderr about an end that isn't the job's own. */
void job_end_explain(const struct job_end *e, job_id_t id);

#endif
