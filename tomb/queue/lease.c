/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See lease.h.
 */
#include "tomb/queue/lease.h"

#include "common/cleanup.h"
#include "common/mem.h"

#include <assert.h>
#include <stdlib.h>

struct lease {
	struct lease *next;
	struct lease_key key;
	usec_t deadline;
	lease_fn *fn;
	void *owner;
	bool dropped; /* freed when nothing walks the list */
	bool told_deadline;
};

/* One extend under way. The keys are remembered, for leases come and go meanwhile. */
struct extend_call {
	struct leases *all; /* NULL: leases_free() came first */
	struct lease_key *keys;
	size_t n;
	usec_t sent;
};

struct leases {
	const struct queue *queue;
	const struct clock_ops *clock;
	struct lease *head;
	size_t n;
	struct extend_call *call;
	usec_t next_extend, last_extend;
	unsigned walking;
	void (*changed)(void *arg);
	void *arg;
};

struct leases *leases_new(const struct queue *q, const struct clock_ops *clock,
			  void (*changed)(void *arg), void *arg)
{
	struct leases *l = xnew(struct leases);

	l->queue = q;
	l->clock = clock;
	l->changed = changed;
	l->arg = arg;
	l->next_extend = USEC_INFINITY;
	return l;
}

static usec_t leases_now(const struct leases *l)
{
	return l->clock->boot_usec(l->clock->ctx);
}

static void leases_sweep(struct leases *l)
{
	if (l->walking)
		return;
	for (struct lease **p = &l->head; *p;) {
		struct lease *dead = *p;

		if (!dead->dropped) {
			p = &dead->next;
			continue;
		}
		*p = dead->next;
		free(dead);
	}
}

void leases_free(struct leases *l)
{
	if (!l)
		return;
	if (l->call)
		l->call->all = NULL;
	while (l->head) {
		struct lease *dead = l->head;

		l->head = dead->next;
		free(dead);
	}
	free(l);
}

struct lease *lease_add(struct leases *l, const struct lease_key *key, usec_t sent,
			lease_fn *fn, void *owner)
{
	struct lease *lease = xnew(struct lease);

	lease->key = *key;
	lease->deadline = sent + LEASE_TTL_USEC - LEASE_MARGIN_USEC;
	lease->fn = fn;
	lease->owner = owner;
	lease->next = l->head;
	l->head = lease;
	l->n++;
	if (l->next_extend > sent + LEASE_TTL_USEC / 3)
		l->next_extend = sent + LEASE_TTL_USEC / 3;
	return lease;
}

void lease_drop(struct leases *l, struct lease *lease)
{
	if (!lease || lease->dropped)
		return;
	lease->dropped = true;
	assert(l->n > 0);
	l->n--;
	if (l->n == 0)
		l->next_extend = USEC_INFINITY;
	leases_sweep(l);
}

void leases_hint(struct leases *l)
{
	usec_t soon;

	if (l->n == 0)
		return;
	soon = l->last_extend ? l->last_extend + LEASE_HINT_GAP_USEC : 0;
	if (l->next_extend > soon)
		l->next_extend = soon;
}

static struct lease *lease_find(const struct leases *l, const struct lease_key *key)
{
	for (struct lease *i = l->head; i; i = i->next)
		if (!i->dropped && i->key.job == key->job && i->key.epoch == key->epoch)
			return i;
	return NULL;
}

static void extend_done(const enum lease_status *status, size_t n, const struct err *err,
			void *arg)
{
	struct extend_call *call = arg;
	struct leases *l = call->all;

	if (!l)
		goto out;
	l->call = NULL;
	if (err || n != call->n) {
		/* Unknown outcome: the deadlines stand, and soon once more. */
		l->next_extend = leases_now(l) + USEC_PER_SEC;
		l->changed(l->arg);
		goto out;
	}
	l->walking++;
	for (size_t i = 0; i < n; i++) {
		struct lease *lease = lease_find(l, &call->keys[i]);

		if (!lease)
			continue;
		if (status[i] == LEASE_LOST || status[i] == LEASE_REVOKED) {
			lease->fn(status[i] == LEASE_LOST ? LEASE_WORD_LOST
							  : LEASE_WORD_REVOKED,
				  lease->owner);
			continue;
		}
		lease->deadline = call->sent + LEASE_TTL_USEC - LEASE_MARGIN_USEC;
		lease->told_deadline = false;
		if (status[i] == LEASE_CANCEL)
			lease->fn(LEASE_WORD_CANCEL, lease->owner);
	}
	l->walking--;
	leases_sweep(l);
	l->changed(l->arg);
out:
	free(call->keys);
	free(call);
}

static void leases_extend(struct leases *l, usec_t now)
{
	struct extend_call *call = xnew(struct extend_call);

	call->all = l;
	call->sent = now;
	call->keys = xcalloc(l->n, sizeof(*call->keys));
	for (const struct lease *i = l->head; i; i = i->next)
		if (!i->dropped)
			call->keys[call->n++] = i->key;
	l->call = call;
	l->last_extend = now;
	l->next_extend = now + LEASE_TTL_USEC / 3;
	l->queue->ops->extend(l->queue->ctx, call->keys, call->n, extend_done, call);
}

usec_t leases_tick(struct leases *l)
{
	usec_t now = leases_now(l), next = USEC_INFINITY;

	l->walking++;
	for (struct lease *i = l->head; i; i = i->next) {
		if (i->dropped || i->told_deadline)
			continue;
		if (i->deadline <= now) {
			i->told_deadline = true;
			i->fn(LEASE_WORD_DEADLINE, i->owner);
		} else if (i->deadline < next) {
			next = i->deadline;
		}
	}
	l->walking--;
	leases_sweep(l);
	if (l->n && !l->call && l->next_extend <= now)
		leases_extend(l, now);
	if (l->n && !l->call && l->next_extend < next)
		next = l->next_extend;
	return next;
}
