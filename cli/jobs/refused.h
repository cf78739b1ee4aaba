/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What was refused to a job that asked its broker, from the audit log: by ward, budget, gate
 * or registry, with the signals that its requests gave. One line a kind, however often.
 * No text of a request is in it: the log has none.
 */
#ifndef LYCH_CLI_JOBS_REFUSED_H
#define LYCH_CLI_JOBS_REFUSED_H

#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include <stddef.h>
#include <stdint.h>

#define REFUSED_KINDS_MAX 64

enum refused_group {
	REFUSED_DENIED, /* nothing of it was sent */
	REFUSED_FAILED, /* it was allowed, and came to nothing */
	REFUSED_SIGNAL, /* what a request gave away */
	REFUSED_GROUP_MAX_
};

struct refusal {
	enum refused_group group;
	enum err_id id; /* ERRID_NONE: of no error, or of one that this program has not */
	char *event;	/* "fetch.denied" */
	char *asked;	/* "fetch https://example.org:443"; of a signal what it was */
	char *target;	/* what `lych ward test` takes; NULL: nothing */
	char *code, *detail, *found, *wanted; /* "" when there is none */
	uint64_t rule, line, count;
};

struct refused {
	struct refusal *list;
	size_t n;
	uint64_t dropped;  /* records of kinds that had no room */
	uint64_t not_told; /* refusals of which the log has only the number */
	struct err unread; /* set: the log could not be read */
};

/* from, to: RFC 3339, as the job's record has them; "" when not known. */
void refused_read(const struct paths *p, job_id_t job, const char *from, const char *to,
		  struct refused *ret);
/* What the tomb refused by itself, from the result of the job; of another form it is none. */
void refused_add_result(struct refused *r, const struct json *result);
void refused_done(struct refused *r);

/* The command that looks closer at this error, and what for: from why_advice.def, with the
 * job's number and target in their places; "" when the table has none. */
void refused_advice(enum err_id id, const char *target, job_id_t job, struct buf *out);
/* One line, not escaped: what was asked, who said no and why, where, how often. */
void refused_sentence(const struct refusal *r, struct buf *out);
void refused_json(const struct refusal *r, job_id_t job, struct jsonw *w);

#endif
