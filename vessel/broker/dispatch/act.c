/* SPDX-License-Identifier: Apache-2.0 */
/* Step 6: an egress worker does it, and what comes back goes through the kind's caps to its
 * reader, no faster than that takes it. */
#include "common/log.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <assert.h>

#define PIECE_BYTES ((size_t)64 << 10)

/* True when everything that is known of the reply is on its way. */
static bool pump(struct dispatch_call *c)
{
	struct buf *b = &c->pending;

	if (!c->stream) {
		buf_reset(b);
		c->pending_at = 0;
		return true; /* it is gone; the end is near */
	}
	while (c->pending_at < b->len &&
	       httpd_stream_backlog(c->stream) <= DISPATCH_PAUSE_BYTES) {
		size_t n = b->len - c->pending_at;

		n = n < PIECE_BYTES ? n : PIECE_BYTES;
		if (!httpd_stream_send(c->stream, b->data + c->pending_at, n))
			return false; /* its close is the next thing that comes */
		c->pending_at += n;
	}
	if (c->pending_at < b->len)
		return false;
	buf_reset(b);
	c->pending_at = 0;
	return httpd_stream_backlog(c->stream) <= DISPATCH_PAUSE_BYTES;
}

/* The reply came to its end. It goes out first, in this turn of the loop: the books and
 * the log's word on its end, which nobody waits for, do not delay it. */
static void complete(struct dispatch_call *c)
{
	httpd_stream_end(c->stream);
	c->stream = NULL;
	dispatch_step(c, STEP_SERVED);
	loop_timer_arm(c->timer, 0);
}

static bool on_body(const void *data, size_t len, void *arg)
{
	struct dispatch_call *c = arg;
	struct err err = ERR_INIT;
	bool began;
	int r;

	c->down += len;
	if (c->step != STEP_ACT || !c->stream)
		return true;
	began = dispatch_reads(c, READING_REPLY);
	r = c->kind->body(c, data, len, &c->pending, &err);
	dispatch_has_read(c->d, began);
	if (r < 0) {
		dispatch_cut(c, &err);
		return true;
	}
	if (!buf_ok(&c->pending)) {
		(void)err_set(&err, ERR_INTERNAL, "a piece of a reply does not fit");
		dispatch_cut(c, &err);
		return true;
	}
	c->is_paused = !pump(c);
	return !c->is_paused;
}

static void on_drain(void *arg)
{
	struct dispatch_call *c = arg;

	if (c->step == STEP_CUT || !pump(c))
		return;
	if (c->step == STEP_DRAIN) {
		complete(c);
	} else if (c->is_paused && c->egress) {
		c->is_paused = false;
		c->d->ops->resume(c->egress); /* may end the call */
	}
}

static void on_head(const struct egress_head *h, void *arg)
{
	struct dispatch_call *c = arg;
	struct err err = ERR_INIT;
	bool began;
	int r;

	if (c->step != STEP_ACT)
		return;
	c->is_sent = true;
	c->status = h->status;
	c->answered = dispatch_now(c->d);
	began = dispatch_reads(c, READING_REPLY);
	r = c->kind->head(c, h, &err);
	dispatch_has_read(c->d, began);
	if (r < 0)
		dispatch_cut(c, &err);
}

void dispatch_stream(struct dispatch_call *c, const struct egress_head *h,
		     const char *content_type)
{
	char text[16];
	int r = str_fmt(text, sizeof(text), "%u", h->status);

	assert(r == 0);
	httpd_req_add_header(c->req, "Lychgate-Upstream-Status", text);
	/* what of them has no room is left out: a server may send as many as it likes */
	for (size_t i = 0; i < h->n_headers; i++)
		if (!str_eq(h->headers[i].name, "content-type"))
			(void)httpd_req_pass_header(c->req, h->headers[i].name,
						    h->headers[i].value);
	c->stream = httpd_stream_start(c->req, 200, content_type, dispatch_on_close, c);
	c->req = NULL;
	if (c->stream)
		httpd_stream_on_drain(c->stream, on_drain, c);
}

