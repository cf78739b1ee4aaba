/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The life of a call: what happens is told to its machine (machine.h) by dispatch_on(),
 * and what that says is to be done is done here, by the functions of the files of each step.
 *
 * Database calls cannot be taken back: when the tomb hangs up during one, or the call is cut, its
 * state waits for the answer. The rest (gate, log, worker) is cancelled at once, though the
 * database is asked at the same time. A call is never ended from inside a callback of its egress
 * call or stream, but by the end of either: it is marked, and ended from the loop.
 */
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/intents/ask_reply.h"
#include <assert.h>

/* Of a reply, what its reader has not taken yet: an anonymised one comes in one piece. */
#define PENDING_MAX_BYTES (2 * ASK_REPLY_MAX_BYTES)

static void on_timer(void *arg)
{
	dispatch_on(arg, ON_TURN, NULL);
}

static void on_gone(void *arg)
{
	struct dispatch_call *c = arg;

	c->d->fig.gone++;
	dispatch_on(c, ON_GONE, NULL);
}

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
	dispatch_machine_init(&c->machine);
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

/* ---- what is done for the call itself ---- */

static enum dispatch_event at_turn(struct dispatch_call *c)
{
	loop_timer_arm(c->timer, 0);
	return ON_NOTHING;
}

/* A redirect: the same call goes all the way again, but for what it reserved. */
static enum dispatch_event rewind_for_hop(struct dispatch_call *c)
{
	c->hops++;
	c->hop_up = c->up;
	c->hop_down = c->down;
	c->sent = false;
	c->status = 0;
	buf_reset(&c->body);
	return ON_NOTHING;
}

static enum dispatch_event leave(struct dispatch_call *c)
{
	c->job->in_flight--;
	c->d->in_flight[c->job->lease.party]--;
	dispatch_call_up(c->job);
	return ON_NOTHING;
}

static enum dispatch_event call_free(struct dispatch_call *c)
{
	assert(!c->egress && !c->gate && !c->opinion && !c->opinion_wait && !c->wait &&
	       !c->req && !c->stream);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->d->fig.in_flight--;
	c->kind->done(c);
	dispatch_room_forget(c);
	loop_timer_free(c->timer);
	buf_done(&c->body);
	buf_done(&c->pending);
	free(c);
	return ON_NOTHING;
}

/* ---- events in, effects out ---- */

static dispatch_doing *const doings[DISPATCH_EFFECTS_] = {
	[DO_LOOK_SPEC] = dispatch_look_spec,
	[DO_LOOK] = dispatch_look,
	[DO_TAKE] = dispatch_take,
	[DO_STEP_OUT] = dispatch_step_out,
	[DO_JUDGE] = dispatch_judge,
	[DO_ESTIMATE] = dispatch_estimate,
	[DO_RESERVE] = dispatch_reserve,
	[DO_GATE] = dispatch_gate,
	[DO_CANCEL_GATE] = dispatch_cancel_gate,
	[DO_WRITE] = dispatch_write,
	[DO_LOG] = dispatch_log,
	[DO_FORGET_LOG] = dispatch_forget_log,
	[DO_START] = dispatch_start,
	[DO_READ_HEAD] = dispatch_read_head,
	[DO_READ_CHUNK] = dispatch_read_chunk,
	[DO_READ_END] = dispatch_read_end,
	[DO_PUMP] = dispatch_pump,
	[DO_RESUME] = dispatch_resume,
	[DO_CANCEL] = dispatch_cancel,
	[DO_REWIND] = rewind_for_hop,
	[DO_WHY_SAID] = dispatch_why_said,
	[DO_WHY_LESS] = dispatch_why_less,
	[DO_WHY_BROKEN] = dispatch_why_broken,
	[DO_WHY_NO_REPLY] = dispatch_why_no_reply,
	[DO_WHY_GONE] = dispatch_why_gone,
	[DO_COUNT_CUT] = dispatch_count_cut,
	[DO_REFUSE] = dispatch_refuse,
	[DO_AT_TURN] = at_turn,
	[DO_AT_TIME] = dispatch_at_time,
	[DO_ANSWER] = dispatch_answer,
	[DO_DROP_REQUEST] = dispatch_drop_request,
	[DO_END_STREAM] = dispatch_end_stream,
	[DO_ABORT_STREAM] = dispatch_abort_stream,
	[DO_SETTLE] = dispatch_settle,
	[DO_LOG_DONE] = dispatch_log_done,
	[DO_LOG_FAILED] = dispatch_log_failed,
	[DO_LEAVE] = leave,
	[DO_FREE] = call_free,
	[DO_WANT_ROOM] = dispatch_want_room,
	[DO_EXTEND] = dispatch_extend,
	[DO_TELL_ROOM] = dispatch_tell_room,
};

static void defect(struct dispatch_call *c, enum dispatch_state was,
		   enum dispatch_event ev)
{
	log_kv(LOG_ERROR_, "a request of a job was told what cannot be, and is cut",
	       "state", dispatch_state_name(was), "event", dispatch_event_name(ev), NULL);
	(void)err_set_id(&c->said, ERRID_CORE_INTERNAL, "%s in %s",
			 dispatch_event_name(ev), dispatch_state_name(was));
}

/* The call may be gone after the last effect, which is also the only one that says what comes
 * next. */
static enum dispatch_event take_in(struct dispatch_call *c, enum dispatch_event ev)
{
	enum dispatch_state was = c->machine.way;
	enum dispatch_event next = ON_NOTHING;
	struct dispatch_effects out;

	dispatch_machine_step(&c->machine, ev, &out);
	if (out.is_defect)
		defect(c, was, ev);
	if (was != c->machine.way)
		dispatch_count_phase(c, was);
	for (unsigned i = 0; i < out.n; i++)
		next = doings[out.list[i]](c);
	return next;
}

void dispatch_on(struct dispatch_call *c, enum dispatch_event ev, const struct err *said)
{
	if (said)
		c->said = *said;
	while (ev != ON_NOTHING)
		ev = take_in(c, ev);
}

void dispatch_on_database(struct dispatch_call *c, enum dispatch_event ev,
			  const struct err *said)
{
	struct err why = ERR_INIT;

	if (!said && c->d->is_stopping) {
		(void)err_set_id(&why, ERRID_BROKER_STOPPING, "nothing was sent");
		dispatch_on(c, ON_STOPPING, &why);
	}
	dispatch_on(c, ev, said);
}
