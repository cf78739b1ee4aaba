/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * How a job ended and why, from its record: what lych why tells, before it is words on a
 * terminal or JSON.
 */
#ifndef LYCH_CLI_JOBS_WHY_H
#define LYCH_CLI_JOBS_WHY_H

#include "cli/follow/job_end.h"
#include "cli/jobs/refused.h"
#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/json/json.h"
#include "common/proto/spawn_proto.h"
#include <stdbool.h>

#define WHY_WORDS_MAX 4096

enum why_unit { WHY_BYTES, WHY_MSEC, WHY_COUNT };

/* A limit, as the spec names it and as lych run does. */
struct why_limit {
	const char *end;   /* the spawner's word when it was exceeded */
	const char *class; /* the same when the tomb counted */
	const char *name, *key, *option;
	enum why_unit unit;
	uint64_t max;
};

struct why {
	job_id_t id;
	const struct json *job, *spec, *result; /* spec, result: NULL when absent */
	struct job_end end;
	const char *how, *sig, *exec; /* "" when absent */
	bool final, ran, explain;
	const struct why_limit *limit; /* that ended it */
	uint64_t limit_value;
	struct spawn_denied *denied;
	size_t n_denied;
	uint64_t dropped;
	/* The last looks at what it used, of one that passed a limit. */
	uint64_t memory[SPAWN_SAMPLES_MAX], processes[SPAWN_SAMPLES_MAX];
	size_t n_samples;
	struct refused refused; /* what the audit log has of it */
	struct buf reason, advice;
};

/* job is borrowed. */
MUST_CHECK int why_read(struct why *y, job_id_t id, const struct json *job,
			struct err *err);
void why_done(struct why *y);

#endif
