/* SPDX-License-Identifier: Apache-2.0 */
/* Step 2: the request is read, and the rules of codex.yaml say whether it may be made. The
 * next hop of a redirect is judged like a first request, but has its reservation. */
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

void dispatch_ward(struct dispatch_call *c)
{
	bool began = dispatch_reads(c, READING_REQUEST);
	struct err why = ERR_INIT;
	int r = judge(c, &why);

	dispatch_has_read(c->d, began);
	if (r < 0)
		dispatch_refuse_early(c, &why);
	else if (c->is_reserved)
		dispatch_gate(c);
	else
		dispatch_reserve(c);
}
