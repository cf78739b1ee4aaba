/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * When to ask for work: at once on a hint, else every 250 ms to 2 s with jitter (a
 * notification may be lost; polling is what is correct). After an unknown outcome the
 * same claim_id is sent again, so that leases whose reply was lost are not left to
 * expire.
 */
#ifndef LYCH_TOMB_QUEUE_CLAIM_H
#define LYCH_TOMB_QUEUE_CLAIM_H

#include "common/clock.h"
#include "common/id.h"
#include "tomb/queue/queue.h"

#define CLAIM_POLL_MIN_USEC (250 * USEC_PER_MSEC)
#define CLAIM_POLL_MAX_USEC (2 * USEC_PER_SEC)
#define CLAIM_ROOM_USEC USEC_PER_SEC /* to the next look whether there is room */

struct claims;

struct claims_world {
	const struct queue *queue;
	const struct clock_ops *clock;
	const struct random_ops *rng;
	unsigned (*free_slots)(void *arg);
	/* Is there room to begin a job at all? While not, nobody is asked. */
	bool (*has_room)(void *arg);
	/* This claim is sent next, and was not before. */
	void (*on_asking)(const struct uuid *claim_id, void *arg);
	/* sent: boot time before the claim was sent. */
	void (*on_claimed)(const struct queue_claimed *job, usec_t sent, void *arg);
	void (*on_error)(const struct err *err, void *arg);
	void (*rearm)(void *arg); /* the time of the next tick may have changed */
	void *arg;
};

struct claims *claims_new(const struct claims_world *world);
void claims_free(struct claims *c);
void claims_hint(struct claims *c); /* new work or a free slot: ask now */
void claims_stop(
	struct claims *c); /* what a claim under way brings is still handed over */
/* Boot time of the next thing to do. */
usec_t claims_tick(struct claims *c);
/* A claim is out whose leases may already be ours. */
bool claims_busy(const struct claims *c);

#endif
