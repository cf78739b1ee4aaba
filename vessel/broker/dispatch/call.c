/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a call. There are three ways out, all through dispatch_finish(): the reply
 * came to its end, a refusal was answered, the tomb hung up. What was reserved is settled
 * there and nowhere else; a settlement lives on by itself until the database took it.
 *
 * Database calls cannot be taken back: when the tomb hangs up during one, or the call is
 * cut, its callback finds that by dispatch_is_over(). The rest (gate, log, worker) is
 * cancelled at once, though the database is asked at the same time. A call is never ended
 * from inside a callback of its egress call or stream: it is marked (STEP_CUT) and cut from
 * the loop.
 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/intents/ask_reply.h"
#include <assert.h>

/* Of a reply, what its reader has not taken yet: an anonymised one comes in one piece. */
#define PENDING_MAX_BYTES (2 * ASK_REPLY_MAX_BYTES)

static void on_timer(void *arg);
static void on_gone(void *arg);

struct dispatch_call *dispatch_call_new(struct dispatch *d, struct httpd_req *req,
					const struct queue_lease *l,
					const struct dispatch_kind *kind)
{
	struct dispatch_call *c =
		xcalloc(1, sizeof(struct dispatch_call) + kind->own_size);

	c->d = d;
	c->req = req;
	c->lease = *l;
	c->kind = kind;
	c->own = c->behind;
	c->began = c->stepped = dispatch_now(d);
	c->timer = loop_timer_new(d->cfg.loop, on_timer, c);
	c->books.lease = *l;
	c->books.kind = kind->name;
	uuid_new(d->cfg.rng, &c->books.id);
	int r = str_copy(c->target, sizeof(c->target), kind->name);
	assert(r == 0);
	buf_init(&c->body, EGRESS_BODY_MAX_BYTES);
	buf_init(&c->pending, PENDING_MAX_BYTES);
	c->next = d->calls;
	c->link = &d->calls;
	if (c->next)
		c->next->link = &c->next;
	d->calls = c;
	d->fig.in_flight++;
	httpd_req_on_gone(req, on_gone, c);
	return c;
}

static void call_free(struct dispatch_call *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->d->fig.in_flight--;
	if (c->job) {
		c->job->in_flight--;
		c->d->in_flight[c->job->lease.party]--;
	}
	c->kind->done(c);
	dispatch_room_forget(c);
	loop_timer_free(c->timer);
	buf_done(&c->body);
	buf_done(&c->pending);
	free(c);
}

void dispatch_stop_waiting(struct dispatch_call *c)
{
	if (c->gate)
		c->d->ops->gate_cancel(c->gate);
	if (c->wait)
		c->d->ops->forget(c->wait);
	c->gate = NULL;
	c->wait = NULL;
}

/* Lets go of what is under way outside of the database. */
static void let_go(struct dispatch_call *c)
{
	dispatch_stop_waiting(c);
	if (c->egress) {
		c->d->ops->cancel(c->egress);
		c->is_cancelled = true;
	}
	c->egress = NULL;
}

void dispatch_call_drop(struct dispatch_call *c)
{
	let_go(c);
	if (c->req)
		httpd_reply_err(c->req, &c->why); /* frees it */
	call_free(c);
}

void dispatch_finish(struct dispatch_call *c, const struct err *why)
{
	struct dispatch *d = c->d;
	struct budget_amounts actual = {{0}};

	assert(!c->egress && !c->gate && !c->wait && !c->req && !c->stream);
	dispatch_step(c, c->step); /* counts its time */
	if (c->is_reserved) {
		/* as reserved: redirects on its way are no requests of the job's */
		actual.n[BUDGET_REQUESTS] = c->is_sent || c->hops > 0 ? 1 : 0;
		if (actual.n[BUDGET_REQUESTS] > 0) {
			if (c->kind->actual)
				c->kind->actual(c, &actual);
			actual.n[BUDGET_BYTES] = (int64_t)(c->up + c->down);
			/* its worker has read more than came here: nobody knows how much */
			if (c->is_cancelled &&
			    actual.n[BUDGET_BYTES] < c->est.n[BUDGET_BYTES])
				actual.n[BUDGET_BYTES] = c->est.n[BUDGET_BYTES];
		}
		d->fig.reservations_open--;
		d->fig.money_micro += (uint64_t)actual.n[BUDGET_MONEY];
		d->fig.bytes_up += c->up;
		d->fig.bytes_down += c->down;
		dispatch_settle(d, &c->books, &actual);
	}
	if (c->is_logged) {
		dispatch_log_end(c, &actual, why);
		dispatch_count(d, c->target,
			       !why		? VERDICT_ALLOWED
			       : c->is_reserved ? VERDICT_FAILED
						: VERDICT_REFUSED);
		dispatch_count_times(c);
	}
	call_free(c);
}

static bool awaits_database(const struct dispatch_call *c)
{
	return c->step == STEP_LEASE || c->is_reserving;
}

/* ---- refusals ---- */

static void answer_refusal(struct dispatch_call *c)
{
	char text[16];

	if (c->retry_sec && str_fmt(text, sizeof(text), "%u", c->retry_sec) == 0)
		httpd_req_add_header(c->req, "Retry-After", text);
	httpd_reply_err(c->req, &c->why);
	c->req = NULL;
	dispatch_finish(c, &c->why);
}

