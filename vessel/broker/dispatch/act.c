/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Step 6: an egress worker does it, and what comes back goes through the kind's caps to its
 * reader, no faster than that takes it.
 */
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <assert.h>

#define PIECE_BYTES ((size_t)64 << 10)

/* True when everything that is known of the reply is on its way. */
static bool pump(struct dispatch_call *c)
{
	struct buf *b = &c->pending;

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

enum dispatch_event dispatch_pump(struct dispatch_call *c)
{
	return pump(c) ? ON_READER_READY : ON_READER_BEHIND;
}

static void on_drain(void *arg)
{
	dispatch_on(arg, ON_DRAINED, NULL);
}

static void on_close(void *arg)
{
	struct dispatch_call *c = arg;

	c->stream = NULL;
	c->d->fig.gone++;
	dispatch_on(c, ON_CLOSED, NULL);
}

/* The reply goes out first, in this turn of the loop: the books and the log's word on its end,
 * which nobody waits for, do not delay it. */
enum dispatch_event dispatch_end_stream(struct dispatch_call *c)
{
	httpd_stream_end(c->stream);
	c->stream = NULL;
	return ON_NOTHING;
}

enum dispatch_event dispatch_abort_stream(struct dispatch_call *c)
{
	httpd_stream_abort(c->stream);
	c->stream = NULL;
	return ON_NOTHING;
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
	c->stream = httpd_stream_start(c->req, 200, content_type, on_close, c);
	assert(c->stream); /* else the tomb had hung up, and the call was cut */
	c->req = NULL;
	httpd_stream_on_drain(c->stream, on_drain, c);
}

/* ---- what the worker says ---- */

static void on_head(const struct egress_head *h, void *arg)
{
	struct dispatch_call *c = arg;

	c->now.head = h;
	dispatch_on(c, ON_HEAD, NULL);
}

static bool on_body(const void *data, size_t len, void *arg)
{
	struct dispatch_call *c = arg;

	c->down += len;
	c->now.data = data;
	c->now.len = len;
	dispatch_on(c, ON_CHUNK, NULL);
	return c->machine.way != WAY_PAUSED;
}

static void on_end(const struct egress_end *e, void *arg)
{
	struct dispatch_call *c = arg;

	c->egress = NULL;
	c->sent = e->sent;
	c->up = c->hop_up + e->bytes_up;
	c->down = c->hop_down + e->bytes_down;
	if (e->reason != REASON_NONE)
		c->reason = e->reason;
	dispatch_on(c,
		    !e->err			      ? ON_WORKER_DONE
		    : e->err->id == ERRID_EGRESS_LOST ? ON_WORKER_LOST
						      : ON_WORKER_FAILED,
		    e->err);
}

static void on_more(void *arg)
{
	dispatch_on(arg, ON_MORE, NULL);
}

static const struct egress_ops egress_ops = {on_head, on_body, on_end, on_more};

/* ---- what is made of it ---- */

enum dispatch_event dispatch_read_head(struct dispatch_call *c)
{
	const struct egress_head *h = c->now.head;
	bool began;
	int r;

	c->status = h->status;
	c->answered = dispatch_now(c->d);
	began = dispatch_reads(c, READING_REPLY);
	r = c->kind->head(c, h, &c->said);
	dispatch_has_read(c->d, began);
	if (r < 0)
		return ON_HEAD_BAD;
	if (r == DISPATCH_GATHERS)
		return ON_HEAD_GATHERS;
	return r == DISPATCH_REDIRECTS ? ON_HEAD_REDIRECTS : ON_HEAD_STREAMS;
}

enum dispatch_event dispatch_read_chunk(struct dispatch_call *c)
{
	bool began = dispatch_reads(c, READING_REPLY);
	int r = c->kind->body(c, c->now.data, c->now.len, &c->pending, &c->said);

	dispatch_has_read(c->d, began);
	if (r < 0)
		return ON_CHUNK_BAD;
	if (!buf_ok(&c->pending)) {
		(void)err_set(&c->said, ERR_INTERNAL, "a piece of a reply does not fit");
		return ON_CHUNK_BAD;
	}
	/* without a stream it is put by */
	return !c->stream || pump(c) ? ON_CHUNK_PASSED : ON_CHUNK_STUCK;
}

enum dispatch_event dispatch_read_end(struct dispatch_call *c)
{
	bool began = dispatch_reads(c, READING_REPLY);
	int r = c->kind->end(c, &c->pending, &c->said);

	dispatch_has_read(c->d, began);
	return r < 0 ? ON_END_BAD : ON_END_GOOD;
}

/* ---- the worker is handed it, held up, let go ---- */

enum dispatch_event dispatch_start(struct dispatch_call *c)
{
	int r;

	c->acted = dispatch_now(c->d);
	r = c->kind->start(c, &c->said);
	if (r < 0)
		return ON_START_BAD;
	if (r == DISPATCH_KEPT) {
		c->status = 200;
		return ON_KEPT;
	}
	/* until the worker says otherwise: what is cut here counts */
	c->sent = true;
	c->up = c->hop_up + c->body.len;
	c->down = c->hop_down;
	return ON_STARTED;
}

enum dispatch_event dispatch_resume(struct dispatch_call *c)
{
	c->d->ops->resume(c->egress); /* may end the call */
	return ON_NOTHING;
}

enum dispatch_event dispatch_cancel(struct dispatch_call *c)
{
	c->d->ops->cancel(c->egress);
	c->egress = NULL;
	return ON_NOTHING;
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
