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
#include "vessel/dispatch_priv.h"

#define SETTLE_RETRY_USEC USEC_PER_SEC

static void on_reserved(const struct err *err, void *arg)
{
	struct dispatch_call *c = arg;
	struct err why = ERR_INIT;

	c->is_reserving = false;
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
	c->kind->estimate(c);
	c->is_reserving = true;
	c->is_ahead = c->job->is_granted;
	if (c->is_ahead)
		dispatch_gate(c);
	else
		dispatch_step(c, STEP_RESERVE);
	c->d->ops->reserve(c->d->env, &c->books, &c->est, on_reserved, c);
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
