/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 2: the request is read, and the rules of codex.yaml say whether it may be made. The
 * next hop of a redirect is judged like a first request, but has its reservation.
 */
#include "vessel/broker/dispatch/priv.h"

static int judge(struct dispatch_call *c, struct err *err)
{
	int r;

	if (c->kind->read(c, err) < 0)
		return -1;
	c->ward.identity = c->job->identity;
	r = c->d->ops->ward(c->d->env, &c->ward, &c->verdict, &c->retry_sec, err);
	return c->kind->judged ? c->kind->judged(c, r, err) : r;
}

enum dispatch_event dispatch_judge(struct dispatch_call *c)
{
	bool began = dispatch_reads(c, READING_REQUEST);
	int r = judge(c, &c->said);

	dispatch_has_read(c->d, began);
	if (r < 0)
		return ON_DENIED;
	return c->job->is_granted ? ON_ALLOWED_AHEAD : ON_ALLOWED;
}
