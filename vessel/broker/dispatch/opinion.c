/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Behind step 4, where a classifier is configured: what the gate let through of an ask is written, and
 * a local model reads it as it would leave. That it is asked is in the log before. From the
 * portal threshold on it refuses: what it means stands at no place, so nothing can be
 * put there for it. Whatever is no answer refuses too.
 */
#include "common/cleanup.h"
#include "vessel/broker/dispatch/priv.h"

static void refuse(struct dispatch_call *c, const struct err *why)
{
	opinion_cancel(TAKE_PTR(c->opinion));
	dispatch_on(c, ON_GATE_REFUSED, why);
}

static void on_opinion(const struct opinion_answer *a, void *arg)
{
	struct dispatch_call *c = arg;
	struct err err = ERR_INIT;

	c->opinion = NULL;
	dispatch_log_opinion(c, a);
	if (a->err) {
		refuse(c, a->err);
		return;
	}
	if (a->score > c->score)
		c->score = a->score;
	if (a->score < c->d->cfg.broker->gate.portal_threshold) {
		dispatch_on(c, ON_GATE_PASSED, NULL);
		return;
	}
	(void)err_set_id(&err, ERRID_GATE_PRIVATE,
			 "score %.2f: opinion; no rule found it, the classifier '%s' did",
			 a->score, opinion_portal(c->d->cfg.opinion));
	refuse(c, &err);
}

static void on_logged(const struct err *err, void *arg)
{
	struct dispatch_call *c = arg;

	c->opinion_wait = NULL;
	if (err)
		refuse(c, err);
	else
		opinion_begin(c->opinion, on_opinion, c);
}

/* As it would leave, and what of that is to be shown. */
static int prepare(struct dispatch_call *c, const struct gate_answer *a, struct err *err)
{
	struct dispatch_job *j = c->job;
	bool began = dispatch_reads(c, READING_REQUEST);
	int r;

	if (!j->opinion)
		j->opinion = opinion_job_new();
	r = opinion_prepare(c->d->cfg.opinion, j->opinion, c->lease.job, c->lease.epoch,
			    a->parts, &c->opinion, err);
	if (r == 0 && c->opinion) {
		r = c->kind->write(c, a, err);
		c->is_written = true;
	}
	dispatch_has_read(c->d, began);
	return r;
}

bool dispatch_opinion(struct dispatch_call *c, const struct gate_answer *a)
{
	struct err err = ERR_INIT;

	if (!c->d->cfg.opinion || c->ward.target != WARD_PORTAL)
		return false;
	if (prepare(c, a, &err) < 0) {
		refuse(c, &err);
		return true;
	}
	if (!c->opinion)
		return false; /* it was judged before, all of it */
	c->opinion_wait = dispatch_log_opinion_before(c, on_logged, &err);
	if (!c->opinion_wait)
		refuse(c, &err);
	return true;
}

void dispatch_opinion_cancel(struct dispatch_call *c)
{
	if (c->opinion_wait)
		c->d->ops->forget(c->opinion_wait);
	c->opinion_wait = NULL;
	opinion_cancel(TAKE_PTR(c->opinion));
}
