/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See hints.h.
 */
#include "vessel/api/hints.h"

#include "common/cleanup.h"
#include "common/id.h"
#include "common/jsonw.h"
#include "common/mem.h"

#include <stdlib.h>

#define REPLY_MAX_BYTES 128
/* Of one tomb at once; an older question is answered to make room. */
#define WAITERS_MAX 4

struct waiter {
	struct waiter *next;
	struct hints *hints;
	struct httpd_req *req;
	const struct door_tomb *tomb;
	struct loop_timer *timer;
};

struct hints {
	struct loop *loop;
	struct waiter *head;
	uint64_t seq;
};

struct hints *hints_new(struct loop *l)
{
	struct hints *h = xnew(struct hints);
	uint32_t start;

	h->loop = l;
	/* A number of an earlier vessel is unlikely to be ours: it is answered at once.
	 */
	random_bytes(&start, sizeof(start));
	h->seq = (uint64_t)start + 1;
	return h;
}

/* Out of the list and freed; the request is the caller's again. */
static struct httpd_req *take(struct waiter *w)
{
	struct httpd_req *req = w->req;

	for (struct waiter **p = &w->hints->head; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			break;
		}
	}
	loop_timer_free(w->timer);
	free(w);
	return req;
}

void hints_free(struct hints *h)
{
	if (!h)
		return;
	while (h->head) {
		struct err err = ERR_INIT;

		(void)err_set_id(&err, ERRID_HTTP_AWAY, "the vessel stops");
		httpd_reply_err(take(h->head), &err);
	}
	free(h);
}

static void answer(const struct hints *h, const struct door_tomb *t,
		   struct httpd_req *req)
{
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	struct jsonw w;

	if (!door_tomb_is_up(t)) {
		(void)err_set_id(&err, ERRID_RUN_DB, "the connection of %s",
				 door_tomb_name(t));
		httpd_reply_err(req, &err);
		return;
	}
	buf_init(&out, REPLY_MAX_BYTES);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "seq", h->seq);
	jsonw_obj_end(&w);
	httpd_reply_json(req, 200, &out);
}

static void on_time(void *arg)
{
	struct waiter *w = arg;
	const struct hints *h = w->hints;
	const struct door_tomb *t = w->tomb;

	answer(h, t, take(w));
}

static void on_gone(void *arg)
{
	struct waiter *w = arg;
	struct err err = ERR_INIT;

	/* Nobody reads it: the reply only gives the request back. */
	(void)err_set_id(&err, ERRID_HTTP_AWAY, "gone");
	httpd_reply_err(take(w), &err);
}

static void make_room(struct hints *h, const struct door_tomb *t)
{
	struct waiter *oldest = NULL;
	unsigned n = 0;

	/* Newest first, so the last one found is the oldest. */
	for (struct waiter *w = h->head; w; w = w->next) {
		if (w->tomb != t)
			continue;
		n++;
		oldest = w;
	}
	if (n >= WAITERS_MAX)
		answer(h, t, take(oldest));
}

void hints_wait(struct hints *h, struct httpd_req *req, const struct door_tomb *t,
		uint64_t after)
{
	struct waiter *w;

	if (after != h->seq || !door_tomb_is_up(t)) {
		answer(h, t, req);
		return;
	}
	make_room(h, t);
	w = xnew(struct waiter);
	w->hints = h;
	w->req = req;
	w->tomb = t;
	w->next = h->head;
	h->head = w;
	w->timer = loop_timer_new(h->loop, on_time, w);
	loop_timer_arm(w->timer, DOOR_HINT_SEC * USEC_PER_SEC);
	httpd_req_on_gone(req, on_gone, w);
}

/* Who is answered may ask again at once: only those who wait now. NULL: all. */
static void tell(struct hints *h, const struct door_tomb *t)
{
	struct waiter *list = h->head;

	h->head = NULL;
	while (list) {
		struct waiter *w = list;

		list = w->next;
		w->next = NULL;
		if (t && w->tomb != t) {
			w->next = h->head;
			h->head = w;
			continue;
		}
		const struct door_tomb *tomb = w->tomb;

		answer(h, tomb, take(w));
	}
}

void hints_tell(struct hints *h)
{
	h->seq++;
	tell(h, NULL);
}

void hints_state(struct hints *h, const struct door_tomb *t)
{
	h->seq++;
	tell(h, t);
}
