/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 1: whose request it is. The lease must stand, strictly; the job must have been
 * begun with this kind of egress, and may have only so many requests under way.
 *
 * A lease that has been good before is asked for in the statement that reserves (step 3),
 * which refuses without it: a look of its own would cost every request a turn at the
 * database. What is refused sooner looks first, for a job whose lease has ended learns
 * nothing else.
 */
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <string.h>

static bool is_mode(const struct dispatch_job *j, const char *mode)
{
	size_t n = strcspn(j->egress, "+");

	return n == strlen(mode) && memcmp(j->egress, mode, n) == 0;
}

/* Who has been seen before names neither identity nor egress. */
static int count_in(struct dispatch_call *c, struct dispatch_job *j, struct err *err)
{
	const char *identity = c->now.identity, *egress = c->now.egress;

	if (!j || j->in_flight >= c->d->cfg.broker->egress.in_flight)
		return err_set_id(err, ERRID_BROKER_BUSY, "%u are under way",
				  j ? j->in_flight : 0);
	/* more than a tomb lets its jobs have */
	if (c->d->in_flight[j->lease.party] >= BROKER_INFLIGHT_ALL)
		return err_set_id(err, ERRID_BROKER_BUSY, "%u of this tomb are",
				  c->d->in_flight[j->lease.party]);
	if (egress && *egress &&
	    (str_copy(j->egress, sizeof(j->egress), egress) < 0 ||
	     str_copy(j->identity, sizeof(j->identity), identity) < 0))
		return err_set(err, ERR_INTERNAL, "a job's identity or egress");
	j->used = dispatch_now(c->d);
	j->in_flight++;
	c->d->in_flight[j->lease.party]++;
	c->job = j;
	return 0;
}

enum dispatch_event dispatch_take(struct dispatch_call *c)
{
	struct dispatch_job *j = dispatch_job_get(c->d, &c->lease);

	if (count_in(c, j, &c->said) < 0)
		return ON_BUSY;
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
