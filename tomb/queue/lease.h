/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The leases that this tomb holds: renewed together every TTL/3 and at once on a hint;
 * the queue's answer brings cancel and lost. The deadline of a lease is the boot time
 * before the claim or the extend was sent, plus TTL, minus a margin: by then its sandbox
 * must be killed, whatever the database thinks, for another tomb may start the job next.
 * No database time is ever compared with a local clock.
 */
#ifndef LYCH_TOMB_QUEUE_LEASE_H
#define LYCH_TOMB_QUEUE_LEASE_H

#include "common/clock.h"
#include "tomb/queue/queue.h"

#define LEASE_TTL_USEC ((usec_t)LEASE_TTL_SEC * USEC_PER_SEC)
#define LEASE_MARGIN_USEC (3 * USEC_PER_SEC)
/* Hints come as fast as jobs do; the first counts at once, the rest together. */
#define LEASE_HINT_GAP_USEC (100 * USEC_PER_MSEC)

struct lease;
struct leases;

enum lease_word {
	LEASE_WORD_CANCEL,
	LEASE_WORD_LOST,
	LEASE_WORD_REVOKED,
	LEASE_WORD_DEADLINE
};
typedef void lease_fn(enum lease_word word, void *owner);

/* changed: an answer has come and leases_tick() may be due sooner than it said. */
struct leases *leases_new(const struct queue *q, const struct clock_ops *clock,
			  void (*changed)(void *arg), void *arg);
void leases_free(struct leases *l);
/* sent: the boot time before the claim was sent. fn is never called from here, and may
 * call lease_drop(). */
struct lease *lease_add(struct leases *l, const struct lease_key *key, usec_t sent,
			lease_fn *fn, void *owner);
void lease_drop(struct leases *l, struct lease *lease);
/* Something may have changed: renew soon. */
void leases_hint(struct leases *l);
/* Do what is due now; returns the boot time of the next thing to do. */
usec_t leases_tick(struct leases *l);

#endif
