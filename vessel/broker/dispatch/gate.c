/* SPDX-License-Identifier: Apache-2.0 */
/* Step 4: the privatization gate reads what would leave; what goes on is written only from
 * its answer. */
#include "vessel/broker/dispatch/priv.h"

/* The first one of an attempt is a signal for containment, as many denials are. */
static void canary(struct dispatch_call *c)
{
	struct dispatch_job *j = c->job;

	c->d->fig.canaries++;
	c->d->fig.signals += j->canaries.told == 0;
	if (dispatch_tell(c->d, &j->canaries, ERRID_GATE_PRIVATE))
		dispatch_log_canary(c);
}

static void on_gate(const struct gate_answer *a, void *arg)
{
	struct dispatch_call *c = arg;
	struct err err = ERR_INIT;
	bool began;
	int r;

	c->gate = NULL;
	c->is_scanned = true;
	c->score = a->score;
	c->is_anonymised = a->verdict == GATE_ANONYMISE;
	if (a->has_canary)
		canary(c);
	if (a->verdict == GATE_REFUSE) {
		dispatch_refuse_in_turn(c, a->err);
		return;
	}
	began = dispatch_reads(c, READING_REQUEST);
	r = c->kind->write(c, a, &err);
	dispatch_has_read(c->d, began);
	if (r < 0)
		dispatch_refuse_in_turn(c, &err);
	else
		dispatch_audit(c);
}

void dispatch_gate(struct dispatch_call *c)
{
	struct gate_parts *parts;
	struct err err = ERR_INIT;
	bool began;

	dispatch_step(c, STEP_GATE);
	began = dispatch_reads(c, READING_REQUEST);
	parts = c->kind->parts(c);
	dispatch_has_read(c->d, began);
	if (c->d->ops->gate(c->d->env, c->job->gate, c->target, parts, on_gate, c,
			    &c->gate, &err) < 0) {
		c->gate = NULL;
		dispatch_refuse_in_turn(c, &err);
	}
}
