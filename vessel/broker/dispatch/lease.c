/* SPDX-License-Identifier: Apache-2.0 */
/* Step 1: whose request it is. The lease must stand, strictly; the job must have been
 * begun with this kind of egress, and may have only so many requests under way.
 *
 * A lease that has been good before is asked for in the statement that reserves (step 3),
 * which refuses without it: a look of its own would cost every request a turn at the
 * database. What is refused sooner looks first, for a job whose lease has ended learns
 * nothing else. */
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <string.h>

static bool is_mode(const struct dispatch_job *j, const char *mode)
{
	size_t n = strcspn(j->egress, "+");

	return n == strlen(mode) && memcmp(j->egress, mode, n) == 0;
}

static int take_job(struct dispatch_call *c, const char *identity, const char *egress,
		    struct err *err)
{
	struct dispatch_job *j = dispatch_job_get(c->d, &c->lease);

	if (!j || j->in_flight >= c->d->cfg.broker->egress.in_flight)
		return err_set_id(err, ERRID_BROKER_BUSY, "%u are under way",
				  j ? j->in_flight : 0);
	/* more than a tomb lets its jobs have */
	if (c->d->in_flight[j->lease.party] >= BROKER_INFLIGHT_ALL)
		return err_set_id(err, ERRID_BROKER_BUSY, "%u of this tomb are",
				  c->d->in_flight[j->lease.party]);
	if (*egress && (str_copy(j->egress, sizeof(j->egress), egress) < 0 ||
			str_copy(j->identity, sizeof(j->identity), identity) < 0))
		return err_set(err, ERR_INTERNAL, "a job's identity or egress");
	j->used = dispatch_now(c->d);
	j->in_flight++;
	c->d->in_flight[j->lease.party]++;
	c->job = j;
	if (c->kind->installs)
		return is_mode(j, "registry") || strchr(j->egress, '+')
			       ? 0
			       : err_set_id(err, ERRID_BROKER_PACKAGES, "egress: %s",
					    j->egress);
	if (is_mode(j, "brokered") || is_mode(j, "registry"))
		return 0;
	return err_set_id(err, ERRID_BROKER_MODE, "egress: %s", j->egress);
}

static void on_lease(const char *identity, const char *egress, const struct err *err,
		     void *arg)
{
	struct dispatch_call *c = arg;
	struct err why = ERR_INIT;

	if (err && !c->is_gone) {
		why = *err;
		dispatch_refuse(c, &why);
		return;
	}
	if (dispatch_is_over(c))
		return;
	if (err_is_set(&c->judged)) {
		why = c->judged;
		dispatch_refuse(c, &why);
	} else if (!c->job && take_job(c, identity, egress, &why) < 0) {
		dispatch_refuse(c, &why);
	} else {
		dispatch_ward(c);
	}
}

static void look(struct dispatch_call *c, bool with_spec)
{
	dispatch_step(c, STEP_LEASE);
	c->lease_later = false;
	c->d->ops->lease(c->d->env, &c->lease, with_spec, on_lease, c);
}

void dispatch_lease(struct dispatch_call *c)
{
	struct err why = ERR_INIT;

	if (c->job || !dispatch_job_find(c->d, &c->lease)) {
		/* what the specification says is asked for once */
		look(c, !c->job);
		return;
	}
	dispatch_step(c, STEP_LEASE);
	c->lease_later = true;
	if (take_job(c, "", "", &why) < 0)
		dispatch_refuse_early(c, &why);
	else
		dispatch_ward(c);
}

void dispatch_refuse_early(struct dispatch_call *c, const struct err *why)
{
	if (!c->lease_later) {
		dispatch_refuse(c, why);
		return;
	}
	c->judged = *why;
	look(c, false);
}
