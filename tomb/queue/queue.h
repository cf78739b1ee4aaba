/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The tomb's door to the queue: five calls, two doors (queue_pg.c straight to
 * PostgreSQL; queue_vessel.c through the vessel in profile sovereign). Every call is
 * asynchronous and idempotent; `done` is called exactly once from the loop. An err
 * means that the outcome is unknown: send the same call again.
 */
#ifndef LYCH_TOMB_QUEUE_QUEUE_H
#define LYCH_TOMB_QUEUE_QUEUE_H

#include "common/err.h"
#include "common/id.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>

/* Who speaks for an attempt: epoch orders, token authenticates. */
struct lease_key {
	job_id_t job;
	int64_t epoch;
	struct uuid token;
};

struct queue_claimed {
	struct lease_key key;
	int attempt;
	const void *spec; /* borrowed until the callback returns */
	size_t spec_len;
};

/* Revoked: the job was contained, and the queue waits for the word that its tree is dead. */
enum lease_status { LEASE_OK, LEASE_CANCEL, LEASE_LOST, LEASE_REVOKED };

enum queue_answer {
	ANSWER_OK,
	ANSWER_ALREADY,	 /* a resend: recorded before */
	ANSWER_CONFLICT, /* ended with something else: a security event */
	ANSWER_STALE,
	ANSWER_REVOKED,
	ANSWER_DENIED,
	ANSWER_UNKNOWN,
	ANSWER_TOO_BIG,
	ANSWER_MAX_
};

typedef void queue_claim_done(const struct queue_claimed *jobs, size_t n,
			      const struct err *err, void *arg);
/* status[i] answers keys[i] of the call. */
typedef void queue_extend_done(const enum lease_status *status, size_t n,
			       const struct err *err, void *arg);
typedef void queue_end_done(enum queue_answer answer, const struct err *err, void *arg);

struct queue_ops {
	/* The same claim_id after an unknown outcome returns the same leases. */
	void (*claim)(void *ctx, unsigned n, const struct uuid *claim_id,
		      queue_claim_done *done, void *arg);
	/* What that claim of a former run (its boot) was granted and still holds. Nothing
	 * is granted by it. */
	void (*recall)(void *ctx, const struct uuid *boot, const struct uuid *claim_id,
		       queue_claim_done *done, void *arg);
	void (*extend)(void *ctx, const struct lease_key *keys, size_t n,
		       queue_extend_done *done, void *arg);
	void (*ack)(void *ctx, const struct lease_key *key, const void *result,
		    size_t len, queue_end_done *done, void *arg);
	void (*fail)(void *ctx, const struct lease_key *key, bool retry,
		     enum fail_class why, const void *result, size_t len,
		     queue_end_done *done, void *arg);
	/* died: the run that held it ended with it, which is proved: a lost attempt. Else
	 * the attempt is given back. */
	void (*release)(void *ctx, const struct lease_key *key, bool died,
			queue_end_done *done, void *arg);
};

struct queue {
	const struct queue_ops *ops;
	void *ctx;
	unsigned claim_max; /* jobs of one claim: asking for more is asking in vain */
};

/* "ok", "already", ...; ANSWER_MAX_ for anything else. */
enum queue_answer queue_answer_from_name(const char *name);
const char *queue_answer_name(enum queue_answer a);

#endif
