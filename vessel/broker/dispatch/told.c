/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a job can make the log say at will: refusals cost it nothing, so that the log has
 * the first ones by themselves and of the rest a number a minute.
 */
#include "vessel/broker/dispatch/priv.h"

bool dispatch_tell(struct dispatch *d, struct dispatch_told *t, enum err_id what)
{
	if (t->told < DISPATCH_TOLD) {
		t->told++;
		return true;
	}
	if (t->untold == 0)
		t->since = dispatch_now(d);
	t->untold++;
	t->last = what;
	return false;
}

static void rest(struct dispatch *d, const struct dispatch_job *j, const char *first,
		 const char *second, struct dispatch_told *t, bool at_end)
{
	if (t->untold == 0 ||
	    (!at_end && dispatch_now(d) - t->since < DISPATCH_UNTOLD_USEC))
		return;
	dispatch_log_untold(d, j, first, second, t);
	t->untold = 0;
}

void dispatch_tell_rest(struct dispatch *d, struct dispatch_job *j, bool at_end)
{
	rest(d, j, "broker", "refusals", j ? &j->refusals : &d->strangers, at_end);
	if (j)
		rest(d, j, "detection", "canaries", &j->canaries, at_end);
}