/* What of a worker's error the job may know: its code. */
static void tell_less(const struct err *err, struct err *ret)
{
	(void)err_set_id(ret, err->id, "the reason is in the audit log");
}

static void broke(struct dispatch_call *c, const struct err *err)
{
	struct err why = ERR_INIT;

	log_kv(LOG_INFO_, "a request ended with an error", "target", c->target, "error",
	       err_text(err), "why", err->msg, NULL);
	if (c->room_is_last && err->id == ERRID_EGRESS_TOO_LARGE)
		(void)err_set_id(&why, ERRID_BUDGET_BYTES, "the reply was cut there");
	else
		tell_less(err, &why);
	if (!c->stream) {
		dispatch_refuse(c, &why);
		return;
	}
	c->d->fig.refused[why.id]++;
	httpd_stream_abort(c->stream);
	c->stream = NULL;
	dispatch_finish(c, &why);
}

static int read_end(struct dispatch_call *c, struct err *err)
{
	bool began = dispatch_reads(c, READING_REPLY);
	int r = c->kind->end(c, &c->pending, err);

	dispatch_has_read(c->d, began);
	return r;
}

static void on_end(const struct egress_end *e, void *arg)
{
	struct dispatch_call *c = arg;
	struct err err = ERR_INIT;

	c->egress = NULL;
	c->is_sent = e->sent;
	c->is_cancelled = e->err && e->err->id == ERRID_EGRESS_LOST;
	c->up = c->hop_up + e->bytes_up;
	c->down = c->hop_down + e->bytes_down;
	if (e->reason != REASON_NONE)
		c->reason = e->reason;
	if (c->step != STEP_ACT)
		return; /* its cut is on the way */
	if (e->err) {
		broke(c, e->err);
	} else if (!c->stream) {
		/* a worker that ends well without a head is broken */
		(void)err_set_id(&err, ERRID_EGRESS_REPLY, "no reply");
		broke(c, &err);
	} else if (read_end(c, &err) < 0) {
		broke(c, &err);
	} else {
		c->is_whole = true;
		dispatch_step(c, STEP_DRAIN);
		if (pump(c))
			complete(c);
	}
}

static void on_more(void *arg)
{
	struct dispatch_call *c = arg;

	if (c->step == STEP_ACT)
		dispatch_more_room(c);
}

static const struct egress_ops egress_ops = {on_head, on_body, on_end, on_more};

static void dispatch_act(struct dispatch_call *c);

void dispatch_ready(struct dispatch_call *c)
{
	c->is_ready = true;
	if (c->is_reserving)
		dispatch_step(c, STEP_RESERVE); /* what it takes beyond the others */
	else if (!dispatch_is_over(c))
		dispatch_act(c);
}

static void dispatch_act(struct dispatch_call *c)
{
	struct err err = ERR_INIT, less = ERR_INIT;

	dispatch_step(c, STEP_ACT);
	c->acted = dispatch_now(c->d);
	if (c->kind->start(c, &err) < 0) {
		tell_less(&err, &less);
		dispatch_refuse(c, &less);
		return;
	}
	if (c->step == STEP_SERVED)
		return;
	/* until the worker says otherwise: what is cut here counts */
	c->is_sent = true;
	c->up = c->hop_up + c->body.len;
	c->down = c->hop_down;
}

int dispatch_send(struct dispatch_call *c, const struct egress_request *rq,
		  struct err *err)
{
	const struct conf_egress *e = &c->d->cfg.broker->egress;
	struct egress_request full = *rq;

	full.job = c->lease.job;
	full.epoch = c->lease.epoch;
	full.limits.connect_usec = e->connect_usec;
	full.limits.first_byte_usec = e->first_byte_usec;
	full.limits.idle_usec = e->idle_usec;
	full.limits.total_usec = e->total_usec;
	full.retries = e->retries;
	full.limits.reply_room_bytes = dispatch_room(c);
	return c->d->ops->start(c->d->env, &full, &egress_ops, c, &c->egress, err);
}
