/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See claim.h.
 */
#include "tomb/queue/claim.h"

#include "common/mem.h"

#include <stdlib.h>

/* Outlives the claims object when that is freed under way. */
struct claim_call {
	struct claims *all;
	usec_t sent;
	unsigned asked;
};

struct claims {
	struct claims_world w;
	struct claim_call *call;
	struct uuid claim_id;
	bool reuse_id; /* the last outcome is unknown */
	unsigned reuse_n;
	bool stopped, hinted;
	usec_t next, pause;
};

struct claims *claims_new(const struct claims_world *world)
{
	struct claims *c = xnew(struct claims);

	c->w = *world;
	c->pause = CLAIM_POLL_MIN_USEC;
	return c;
}

void claims_free(struct claims *c)
{
	if (!c)
		return;
	if (c->call)
		c->call->all = NULL;
	free(c);
}

void claims_stop(struct claims *c)
{
	c->stopped = true;
}

bool claims_busy(const struct claims *c)
{
	return c->call != NULL;
}

void claims_hint(struct claims *c)
{
	c->hinted = true;
	c->pause = CLAIM_POLL_MIN_USEC;
	c->next = 0;
}

static usec_t claims_jitter(struct claims *c, usec_t t)
{
	uint32_t r;

	c->w.rng->bytes(c->w.rng->ctx, &r, sizeof(r));
	return t * 3 / 4 + t / 2 * (r % 1024) / 1024;
}

static void claims_wait(struct claims *c)
{
	c->next = c->w.clock->boot_usec(c->w.clock->ctx) + claims_jitter(c, c->pause);
	c->pause = c->pause * 3 / 2;
	if (c->pause > CLAIM_POLL_MAX_USEC)
		c->pause = CLAIM_POLL_MAX_USEC;
}

static void claim_done(const struct queue_claimed *jobs, size_t n, const struct err *err,
		       void *arg)
{
	struct claim_call *call = arg;
	struct claims *c = call->all;
	usec_t sent = call->sent;
	bool full;

	if (!c) {
		free(call);
		return;
	}
	c->call = NULL;
	full = n == call->asked;
	free(call);
	c->reuse_id = err != NULL;
	if (err) {
		c->w.on_error(err, c->w.arg);
		claims_wait(c);
	} else {
		for (size_t i = 0; i < n; i++)
			c->w.on_claimed(&jobs[i], sent, c->w.arg);
		if (full || c->hinted) {
			c->next = 0; /* there may be more */
			c->pause = CLAIM_POLL_MIN_USEC;
		} else {
			claims_wait(c);
		}
	}
	c->hinted = false;
	c->w.rearm(c->w.arg);
}

usec_t claims_tick(struct claims *c)
{
	usec_t now = c->w.clock->boot_usec(c->w.clock->ctx);
	unsigned slots;

	if (c->call || c->stopped)
		return USEC_INFINITY;
	slots = c->w.free_slots(c->w.arg);
	if (slots == 0)
		return USEC_INFINITY; /* a slot that becomes free is a hint */
	if (c->next > now)
		return c->next;
	/* A question whose answer is unknown is asked all the same: its leases may be
	 * ours already. */
	if (!c->reuse_id && !c->w.has_room(c->w.arg)) {
		c->next = now + CLAIM_ROOM_USEC;
		return c->next;
	}
	c->call = xnew(struct claim_call);
	c->call->all = c;
	c->call->sent = now;
	/* The same question as before, word for word, while its answer is unknown. */
	if (!c->reuse_id) {
		uuid_new(c->w.rng, &c->claim_id);
		c->reuse_n =
			slots < c->w.queue->claim_max ? slots : c->w.queue->claim_max;
		c->w.on_asking(&c->claim_id, c->w.arg);
	}
	c->call->asked = c->reuse_n;
	c->hinted = false;
	c->w.queue->ops->claim(c->w.queue->ctx, c->reuse_n, &c->claim_id, claim_done,
			       c->call);
	return USEC_INFINITY;
}
