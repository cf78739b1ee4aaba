/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * How a call ends: why, what the job is answered, what is booked and told. What was reserved is
 * settled here and nowhere else; the settlement lives on by itself until the database took it.
 */
#include "common/log.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"

/* ---- why ---- */

enum dispatch_event dispatch_why_said(struct dispatch_call *c)
{
	c->why = c->said;
	return ON_NOTHING;
}

enum dispatch_event dispatch_why_less(struct dispatch_call *c)
{
	c->cause = c->said;
	(void)err_set_id(&c->why, c->said.id, "the reason is in the audit log");
	return ON_NOTHING;
}

enum dispatch_event dispatch_why_broken(struct dispatch_call *c)
{
	log_kv(LOG_INFO_, "a request ended with an error", "target", c->target, "error",
	       err_text(&c->said), "why", c->said.msg, NULL);
	if (c->machine.room != ROOM_LAST || c->said.id != ERRID_EGRESS_TOO_LARGE)
		return dispatch_why_less(c);
	(void)err_set_id(&c->why, ERRID_BUDGET_BYTES, "the reply was cut there");
	return ON_NOTHING;
}

/* A worker that ends well without a head is broken. */
enum dispatch_event dispatch_why_no_reply(struct dispatch_call *c)
{
	(void)err_set_id(&c->said, ERRID_EGRESS_REPLY, "no reply");
	return dispatch_why_broken(c);
}

enum dispatch_event dispatch_why_gone(struct dispatch_call *c)
{
	(void)err_set(&c->why, ERR_GONE, "the tomb hung up");
	return ON_NOTHING;
}

/* ---- the answer ---- */

enum dispatch_event dispatch_refuse(struct dispatch_call *c)
{
	struct dispatch *d = c->d;
	struct dispatch_logged *logged = c->job ? &c->job->refusals : &d->strangers;
	bool is_logged = dispatch_is(c, IS_LOGGED),
	     is_denial = dispatch_is_denial(&c->why);

	d->fig.refused[c->why.id]++;
	if (!is_logged)
		dispatch_count(d, c->target, VERDICT_REFUSED);
	if (c->job && is_denial)
		dispatch_denied(d, c->job);
	if (!is_logged && dispatch_may_log(d, logged, c->why.id))
		dispatch_log_refused(c, &c->why);
	return is_denial && !d->is_stopping ? ON_ANSWER_LATER : ON_ANSWER_NOW;
}

/* The next multiple of the refusal's time since the request came. */
enum dispatch_event dispatch_at_time(struct dispatch_call *c)
{
	usec_t spent = dispatch_now(c->d) - c->began;

	loop_timer_arm(c->timer, DISPATCH_REFUSAL_USEC - spent % DISPATCH_REFUSAL_USEC);
	return ON_NOTHING;
}

enum dispatch_event dispatch_drop_request(struct dispatch_call *c)
{
	httpd_reply_err(c->req, &c->why); /* frees it */
	c->req = NULL;
	return ON_NOTHING;
}

enum dispatch_event dispatch_answer(struct dispatch_call *c)
{
	char text[16];

	if (c->retry_sec && str_fmt(text, sizeof(text), "%u", c->retry_sec) == 0)
		httpd_req_add_header(c->req, "Retry-After", text);
	return dispatch_drop_request(c);
}

enum dispatch_event dispatch_count_cut(struct dispatch_call *c)
{
	c->d->fig.refused[c->why.id]++;
	return ON_NOTHING;
}

/* ---- the books, and the log's word on the end ---- */

static void find_actual(const struct dispatch_call *c, struct budget_amounts *ret)
{
	/* as reserved: redirects on its way are no requests of the job's */
	ret->n[c->kind->counts] = c->sent || c->hops > 0 ? 1 : 0;
	if (ret->n[c->kind->counts] == 0)
		return;
	if (c->kind->actual)
		c->kind->actual(c, ret);
	ret->n[BUDGET_BYTES] = (int64_t)(c->up + c->down);
	/* its worker has read more than came here: nobody knows how much */
	if (dispatch_is(c, IS_LOST) && ret->n[BUDGET_BYTES] < c->estimate.n[BUDGET_BYTES])
		ret->n[BUDGET_BYTES] = c->estimate.n[BUDGET_BYTES];
}

enum dispatch_event dispatch_settle(struct dispatch_call *c)
{
	struct dispatch_figures *f = &c->d->fig;

	find_actual(c, &c->actual);
	f->reservations_open--;
	f->money_micro += (uint64_t)c->actual.n[BUDGET_MONEY];
	f->bytes_up += c->up;
	f->bytes_down += c->down;
	dispatch_settlement_new(c->d, &c->books, &c->actual);
	return ON_NOTHING;
}

static enum dispatch_event log_end(struct dispatch_call *c, const struct err *why,
				   enum dispatch_verdict v)
{
	dispatch_log_end(c, &c->actual, why);
	dispatch_count(c->d, c->target, v);
	dispatch_count_times(c);
	return ON_NOTHING;
}

enum dispatch_event dispatch_log_done(struct dispatch_call *c)
{
	return log_end(c, NULL, VERDICT_ALLOWED);
}

enum dispatch_event dispatch_log_failed(struct dispatch_call *c)
{
	return log_end(c, &c->why,
		       dispatch_is(c, IS_RESERVED) ? VERDICT_FAILED : VERDICT_REFUSED);
}
