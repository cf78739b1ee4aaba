/* SPDX-License-Identifier: Apache-2.0 */
/* Step 3: what the request may take is reserved, in every scope or in none. And its other
 * end: what it took is booked, again and again until the database has it.
 *
 * A job whose last reservation was granted does not wait for this one: gate and log work
 * meanwhile, and the act waits for all three (docs/adr/0033). The order in which they are
 * listened to stays: the word on lease and budget first. After a refusal the job's next
 * request takes one step after the other again, so that one that may ask nothing more makes
 * work for the database only, and fills no log. */
#include "common/mem.h"
#include "vessel/broker/dispatch/priv.h"

#define SETTLE_RETRY_USEC USEC_PER_SEC

static void on_reserved(uint64_t units, const struct err *err, void *arg)
{
	struct dispatch_call *c = arg;
	struct err why = ERR_INIT;

	c->is_reserving = false;
	if (!err) {
		c->units = units;
		budget_want_amounts(&c->want, units, &c->est);
	}
	c->job->is_granted = !err;
	/* With the database away nobody knows whether it was: settled with nothing. */
	c->is_reserved = !err || err->id == ERRID_RUN_DB;
	if (c->is_reserved)
		c->d->fig.reservations_open++;
	if (err && !c->is_gone) {
		dispatch_stop_waiting(c);
		why = *err;
		dispatch_refuse(c, &why);
	} else if (dispatch_is_over(c)) {
		return;
	} else if (err_is_set(&c->judged)) {
		why = c->judged;
		dispatch_refuse(c, &why);
	} else if (!c->is_ahead) {
		dispatch_gate(c);
	} else if (c->is_ready) {
		dispatch_ready(c);
	}
}

void dispatch_reserve(struct dispatch_call *c)
{
	bool began = dispatch_reads(c, READING_REQUEST);

	c->kind->estimate(c);
	dispatch_has_read(c->d, began);
	budget_want_amounts(&c->want, c->want.most, &c->est);
	c->is_reserving = true;
	c->is_ahead = c->job->is_granted;
	if (c->is_ahead)
		dispatch_gate(c);
	else
		dispatch_step(c, STEP_RESERVE);
	c->d->ops->reserve(c->d->env, &c->books, &c->want, on_reserved, c);
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
	uint64_t all = (uint64_t)c->est.n[BUDGET_BYTES];

	return all > used ? all - used : 1;
}

static void on_room(uint64_t bytes, const struct err *err, void *arg)
{
	struct dispatch_room *r = arg;
	struct dispatch_call *c = r->call;

	if (c) {
		c->asking = NULL;
		c->room_is_last = err || bytes < r->wanted;
		/* with the database away nobody knows: the settlement gives it back */
		if (!err && bytes > (uint64_t)c->est.n[BUDGET_BYTES])
			c->est.n[BUDGET_BYTES] = (int64_t)bytes;
		if (c->egress)
			c->d->ops->room(c->egress, dispatch_room(c), c->room_is_last);
	}
	free(r);
}

void dispatch_more_room(struct dispatch_call *c)
{
	uint64_t room = dispatch_room(c), step = room;

	if (c->asking || c->room_is_last)
		return;
	step = step < ROOM_STEP_MIN ? ROOM_STEP_MIN : step;
	step = step > ROOM_STEP_MAX ? ROOM_STEP_MAX : step;
	c->asking = xnew(struct dispatch_room);
	c->asking->call = c;
	c->asking->wanted = (uint64_t)c->est.n[BUDGET_BYTES] + step;
	c->d->ops->extend(c->d->env, &c->books, c->asking->wanted, on_room, c->asking);
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

void dispatch_settle(struct dispatch *d, const struct budget_call *books,
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
