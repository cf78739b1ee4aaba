/* SPDX-License-Identifier: Apache-2.0 */
/* Step 5: the decision is in the log, on disk, before anything of it happens. */
#include "vessel/broker/dispatch/priv.h"

static void on_logged(const struct err *err, void *arg)
{
	struct dispatch_call *c = arg;

	c->wait = NULL;
	if (err)
		dispatch_refuse_in_turn(c, err);
	else
		dispatch_ready(c);
}

void dispatch_audit(struct dispatch_call *c)
{
	struct err err = ERR_INIT;

	dispatch_step(c, STEP_AUDIT);
	c->wait = dispatch_log_before(c, on_logged, &err);
	if (!c->wait)
		dispatch_refuse_in_turn(c, &err);
	else
		c->is_logged = true;
}
