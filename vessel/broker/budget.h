/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The books of the broker (vessel/db/schema/0018_first/14_budget.sql, 15_books.sql): what a
 * call may take is reserved before anything is sent, in every scope or in none, and settled
 * with what it took. How much it gets may be less than it wants: then it takes less. All
 * calls are asynchronous, done is called exactly once from the loop, and each may be sent
 * again: a call is named by its job, epoch and number, and by a random id.
 */
#ifndef LYCH_VESSEL_BROKER_BUDGET_H
#define LYCH_VESSEL_BROKER_BUDGET_H

#include "common/conf/egress.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/db/queue.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is counted; the order is the database's. */
enum budget_thing {
	BUDGET_REQUESTS,
	BUDGET_TOKENS, /* in and out */
	BUDGET_MONEY,  /* millionths of the unit of the prices */
	BUDGET_BYTES,  /* up and down, bodies */
	BUDGET_DENIALS,
	BUDGET_PACKAGES, /* indexes and files that a registry was asked for: no requests */
	BUDGET_THINGS_
};
const char *budget_thing_name(enum budget_thing t); /* "tokens" */

/* enum budget_scope: a job for its life, its identity and all together for a day (UTC). */
#define BUDGET_SCOPES ((unsigned)BUDGET_SCOPE_MAX_)
#define BUDGET_NO_LIMIT INT64_MAX

struct budget_amounts {
	int64_t n[BUDGET_THINGS_]; /* >= 0 */
};
struct budget_limits {
	struct budget_amounts scope[BUDGET_SCOPES];
};

#define BUDGET_UNIT 1000000u
/* What a call needs, and units beyond it: between the least that is of use and the most. */
struct budget_want {
	struct budget_amounts base;
	struct budget_amounts unit; /* of each unit, in parts: BUDGET_UNIT are one */
	uint64_t least, most;	    /* least <= most <= INT64_MAX */
};
/* With so many units. */
void budget_want_amounts(const struct budget_want *w, uint64_t units,
			 struct budget_amounts *ret);

/* codex.yaml's. */
void budget_limits_of(const struct conf_broker *b, struct budget_limits *ret);

struct budget_call {
	struct queue_lease lease;
	uint64_t seq;	  /* of the tomb, once for each attempt */
	struct uuid id;	  /* ours, random */
	const char *kind; /* "ask", "fetch", "package" */
};

/* units: how many were granted, and with them that many amounts are reserved. ERRID_BUDGET_*
 * names what is used up and in which scope; ERRID_BROKER_REPLAY a number that was used; the
 * lease's own errors; ERRID_START_TWO. */
typedef void budget_grant_done(uint64_t units, const struct err *err, void *arg);
void budget_reserve(struct queue *q, const struct uuid *boot, const struct budget_call *c,
		    const struct budget_want *want, const struct budget_limits *limits,
		    budget_grant_done *done, void *arg);
/* Bytes, all of the call together, that shall be reserved; bytes: how many are. Fewer than
 * wanted: no more are left. */
typedef void budget_extend_done(uint64_t bytes, const struct err *err, void *arg);
void budget_extend(struct queue *q, const struct uuid *boot, const struct budget_call *c,
		   uint64_t bytes, const struct budget_limits *limits,
		   budget_extend_done *done, void *arg);
/* Also for a call that was settled before: nothing is booked twice. */
void budget_settle(struct queue *q, const struct uuid *boot, const struct budget_call *c,
		   const struct budget_amounts *actual, queue_done *done, void *arg);
/* What vessels before this one left open is booked at its estimate. */
void budget_recover(struct queue *q, const struct uuid *boot, queue_count_done *done,
		    void *arg);
/* One refused attempt more. Beyond the job's own limit it counts for the job alone. */
void budget_denied(struct queue *q, job_id_t job, const struct budget_limits *limits,
		   queue_done *done, void *arg);
/* Forget what no replay check needs any more; n: calls that were forgotten. */
void budget_sweep(struct queue *q, unsigned limit, queue_count_done *done, void *arg);

/* Who holds a lease (strict, as for all egress). egress is "" unless it was asked for. */
typedef void budget_lease_done(const char *identity, const char *egress,
			       const struct err *err, void *arg);
void budget_lease(struct queue *q, const struct queue_lease *l, bool with_spec,
		  budget_lease_done *done, void *arg);
/* Of n <= BUDGET_LEASES_MAX leases, the places of those that no longer stand. */
#define BUDGET_LEASES_MAX 1024u
typedef void budget_ended_done(const size_t *places, size_t n, const struct err *err,
			       void *arg);
void budget_ended(struct queue *q, const struct queue_lease *leases, size_t n,
		  budget_ended_done *done, void *arg);

/* The books of a job (0: none), and of all identities for today. */
struct budget_row {
	const char *scope; /* "job", "identity", "day" */
	const char *key;   /* the job's id, the identity, "" */
	const char *day;   /* "2026-01-31"; of a job "1970-01-01" */
	struct budget_amounts spent, reserved;
};
typedef void budget_rows_done(const struct budget_row *rows, size_t n,
			      const struct err *err, void *arg);
void budget_show(struct queue *q, job_id_t job, budget_rows_done *done, void *arg);
/* A job's own book alone; no row: it has used nothing. */
void budget_of_job(struct queue *q, job_id_t job, budget_rows_done *done, void *arg);

#endif
