/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The calls of a worker, from egress_start() to their end.
 *
 * Theory of operation. Bytes of a reply are taken at once or lie in the call's own queue,
 * which the window bounds: the worker may send so many, and gets room again for what was
 * taken. A frame is judged before it is believed: one out of its order, or with more bytes
 * than there is room for, breaks the protocol, and the worker's link is closed (link.h).
 *
 * Callbacks may cancel the call that they are about: `busy` keeps it until they return.
 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/egress_priv.h"
#include <stdlib.h>

#define CREDIT_BYTES (EGRESS_WINDOW_BYTES / 4)

int egress_broken(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_EGRESS_WORKER, "%s", what);
}

void egress_call_free(struct egress_call *c)
{
	struct worker *w = c->worker;

	if (!c->gone) {
		if (c->prev)
			c->prev->next = c->next;
		else
			w->calls = c->next;
		if (c->next)
			c->next->prev = c->prev;
		w->n_calls--;
		w->bodies -= c->body_len;
		c->gone = true;
		if (w->host == HOST_REPLACED && w->n_calls == 0)
			egress_host_idle(w);
	}
	if (c->busy)
		return;
	buf_done(&c->queue);
	free(c);
}

static void finish(struct egress_call *c)
{
	struct egress_ops ops = c->ops;
	struct egress_end end = c->end;
	struct err why = c->end_err;
	void *arg = c->arg;

	if (end.err)
		end.err = &why;
	egress_call_free(c);
	ops.on_end(&end, arg);
}

/* Gives the worker room again for what was taken. */
static void pay(struct egress_call *c, size_t len)
{
	struct worker *w = c->worker;

	c->taken += len;
	if (c->taken < CREDIT_BYTES || c->ended || !w->link)
		return;
	egress_credit_add(egress_link_out(w->link), c->id, (uint32_t)c->taken);
	c->unpaid -= c->taken;
	c->taken = 0;
	egress_link_flush(w->link);
}

/* False: the call is gone. */
static bool deliver(struct egress_call *c, const void *data, size_t len)
{
	c->busy = true;
	c->paused = !c->ops.on_body(data, len, c->arg);
	c->busy = false;
	if (c->gone) {
		egress_call_free(c);
		return false;
	}
	pay(c, len);
	return true;
}

void egress_resume(struct egress_call *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	while (c->queue.len > 0 && !c->paused) {
		cleanup_buf struct buf piece = c->queue;

		buf_init(&c->queue, EGRESS_WINDOW_BYTES);
		/* what pauses again does so behind the whole of it */
		if (!deliver(c, piece.data, piece.len))
			return;
	}
	if (c->ended && !c->paused && !c->busy)
		finish(c);
}

void egress_room(struct egress_call *c, uint64_t bytes, bool is_last)
{
	struct worker *w = c->worker;

	if (!w->link || c->ended)
		return;
	egress_room_add(egress_link_out(w->link), c->id, bytes, is_last);
	egress_link_flush(w->link);
}

void egress_cancel(struct egress_call *c)
{
	struct worker *w;

	if (!c)
		return;
	w = c->worker;
	if (w->link && !c->ended) {
		egress_frame_add(egress_link_out(w->link), EGRESS_F_CANCEL, c->id, NULL,
				 0);
		egress_link_flush(w->link);
	}
	egress_call_free(c);
}

static struct worker *worker_for(const struct egress *e, const char *portal)
{
	if (!portal)
		return &e->worker[e->cfg.n_portals];
	for (size_t i = 0; i < e->cfg.n_portals; i++)
		if (str_eq(e->cfg.portals[i].name, portal))
			return &e->worker[i];
	return egress_host_find(e, portal);
}

static struct egress_call *find(const struct worker *w, uint32_t id)
{
	struct egress_call *c = w->calls;

	while (c && c->id != id)
		c = c->next;
	return c;
}

static uint32_t new_id(struct worker *w)
{
	uint32_t id;

	do {
		id = w->next_id++;
	} while (id == 0 || find(w, id));
	return id;
}

int egress_start(struct egress *e, const struct egress_request *rq,
		 const struct egress_ops *ops, void *arg, struct egress_call **ret,
		 struct err *err)
{
	struct worker *w = worker_for(e, rq->portal);
	struct egress_call *c;
	uint32_t id;

