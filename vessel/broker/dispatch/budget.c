/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 3: what the request may take is reserved, in every scope or in none. And its other
 * end: what it took is booked, again and again until the database has it.
 *
 * A job whose last reservation was granted does not wait for this one: gate and log work
 * meanwhile, and the act waits for all three (docs/adr/0033). The order in which they are
 * listened to stays: the word on lease and budget first. After a refusal the job's next
 * request takes one step after the other again, so that one that may ask nothing more makes
 * work for the database only, and fills no log.
 */
#include "common/mem.h"
#include "vessel/broker/dispatch/priv.h"

#define SETTLE_RETRY_USEC USEC_PER_SEC

static void on_reserved(uint64_t units, const struct err *err, void *arg)
{
	struct dispatch_call *c = arg;
	/* with the database away nobody knows whether it was: settled with nothing */
	enum dispatch_event ev = !err			   ? ON_RESERVED
				 : err->id == ERRID_RUN_DB ? ON_RESERVE_LOST
							   : ON_RESERVE_BAD;

	if (!err) {
		c->units = units;
		budget_want_amounts(&c->want, units, &c->estimate);
	}
	c->job->is_granted = !err;
	if (ev != ON_RESERVE_BAD)
		c->d->fig.reservations_open++;
	dispatch_on_database(c, ev, err);
}

enum dispatch_event dispatch_estimate(struct dispatch_call *c)
{
	bool began = dispatch_reads(c, READING_REQUEST);

	c->want.base.n[c->kind->counts] = 1;
	c->kind->estimate(c);
	dispatch_has_read(c->d, began);
	budget_want_amounts(&c->want, c->want.most, &c->estimate);
	return ON_NOTHING;
}

enum dispatch_event dispatch_reserve(struct dispatch_call *c)
{
	c->d->ops->reserve(c->d->env, &c->books, &c->want, on_reserved, c);
	return ON_NOTHING;
}

/* ---- room for a reply: bytes are reserved while it comes ---- */

/* It doubles, but for what is worth a turn at the database. */
#define ROOM_STEP_MIN ((uint64_t)1 << 20)
#define ROOM_STEP_MAX ((uint64_t)8 << 20)

struct dispatch_room {
	struct dispatch_call *call; /* NULL: it ended meanwhile */
	uint64_t wanted;
};

uint64_t dispatch_up_most(const struct dispatch_call *c, uint64_t bytes)
{
	return bytes * (1 + c->d->cfg.broker->egress.retries);
}

uint64_t dispatch_room(const struct dispatch_call *c)
{
	uint64_t used = c->up_reserved + c->hop_down;
	uint64_t all = (uint64_t)c->estimate.n[BUDGET_BYTES];

	return all > used ? all - used : 1;
}

static void on_room(uint64_t bytes, const struct err *err, void *arg)
{
	struct dispatch_room *r = arg;
	struct dispatch_call *c = r->call;
	bool is_last = err || bytes < r->wanted;

	free(r);
	if (!c)
		return;
	c->asking = NULL;
	/* with the database away nobody knows: the settlement gives it back */
	if (!err && bytes > (uint64_t)c->estimate.n[BUDGET_BYTES])
		c->estimate.n[BUDGET_BYTES] = (int64_t)bytes;
	dispatch_on(c, is_last ? ON_ROOM_LAST : ON_ROOM_GIVEN, NULL);
}

enum dispatch_event dispatch_want_room(struct dispatch_call *c UNUSED)
{
	return ON_ROOM_WANTED;
}

enum dispatch_event dispatch_extend(struct dispatch_call *c)
{
	uint64_t step = dispatch_room(c);

	step = step < ROOM_STEP_MIN ? ROOM_STEP_MIN : step;
	step = step > ROOM_STEP_MAX ? ROOM_STEP_MAX : step;
	c->asking = xnew(struct dispatch_room);
	c->asking->call = c;
	c->asking->wanted = (uint64_t)c->estimate.n[BUDGET_BYTES] + step;
	c->d->ops->extend(c->d->env, &c->books, c->asking->wanted, on_room, c->asking);
	return ON_NOTHING;
}

enum dispatch_event dispatch_tell_room(struct dispatch_call *c)
{
	c->d->ops->room(c->egress, dispatch_room(c), c->machine.room == ROOM_LAST);
	return ON_NOTHING;
}

void dispatch_room_forget(struct dispatch_call *c)
{
	if (c->asking)
		c->asking->call = NULL;
	c->asking = NULL;
}

/* ---- settlements ---- */

struct settlement {
	struct dispatch *d;
	struct budget_call books;
	struct budget_amounts actual;
	struct loop_timer *retry;
	struct settlement *next, **link;
};

static void settlement_free(struct settlement *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	s->d->fig.settles_open--;
	loop_timer_free(s->retry);
	free(s);
}

static void settled(const struct err *err, void *arg)
{
	struct settlement *s = arg;

	if (err && err->id != ERRID_START_TWO)
		loop_timer_arm(s->retry, SETTLE_RETRY_USEC);
	else
		settlement_free(s);
}

static void on_settle(void *arg)
{
	struct settlement *s = arg;

	s->d->ops->settle(s->d->env, &s->books, &s->actual, settled, s);
}

void dispatch_settlement_new(struct dispatch *d, const struct budget_call *books,
			     const struct budget_amounts *actual)
{
	struct settlement *s = xnew(struct settlement);

	s->d = d;
	s->books = *books;
	s->actual = *actual;
	s->retry = loop_timer_new(d->cfg.loop, on_settle, s);
	s->next = d->settlements;
	s->link = &d->settlements;
	if (s->next)
		s->next->link = &s->next;
	d->settlements = s;
	d->fig.settles_open++;
	on_settle(s);
}

void dispatch_settlements_free(struct dispatch *d)
{
	while (d->settlements)
		settlement_free(d->settlements);
}
