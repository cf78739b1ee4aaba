/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Proposals: fetches that were refused for no other reason than that no rule allows them, and
 * what a person said to them. Each is of one attempt of one job, and names one method, one host and one
 * path: nothing in it is wider than what was asked for. All of it is in memory, with caps, and gone
 * with the vessel: then it is refused again.
 */
#ifndef LYCH_VESSEL_BROKER_PROPOSALS_H
#define LYCH_VESSEL_BROKER_PROPOSALS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/broker/ward.h"

#define PROPOSALS_JOB_MAX 32u /* of one attempt, ever */
#define PROPOSALS_MAX 512u    /* of all; then the oldest that nobody has allowed goes */
#define PROPOSAL_PATH_MAX_BYTES ((size_t)1024)
#define PROPOSAL_METHOD_SIZE 16

enum proposal_state {
	PROPOSAL_OPEN,
	PROPOSAL_ONCE,	  /* the next such request passes */
	PROPOSAL_JOB,	  /* each does, until the attempt ends */
	PROPOSAL_USED,	  /* was ONCE; asked for again it is OPEN */
	PROPOSAL_DROPPED, /* by a person: not shown again */
};

struct proposal {
	uint64_t number; /* from 1, never reused */
	job_id_t job;
	int64_t epoch;
	char method[PROPOSAL_METHOD_SIZE];
	char *host; /* as url.h leaves it: ASCII */
	char *path; /* without the query */
	uint64_t times;
	usec_t first_usec, last_usec; /* wall clock */
	enum proposal_state state;
};

/* What the dispatcher has to know of an attempt; zeroed at its beginning. */
struct proposals_made {
	unsigned n;
};

struct proposals;
struct proposals *proposals_new(void);
void proposals_free(struct proposals *p);

/*
 * Of a fetch that no rule allows, and none denies. Its number, or 0: it is none (an address, another
 * scheme or port, a path that is too long, one too many). *ret_new: the first time.
 */
uint64_t proposals_note(struct proposals *p, job_id_t job, int64_t epoch,
			const struct ward_ask *ask, usec_t wall_now,
			struct proposals_made *made, bool *ret_new);
/* Has a person allowed exactly this to this attempt? Its number, 0: no. Of ONCE it is taken. */
uint64_t proposals_take(struct proposals *p, job_id_t job, int64_t epoch,
			const struct ward_ask *ask);

size_t proposals_count(const struct proposals *p);
const struct proposal *proposals_at(const struct proposals *p, size_t i);
bool proposal_is_shown(const struct proposal *one);
const char *proposal_state_name(enum proposal_state s); /* "open" */
/* One that is shown: ERRID_PROPOSAL_GONE. */
MUST_CHECK int proposals_find(const struct proposals *p, uint64_t number,
			      const struct proposal **ret, struct err *err);
/* to: ONCE, JOB or DROPPED. ERRID_PROPOSAL_GONE. */
MUST_CHECK int proposals_set(struct proposals *p, uint64_t number, enum proposal_state to,
			     struct err *err);

#endif