	if (!w || !w->up)
		return err_set_id(err, ERRID_EGRESS_AWAY, "%s",
				  w ? w->name : "no such portal");
	if (w->n_calls >= EGRESS_CALLS_MAX ||
	    rq->body_len > EGRESS_BODIES_MAX - w->bodies)
		return err_set_id(err, ERRID_EGRESS_BUSY, "%s", w->name);
	if ((rq->target[0] == '/') != (rq->portal != NULL))
		return err_set_id(err, ERRID_EGRESS_REQUEST, "%s",
				  rq->portal ? "a portal takes a path"
					     : "it has no host");
	id = new_id(w);
	if (rq->job)
		egress_whose_add(egress_link_out(w->link), id, rq->job, rq->epoch);
	if (egress_request_add(egress_link_out(w->link), id, rq, err) < 0)
		return -1;
	egress_frame_add_data(egress_link_out(w->link), id, rq->body, rq->body_len);
	c = xnew(struct egress_call);
	c->worker = w;
	c->job = rq->job;
	c->epoch = rq->epoch;
	c->id = id;
	c->ops = *ops;
	c->arg = arg;
	c->body_len = rq->body_len;
	buf_init(&c->queue, EGRESS_WINDOW_BYTES);
	c->next = w->calls;
	if (c->next)
		c->next->prev = c;
	w->calls = c;
	w->n_calls++;
	w->bodies += c->body_len;
	egress_last_read_asked(w, c->job, c->epoch);
	egress_link_flush(w->link);
	*ret = c;
	return 0;
}

/* ---- frames about a call ---- */

static int on_head(struct egress_call *c, const struct egress_frame *f, struct err *err)
{
	struct egress_wire_head head;

	if (c->head_seen)
		return egress_broken(err, "two heads of one reply");
	if (egress_head_parse(f->data, f->len, &head, err) < 0)
		return -1;
	c->head_seen = true;
	c->busy = true;
	c->ops.on_head(&head.head, c->arg);
	c->busy = false;
	free(head.memory);
	if (c->gone)
		egress_call_free(c);
	return 0;
}

static int on_data(struct egress_call *c, const struct egress_frame *f, struct err *err)
{
	if (!c->head_seen || f->len == 0)
		return egress_broken(err, "a body without a head");
	if (f->len > EGRESS_WINDOW_BYTES - c->unpaid)
		return egress_broken(err, "more than there is room for");
	c->unpaid += f->len;
	c->received += f->len;
	if (c->paused)
		buf_add(&c->queue, f->data, f->len);
	else
		(void)deliver(c, f->data, f->len);
	return 0;
}

static int on_more(struct egress_call *c, const struct egress_frame *f, struct err *err)
{
	if (f->len != 0 || !c->ops.on_more)
		return egress_broken(err, "room for a reply that has all of it");
	c->busy = true;
	c->ops.on_more(c->arg);
	c->busy = false;
	if (c->gone)
		egress_call_free(c);
	return 0;
}

static int on_end(struct egress_call *c, const struct egress_frame *f, struct err *err)
{
	if (egress_end_parse(f->data, f->len, &c->end, &c->end_err, err) < 0)
		return -1;
	if (!c->end.err && !c->head_seen)
		return egress_broken(err, "a reply without a head");
	c->ended = true;
	if (!c->paused)
		finish(c);
	return 0;
}

static int on_redacted(struct worker *w, const struct egress_frame *f, struct err *err)
{
	struct egress *e = w->egress;
	size_t i = (size_t)(w - e->worker);
	unsigned count;
	bool in_header;

	if (egress_redacted_parse(f->data, f->len, &in_header, &count, err) < 0)
		return -1;
	if (i >= e->cfg.n_portals && !egress_is_host(w))
		return egress_broken(err, "a credential where there is none");
	if (e->events.on_redacted)
		e->events.on_redacted(egress_is_host(w) ? egress_host_name(w)
							: e->cfg.portals[i].name,
				      in_header, count, e->events.arg);
	return 0;
}

int egress_calls_frame(struct worker *w, const struct egress_frame *f, struct err *err)
{
	struct egress_call *c = find(w, f->call);

	if (!c) {
		/* of one that was cancelled, or never was */
		bool was = f->type >= EGRESS_F_DATA && f->call < w->next_id;

		return was ? 0 : egress_broken(err, "a call that never was");
	}
	if (f->type == EGRESS_F_REDACTED)
		return on_redacted(w, f, err);
	if (c->ended)
		return egress_broken(err, "more after the end");
	if (f->type == EGRESS_F_HEAD)
		return on_head(c, f, err);
	if (f->type == EGRESS_F_DATA)
		return on_data(c, f, err);
	if (f->type == EGRESS_F_MORE)
		return on_more(c, f, err);
	if (f->type == EGRESS_F_END)
		return on_end(c, f, err);
	return egress_broken(err, "a frame that is the vessel's to send");
}

/* ---- the worker's end ---- */

void egress_calls_lost(struct worker *w)
{
	for (struct egress_call *c = w->calls, *next; c; c = next) {
		next = c->next;
		if (c->ended)
			continue;
		c->end = (struct egress_end){.err = &c->end_err,
					     .bytes_up = c->body_len,
					     .bytes_down = c->received,
					     .attempts = 1,
					     .sent = true};
		(void)err_set_id(&c->end_err, ERRID_EGRESS_LOST, "%s", w->name);
		c->ended = true;
	}
	/* A callback may begin, cancel or resume others: look from the start each time. */
	for (;;) {
		struct egress_call *c = w->calls;

		while (c && (!c->ended || c->paused || c->busy))
			c = c->next;
		if (!c)
			break;
		finish(c);
	}
}
