/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 1: whose request it is. The lease must stand, strictly; the job must have been
 * begun with this kind of egress, and may have only so many requests under way: more of them
 * wait in its line, in the order in which they came. As many as a tomb lets a job have; one
 * that the tomb thinks ended may still be ending here.
 *
 * A lease that has been good before is asked for in the statement that reserves (step 3),
 * which refuses without it: a look of its own would cost every request a turn at the
 * database. What is refused sooner looks first, for a job whose lease has ended learns
 * nothing else.
 */
#include "common/proto/broker_limits.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <string.h>

static bool is_mode(const struct dispatch_job *j, const char *mode)
{
	size_t n = strcspn(j->egress, "+");

	return n == strlen(mode) && memcmp(j->egress, mode, n) == 0;
}

/* ---- how many a job has under way ---- */

static unsigned limit_of(const struct dispatch *d)
{
	return d->cfg.broker->egress.in_flight;
}

static void stand_in_line(struct dispatch_call *c, struct dispatch_job *j)
{
	struct dispatch_call **end = &j->line;

	while (*end)
		end = &(*end)->behind_it;
	*end = c;
	c->behind_it = NULL;
	c->line = j;
	j->waiting++;
}

static void step_out(struct dispatch_call *c)
{
	struct dispatch_job *j = c->line;
	struct dispatch_call **at;

	if (!j)
		return;
	for (at = &j->line; *at != c; at = &(*at)->behind_it)
		;
	*at = c->behind_it;
	c->line = NULL;
	j->waiting--;
	j->called -= c->is_called;
	c->is_called = false;
}

/* Each that is called has a place kept; its turn is the loop's next one. */
void dispatch_call_up(struct dispatch_job *j)
{
	for (struct dispatch_call *c = j->line; c; c = c->behind_it) {
		if (j->in_flight + j->called >= limit_of(c->d))
			return;
		if (c->is_called)
			continue;
		c->is_called = true;
		j->called++;
		loop_timer_arm(c->timer, 0);
	}
}

enum dispatch_event dispatch_step_out(struct dispatch_call *c)
{
	struct dispatch_job *j = c->line;

	loop_timer_disarm(c->timer);
	step_out(c);
	dispatch_call_up(j);
	return ON_NOTHING;
}

/* Who has been seen before names neither identity nor egress. */
static int remember(struct dispatch_call *c, struct dispatch_job *j, struct err *err)
{
	const char *identity = c->now.identity, *egress = c->now.egress;

	/* it may come here again, when these are gone */
	c->now.identity = c->now.egress = NULL;
	if (egress && *egress &&
	    (str_copy(j->egress, sizeof(j->egress), egress) < 0 ||
	     str_copy(j->identity, sizeof(j->identity), identity) < 0))
		return err_set(err, ERR_INTERNAL, "a job's identity or egress");
	j->used = dispatch_now(c->d);
	return 0;
}

/* 1: not yet. */
static int count_in(struct dispatch_call *c, struct dispatch_job *j, struct err *err)
{
	bool was_called = c->is_called;
	unsigned limit = limit_of(c->d);

	if (!j)
		return err_set_id(err, ERRID_BROKER_BUSY, "too many jobs ask");
	step_out(c);
	if (remember(c, j, err) < 0)
		return -1;
	/* more than a tomb lets its jobs have */
	if (c->d->in_flight[j->lease.party] >= BROKER_INFLIGHT_ALL)
		return err_set_id(err, ERRID_BROKER_BUSY, "%u of this tomb are",
				  c->d->in_flight[j->lease.party]);
	if (j->in_flight >= limit || (j->waiting > 0 && !was_called)) {
		if (j->waiting >= broker_waiting_max(limit))
			return err_set_id(err, ERRID_BROKER_BUSY,
					  "%u are under way, %u wait", j->in_flight,
					  j->waiting);
		stand_in_line(c, j);
		return 1;
	}
	j->in_flight++;
	c->d->in_flight[j->lease.party]++;
	c->job = j;
	return 0;
}

static enum dispatch_event may_go_on(struct dispatch_call *c)
{
	const struct dispatch_job *j = c->job;

	if (c->kind->installs) {
		if (is_mode(j, "registry") || strchr(j->egress, '+'))
			return ON_TAKEN;
		(void)err_set_id(&c->said, ERRID_BROKER_PACKAGES, "egress: %s",
				 j->egress);
		return ON_MISFIT;
	}
	if (is_mode(j, "brokered") || is_mode(j, "registry"))
		return ON_TAKEN;
	(void)err_set_id(&c->said, ERRID_BROKER_MODE, "egress: %s", j->egress);
	return ON_MISFIT;
}

enum dispatch_event dispatch_take(struct dispatch_call *c)
{
	struct dispatch_job *j = dispatch_job_get(c->d, &c->lease);
	int r = count_in(c, j, &c->said);

	if (j)
		dispatch_call_up(j);
	if (r == 0)
		return may_go_on(c);
	if (r > 0)
		return ON_WAITS;
	c->retry_sec = BROKER_RETRY_SEC;
	return ON_BUSY;
}

static void on_lease(const char *identity, const char *egress, const struct err *err,
		     void *arg)
{
	struct dispatch_call *c = arg;

	c->now.identity = identity;
	c->now.egress = egress;
	dispatch_on_database(c, err ? ON_LEASE_BAD : ON_LEASE_GOOD, err);
}

/* What the specification says is asked for once. */
enum dispatch_event dispatch_look_spec(struct dispatch_call *c)
{
	c->d->ops->lease(c->d->env, &c->lease, true, on_lease, c);
	return ON_NOTHING;
}

enum dispatch_event dispatch_look(struct dispatch_call *c)
{
	c->d->ops->lease(c->d->env, &c->lease, false, on_lease, c);
	return ON_NOTHING;
}
