/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 2: the request is read, and the rules of codex.yaml say whether it may be made. The
 * next hop of a redirect is judged like a first request, but has its reservation.
 */
#include "vessel/broker/dispatch/priv.h"

const struct conf_rule dispatch_by_proposal = {.target = WARD_HOST, .action = WARD_ALLOW};

/* No rule allows it, and a person has: all that follows judges it as it does what a rule allows. */
static bool is_allowed_by_proposal(struct dispatch_call *c)
{
	struct proposals *p = c->d->cfg.proposals;
	uint64_t n = p ? proposals_take(p, c->lease.job, c->lease.epoch, &c->ward) : 0;

	if (!n)
		return false;
	c->proposal = n;
	c->verdict = (struct ward_verdict){.action = WARD_ALLOW,
					   .rule = &dispatch_by_proposal};
	return true;
}

/* Only a rule is missing: not one that denies, not the kind of host, scheme or port. What git asks for
 * is no single request: a rule for it is written by hand. */
static bool wants_a_rule(const struct dispatch_call *c, const struct err *err)
{
	return err->id == ERRID_WARD_NOT_ALLOWED &&
	       git_request_of(c->ward.method, c->ward.path, c->ward.query) == GIT_NONE &&
	       (c->reason == REASON_NOT_ALLOWED || c->reason == REASON_METHOD ||
		c->reason == REASON_PATH);
}

static void propose(struct dispatch_call *c)
{
	const struct clock_ops *clock = c->d->cfg.clock;
	bool is_new = false;

	if (!c->d->cfg.proposals)
		return;
	c->proposal = proposals_note(c->d->cfg.proposals, c->lease.job, c->lease.epoch,
				     &c->ward, clock->wall_usec(clock->ctx),
				     &c->job->proposed, &is_new);
	if (is_new)
		dispatch_log_proposed(c);
}

static int judge(struct dispatch_call *c, struct err *err)
{
	int r;

	c->proposal = 0;

	if (c->kind->read(c, err) < 0)
		return -1;
	c->ward.identity = c->job->identity;
	r = c->d->ops->ward(c->d->env, &c->ward, &c->verdict, &c->retry_sec, err);
	if (r < 0 && err->id == ERRID_WARD_NOT_ALLOWED && is_allowed_by_proposal(c)) {
		*err = (struct err)ERR_INIT;
		r = 0;
	}
	if (c->kind->judged)
		r = c->kind->judged(c, r, err);
	if (r < 0 && wants_a_rule(c, err))
		propose(c);
	return r;
}

enum dispatch_event dispatch_judge(struct dispatch_call *c)
{
	bool began = dispatch_reads(c, READING_REQUEST);
	int r = judge(c, &c->said);

	dispatch_has_read(c->d, began);
	if (r < 0)
		return ON_DENIED;
	/* what a classifier is shown leaves the vessel: lease and budget come before it */
	return c->job->is_granted && !c->d->cfg.opinion ? ON_ALLOWED_AHEAD : ON_ALLOWED;
}
