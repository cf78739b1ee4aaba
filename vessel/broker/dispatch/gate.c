/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 4: the privatization gate reads what would leave; what goes on is written only from
 * its answer.
 */
#include "common/proto/broker_limits.h"
#include "vessel/broker/dispatch/priv.h"

#include <stdio.h>

/* The first one of an attempt that was refused is a signal for containment, as many denials are. What
 * was replaced went nowhere: an agent that looked at its environment says it at each turn. */
static void canary(struct dispatch_call *c, bool is_replaced)
{
	struct dispatch_job *j = c->job;

	c->d->fig.canaries++;
	c->d->fig.signals += !is_replaced && !j->sent_its_key;
	j->sent_its_key |= !is_replaced;
	if (dispatch_may_log(c->d, &j->canaries, ERRID_GATE_PRIVATE))
		dispatch_log_canary(c, is_replaced);
}

/* In a form or at a place where an honest agent's words about its environment are not: the first one of an attempt pulls
 * the trigger. */
static void planted(struct dispatch_call *c, bool is_replaced)
{
	struct dispatch_job *j = c->job;
	char why[TARGET_SIZE + 64];
	bool pulls = !is_replaced && !j->sent_planted;

	if (dispatch_act(c->d, TRIGGER_CANARY) == TRIGGER_OFF)
		return;
	c->d->fig.canaries++;
	/* however many were replaced before it */
	if (pulls || dispatch_may_log(c->d, &j->canaries, ERRID_GATE_PRIVATE))
		dispatch_log_planted(c, is_replaced);
	if (!pulls)
		return;
	j->sent_planted = true;
	c->d->fig.signals++;
	(void)snprintf(why, sizeof(why), "what was planted in it was in a request to %s",
		       c->target);
	c->d->ops->trigger(c->d->env, TRIGGER_CANARY, &j->lease, why);
}

static unsigned nth_of_its_kind(const struct gate_parts *parts, size_t at)
{
	unsigned n = 0;

	for (size_t i = 0; i <= at; i++)
		n += parts->part[i].kind == parts->part[at].kind;
	return n;
}

static void note_places(struct dispatch_call *c, const struct gate_answer *a)
{
	c->n_places = 0;
	for (size_t i = 0; a->parts && i < a->n_findings; i++) {
		const struct gate_finding *f = &a->findings[i];

		if (f->part >= a->parts->n || c->n_places++ >= DISPATCH_PLACES)
			continue;
		c->place[c->n_places - 1] = (struct dispatch_place){
			.family = f->family,
			.kind = a->parts->part[f->part].kind,
			.nth = nth_of_its_kind(a->parts, f->part),
			.offset = f->offset,
			.len = f->len,
		};
	}
}

static void on_gate(const struct gate_answer *a, void *arg)
{
	struct dispatch_call *c = arg;

	c->gate = NULL;
	c->score = a->score;
	c->is_anonymised = a->verdict == GATE_ANONYMISE;
	if (a->has_canary)
		canary(c, a->is_canary_replaced);
	if (a->has_planted)
		planted(c, a->is_planted_replaced);
	c->now.answer = a;
	if (a->verdict == GATE_REFUSE) {
		note_places(c, a);
		dispatch_on(c, ON_GATE_REFUSED, a->err);
	} else if (!dispatch_opinion(c, a)) {
		dispatch_on(c, ON_GATE_PASSED, NULL);
	}
}

enum dispatch_event dispatch_gate(struct dispatch_call *c)
{
	struct gate_parts *parts;
	bool began = dispatch_reads(c, READING_REQUEST);

	parts = c->kind->parts(c);
	dispatch_has_read(c->d, began);
	if (c->d->ops->gate(c->d->env, c->job->gate, c->target, parts, on_gate, c,
			    &c->gate, &c->said) == 0)
		return ON_GATE_ASKED;
	c->gate = NULL;
	if (c->said.id == ERRID_GATE_BUSY)
		c->retry_sec = BROKER_RETRY_SEC;
	return ON_GATE_AWAY;
}

enum dispatch_event dispatch_cancel_gate(struct dispatch_call *c)
{
	if (c->gate)
		c->d->ops->gate_cancel(c->gate);
	c->gate = NULL;
	dispatch_opinion_cancel(c);
	return ON_NOTHING;
}

enum dispatch_event dispatch_write(struct dispatch_call *c)
{
	bool began;
	int r;

	if (c->is_written)
		return ON_WRITTEN;
	began = dispatch_reads(c, READING_REQUEST);
	r = c->kind->write(c, c->now.answer, &c->said);
	dispatch_has_read(c->d, began);
	return r < 0 ? ON_WRITE_BAD : ON_WRITTEN;
}
