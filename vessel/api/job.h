/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A job as people see it. Pure.
 */
#ifndef LYCH_VESSEL_API_JOB_H
#define LYCH_VESSEL_API_JOB_H

#include "common/jsonw.h"
#include "vessel/broker/budget.h"
#include "vessel/db/queue.h"
#include <stdbool.h>

/* Room for a job with spec and result after escaping. */
#define JOB_JSON_MAX_BYTES ((size_t)16 << 20)

enum job_parts { JOB_HEAD = 0, JOB_RESULT = 1, JOB_SPEC = 2 };

/* `parts`: which of spec and result to write (they must have been asked for). A result
 * comes from a tomb: it is parsed and written anew, never copied. */
void job_write(struct jsonw *w, const struct queue_job *j, unsigned parts);
/* What it has used of its budget, once that was asked for. */
struct job_spent {
	bool is_counted, has_book;
	struct budget_amounts amounts;
};
/* The answer of budget_of_job(). */
void job_spent_take(struct job_spent *s, const struct budget_row *rows, size_t n);
/* As job_write(), with that. */
void job_write_spent(struct jsonw *w, const struct queue_job *j, unsigned parts,
		     const struct job_spent *spent);
/* May it ask the broker, so that it has perhaps used something? (the spec must have been asked
 * for) */
bool job_may_ask(const struct queue_job *j);

/* What one artifact entry of a result says. Strings live as long as `result`. */
struct job_artifact {
	const char *path, *sha256, *klass;
	uint64_t size;
};
struct json;
/* The result of a job; ERRID_STORE_ARTIFACT when there is none yet or the tomb wrote
 * nonsense. */
MUST_CHECK int job_result_parse(const struct queue_job *j, struct json **ret,
				struct err *err);
size_t job_artifacts(const struct json *result);
MUST_CHECK int job_artifact_at(const struct json *result, size_t i,
			       struct job_artifact *ret, struct err *err);

#endif