/* The next multiple of the refusal's time since the request came. */
static usec_t refusal_delay(const struct dispatch_call *c)
{
	usec_t spent = dispatch_now(c->d) - c->began;

	return DISPATCH_REFUSAL_USEC - spent % DISPATCH_REFUSAL_USEC;
}

void dispatch_refuse(struct dispatch_call *c, const struct err *err)
{
	struct dispatch *d = c->d;
	struct dispatch_told *told = c->job ? &c->job->refusals : &d->strangers;

	c->why = *err;
	d->fig.refused[err->id]++;
	if (!c->is_logged)
		dispatch_count(d, c->target, VERDICT_REFUSED);
	if (c->job && dispatch_is_denial(err))
		dispatch_denied(d, c->job);
	if (!c->is_logged && dispatch_tell(d, told, err->id))
		dispatch_log_refused(c, err);
	dispatch_step(c, STEP_REFUSED);
	if (dispatch_is_denial(err) && !d->is_stopping)
		loop_timer_arm(c->timer, refusal_delay(c));
	else
		answer_refusal(c);
}

void dispatch_refuse_in_turn(struct dispatch_call *c, const struct err *why)
{
	if (!c->is_reserving) {
		dispatch_refuse(c, why);
		return;
	}
	c->judged = *why;
	dispatch_step(c, STEP_RESERVE);
}

/* ---- cuts ---- */

/* Goes on from the loop, outside of callbacks of the call's own parts. */
static void from_loop(struct dispatch_call *c, enum dispatch_step step)
{
	dispatch_step(c, step);
	loop_timer_arm(c->timer, 0);
}

/* Outside of callbacks of the call's own parts. */
static void cut_now(struct dispatch_call *c)
{
	let_go(c);
	if (c->stream) {
		httpd_stream_abort(c->stream);
		c->stream = NULL;
		dispatch_finish(c, &c->why);
	} else if (c->req && !c->is_gone) {
		struct err why = c->why;

		dispatch_refuse(c, &why);
	} else {
		if (c->req)
			httpd_reply_err(c->req, &c->why); /* frees it */
		c->req = NULL;
		dispatch_finish(c, &c->why);
	}
}

void dispatch_cut(struct dispatch_call *c, const struct err *why)
{
	if (c->step == STEP_CUT || c->step == STEP_REFUSED || c->step == STEP_SERVED)
		return;
	c->why = *why;
	dispatch_stop_waiting(c);
	if (awaits_database(c))
		return; /* its callback looks: dispatch_is_over() */
	from_loop(c, STEP_CUT);
}

/* A redirect: the same call goes all the way again, but for what it reserved. */
static void again(struct dispatch_call *c)
{
	let_go(c);
	c->is_cancelled = false; /* what came of a redirect has been counted */
	c->hops++;
	c->hop_up = c->up;
	c->hop_down = c->down;
	c->is_sent = false;
	c->status = 0;
	buf_reset(&c->body);
	dispatch_lease(c);
}

void dispatch_served(struct dispatch_call *c)
{
	c->status = 200;
	from_loop(c, STEP_SERVED);
}

void dispatch_again(struct dispatch_call *c)
{
	from_loop(c, STEP_AGAIN);
}

static void on_timer(void *arg)
{
	struct dispatch_call *c = arg;

	if (c->step == STEP_CUT) {
		cut_now(c);
	} else if (c->step == STEP_AGAIN) {
		again(c);
	} else if (c->step == STEP_SERVED) {
		dispatch_finish(c, NULL);
	} else if (c->is_gone) {
		httpd_reply_err(c->req, &c->why); /* frees it */
		c->req = NULL;
		dispatch_finish(c, &c->why);
	} else {
		answer_refusal(c);
	}
}

/* ---- the tomb hangs up ---- */

static void set_gone(struct err *err)
{
	(void)err_set(err, ERR_GONE, "the tomb hung up");
}

static void on_gone(void *arg)
{
	struct dispatch_call *c = arg;

	c->is_gone = true;
	c->d->fig.gone++;
	if (c->step == STEP_REFUSED)
		return;
	let_go(c);
	if (awaits_database(c))
		return;
	set_gone(&c->why);
	from_loop(c, STEP_CUT); /* the request is freed from the loop, not from here */
}

void dispatch_on_close(void *arg)
{
	struct dispatch_call *c = arg;

	c->is_gone = true;
	c->stream = NULL;
	c->d->fig.gone++;
	if (c->step != STEP_CUT)
		set_gone(&c->why);
	let_go(c);
	from_loop(c, STEP_CUT);
}

/* ---- after the database ---- */

static void gone_in_database(struct dispatch_call *c)
{
	if (!err_is_set(&c->why))
		set_gone(&c->why);
	dispatch_step(c, STEP_CUT);
	cut_now(c);
}

bool dispatch_is_over(struct dispatch_call *c)
{
	struct err why = c->why;

	if (c->is_gone) {
		gone_in_database(c);
		return true;
	}
	if (!err_is_set(&why) && c->d->is_stopping)
		(void)err_set_id(&why, ERRID_BROKER_STOPPING, "nothing was sent");
	if (!err_is_set(&why))
		return false;
	dispatch_stop_waiting(c);
	dispatch_refuse(c, &why);
	return true;
}
