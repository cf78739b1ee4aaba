/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The door through the vessel (profile sovereign): the same five calls over the work
 * socket, for a tomb without a database login and without a network. A call is tried
 * once; no answer, or one about the vessel and not about the request, is an unknown
 * outcome as over PostgreSQL, and the caller sends the same call again.
 */
#ifndef LYCH_TOMB_QUEUE_QUEUE_VESSEL_H
#define LYCH_TOMB_QUEUE_QUEUE_VESSEL_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "tomb/queue/queue.h"
#include "tomb/queue/vessel_peer.h"
#include <stdbool.h>

struct queue_vessel;

struct queue_vessel_config {
	const struct vessel_peer *peer; /* must outlive the door */
	const char *queue;		/* "main" */
	struct uuid boot;		/* of this process */
	void (*on_hint)(void *arg);
	/* Up: the vessel answers, and its database too. */
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
};

/* *ret_queue is valid until queue_vessel_free(). */
MUST_CHECK int queue_vessel_new(struct loop *l, const struct queue_vessel_config *cfg,
				struct queue_vessel **ret, struct queue *ret_queue,
				struct err *err);
/* Calls under way are dropped without a callback. */
void queue_vessel_free(struct queue_vessel *q);

/* The vessel's answers, for tests and the fuzzer. Strings and specs are owned by *ret. */
struct vessel_claimed {
	size_t n;
	struct queue_claimed job[DOOR_CLAIM_MAX];
	char *spec[DOOR_CLAIM_MAX];
};
MUST_CHECK int queue_vessel_parse_claim(const void *body, size_t len,
					struct vessel_claimed *ret, struct err *err);
void vessel_claimed_done(struct vessel_claimed *c);
/* status[i] answers keys[i]; a lease without a word is an error. */
MUST_CHECK int queue_vessel_parse_extend(const void *body, size_t len,
					 const struct lease_key *keys, size_t n,
					 enum lease_status *status, struct err *err);
MUST_CHECK int queue_vessel_parse_end(const void *body, size_t len,
				      enum queue_answer *ret, struct err *err);

#endif
