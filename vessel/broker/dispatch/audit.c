/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 5: the decision is in the log, on disk, before anything of it happens.
 */
#include "vessel/broker/dispatch/priv.h"

static void on_logged(const struct err *err, void *arg)
{
	struct dispatch_call *c = arg;

	c->wait = NULL;
	dispatch_on(c, err ? ON_LOG_BAD : ON_LOGGED, err);
}

enum dispatch_event dispatch_log(struct dispatch_call *c)
{
	c->wait = dispatch_log_before(c, on_logged, &c->said);
	return c->wait ? ON_LOG_BEGUN : ON_LOG_BAD;
}

enum dispatch_event dispatch_forget_log(struct dispatch_call *c)
{
	c->d->ops->forget(c->wait);
	c->wait = NULL;
	return ON_NOTHING;
}
