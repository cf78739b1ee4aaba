/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a job can make the log say at will: refusals cost it nothing, so that the log has
 * the first ones by themselves and of the rest a number a minute.
 */
#include "vessel/broker/dispatch/priv.h"

bool dispatch_may_log(struct dispatch *d, struct dispatch_logged *t, enum err_id what)
{
	if (t->logged < DISPATCH_LOGGED_MAX) {
		t->logged++;
		return true;
	}
	if (t->unlogged == 0)
		t->since = dispatch_now(d);
	t->unlogged++;
	t->last = what;
	return false;
}

static void rest(struct dispatch *d, const struct dispatch_job *j, const char *first,
		 const char *second, struct dispatch_logged *t, bool at_end)
{
	if (t->unlogged == 0 ||
	    (!at_end && dispatch_now(d) - t->since < DISPATCH_UNLOGGED_USEC))
		return;
	dispatch_log_unlogged(d, j, first, second, t);
	t->unlogged = 0;
}

void dispatch_log_number(struct dispatch *d, struct dispatch_job *j, bool at_end)
{
	rest(d, j, "broker", "refusals", j ? &j->refusals : &d->strangers, at_end);
	if (j)
		rest(d, j, "detection", "canaries", &j->canaries, at_end);
}
