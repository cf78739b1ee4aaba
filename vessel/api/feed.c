/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See feed.h. A feed lives while somebody needs it: a client that follows, a tomb that waits, or
 * its timer, which first ends the stdin that nobody feeds, and later takes the feed away.
 */
#include "vessel/api/feed.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>

struct feed_follower {
	struct feed *feed; /* NULL: it was moved away */
	struct feed_follower *next;
	void (*changed)(void *arg);
	void *arg;
};

struct feed {
	struct feeds *all;
	struct feed *next;
	job_id_t job;
	char name[STREAM_NAME_SIZE]; /* "" until a client followed */
	struct feed_follower *followers;
	bool known;		   /* base is the tomb's word */
	uint64_t base;		   /* of the first byte in data */
	struct buf data;	   /* at most a window */
	bool ended;		   /* what is in data is all that comes */
	bool closed, over;	   /* the job reads no more; has ended */
	bool at_terminal;	   /* the job has one: as the client's spec says */
	bool stays;		   /* it stays without a client: as the tomb says */
	bool was_asked;		   /* by the tomb, since the timer ran last */
	struct feed_window window; /* the client's */
	struct feed_window told;   /* of the question that waits */
	struct httpd_req *waiting;
	struct loop_timer *hold, *gone;
};

struct feeds {
	struct loop *loop;
	struct feed *head;
};

struct feeds *feeds_new(struct loop *l)
{
	struct feeds *f = xnew(struct feeds);

	f->loop = l;
	return f;
}

static struct feed *find(const struct feeds *f, job_id_t job)
{
	struct feed *x = f->head;

	while (x && x->job != job)
		x = x->next;
	return x;
}

static void feed_free(struct feed *x)
{
	for (struct feed **p = &x->all->head; *p; p = &(*p)->next) {
		if (*p == x) {
			*p = x->next;
			break;
		}
	}
	loop_timer_free(x->hold);
	loop_timer_free(x->gone);
	buf_done(&x->data);
	free(x);
}

static void answer(struct feed *x, int status, const void *data, size_t len)
{
	loop_timer_disarm(x->hold);
	httpd_reply(TAKE_PTR(x->waiting), status, "application/octet-stream", data, len);
}

static bool has_new_size(const struct feed *x)
{
	return x->window.cols && x->told.cols &&
	       (x->window.cols != x->told.cols || x->window.rows != x->told.rows);
}

static void answer_size(struct feed *x)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "{\"cols\":%u,\"rows\":%u}", x->window.cols,
			 x->window.rows);

	loop_timer_disarm(x->hold);
	httpd_reply(TAKE_PTR(x->waiting), 202, "application/json", text, (size_t)n);
}

/* Who waits gets what there is. */
static void serve(struct feed *x)
{
	size_t n =
		x->data.len < STREAM_PART_MAX_BYTES ? x->data.len : STREAM_PART_MAX_BYTES;

	if (!x->waiting)
		return;
	if (x->closed)
		answer(x, 200, "", 0);
	else if (has_new_size(x))
		answer_size(x);
	else if (n > 0 || x->ended)
		answer(x, x->ended && n == x->data.len ? 200 : 206, buf_str(&x->data), n);
}

static void tell(struct feed *x)
{
	struct feed_follower *next;

	for (struct feed_follower *i = x->followers; i; i = next) {
		next = i->next;
		i->changed(i->arg);
	}
}

/* Nobody feeds it, or nobody asked about it since it had ended. */
static void on_gone(void *arg)
{
	struct feed *x = arg;

	if (x->stays && x->was_asked) {
		x->was_asked = false;
		loop_timer_arm(x->gone, FEED_BACK_USEC);
		return;
	}
	if (x->ended || x->stays) {
		if (!x->waiting && !x->followers)
			feed_free(x);
		return;
	}
	x->ended = true;
	serve(x);
	loop_timer_arm(x->gone, FEED_BACK_USEC);
}

static void on_hold(void *arg)
{
	answer(arg, 206, "", 0);
}

static struct feed *feed_of(struct feeds *f, job_id_t job)
{
	struct feed *x = find(f, job);

	if (x)
		return x;
	x = xnew(struct feed);
	x->all = f;
	x->job = job;
	buf_init(&x->data, STREAM_WINDOW_BYTES);
	x->hold = loop_timer_new(f->loop, on_hold, x);
	x->gone = loop_timer_new(f->loop, on_gone, x);
	x->next = f->head;
	f->head = x;
	return x;
}

void feeds_free(struct feeds *f)
{
	struct err err = ERR_INIT;

	if (!f)
		return;
	(void)err_set_id(&err, ERRID_HTTP_AWAY, "the vessel stops");
	while (f->head) {
		struct feed *x = f->head;

		if (x->waiting)
			httpd_reply_err(TAKE_PTR(x->waiting), &err);
		while (x->followers) {
			struct feed_follower *i = x->followers;

			x->followers = i->next;
			free(i);
		}
		feed_free(x);
	}
	free(f);
}

/* ---- the client ------------------------------------------------------------- */

int feed_may_follow(const struct feeds *f, job_id_t job, const char *name, bool takes,
		    struct err *err)
{
	const struct feed *x = find(f, job);

	if (takes || !x || !x->followers || str_eq(x->name, name))
		return 0;
	return err_set_id(err, ERRID_TTY_TAKEN, "job %lld", (long long)job);
}

/* They hear of it; what was typed there and is here goes on. */
static void move_away(struct feed *x)
{
	struct feed_follower *i = x->followers, *next;

	x->followers = NULL;
	for (; i; i = next) {
		next = i->next;
		i->feed = NULL;
		i->changed(i->arg);
	}
}

struct feed_follower *feed_follow(struct feeds *f, job_id_t job, const char *name,
				  bool at_terminal, void (*changed)(void *arg), void *arg)
{
	struct feed_follower *i = xnew(struct feed_follower);
	struct feed *x = feed_of(f, job);
	int r;

	if (!str_eq(x->name, name))
		move_away(x);
	r = str_copy(x->name, sizeof(x->name), name);
	assert(r == 0);
	x->at_terminal = at_terminal;
	i->feed = x;
	i->changed = changed;
	i->arg = arg;
	i->next = x->followers;
	x->followers = i;
	if (!x->ended)
		loop_timer_disarm(x->gone);
	return i;
}

void feed_unfollow(struct feed_follower *i)
{
	struct feed *x;

	if (!i)
		return;
	x = i->feed;
	if (!x) {
		free(i);
		return;
	}
	for (struct feed_follower **p = &x->followers; *p; p = &(*p)->next) {
		if (*p == i) {
			*p = i->next;
			break;
		}
	}
	free(i);
	if (x->followers)
		return;
	if (!x->waiting && (x->over || !x->known))
		feed_free(x);
	else if (!x->ended && !x->stays)
		loop_timer_arm(x->gone, FEED_GONE_USEC);
	else
		loop_timer_arm(x->gone, FEED_BACK_USEC);
}

void feed_over(struct feed_follower *i)
{
	if (i->feed)
		i->feed->over = true;
}

static struct feed_place place(const struct feed *x)
{
	bool open = !x->ended && !x->closed && !x->over;

	return (struct feed_place){
		.taken = x->base,
		.received = x->base + x->data.len,
		.room = open && x->known ? STREAM_WINDOW_BYTES - x->data.len : 0,
		.known = x->known,
		.open = open,
		.ended = x->ended,
	};
}

struct feed_place feed_place_of(const struct feed_follower *i)
{
	return i->feed ? place(i->feed)
		       : (struct feed_place){.known = true, .moved = true};
}

static int is_its_client(const struct feed *x, const char *name, struct err *err)
{
	if (!x || !x->followers)
		return err_set_id(err, ERRID_RUN_STREAM,
				  "nobody follows the job with it");
	if (!str_eq(x->name, name))
		return err_set_id(err, ERRID_RUN_STREAM, "another client feeds this job");
	if (x->over || x->closed)
		return err_set_id(err, ERRID_RUN_STATE, "the job reads no more");
	return 0;
}

static int may_put(const struct feed *x, const char *name, struct err *err)
{
	if (is_its_client(x, name, err) < 0)
		return -1;
	if (!x->known)
		return err_set_id(err, ERRID_RUN_STATE, "the job does not read yet");
	return 0;
}

int feed_put(struct feeds *f, job_id_t job, const char *name, uint64_t offset,
	     const void *data, size_t len, bool end, struct feed_place *ret,
	     bool *ret_is_fed, struct err *err)
{
	struct feed *x = find(f, job);
	uint64_t received;
	size_t skip, room;

	*ret_is_fed = x && x->followers;
	if (may_put(x, name, err) < 0)
		return -1;
	*ret = place(x);
	received = ret->received;
	if (offset > received)
		return err_set_id(err, ERRID_RUN_GAP, "stdin: %llu of %llu",
				  (unsigned long long)received,
				  (unsigned long long)offset);
	skip = received - offset < len ? (size_t)(received - offset) : len;
	/* a repeated part, and the end with it, changes nothing */
	if (x->ended && (skip < len || offset + len < received))
		return err_set_id(err, ERRID_RUN_STREAM,
				  "it has ended: its client was away, or said so");
	room = STREAM_WINDOW_BYTES - x->data.len;
	if (room > len - skip)
		room = len - skip;
	buf_add(&x->data, (const char *)data + skip, room);
	if (end && skip + room == len)
		x->ended = true;
	serve(x);
	*ret = place(x);
	return 0;
}

int feed_resize(struct feeds *f, job_id_t job, const char *name,
		const struct feed_window *window, bool *ret_is_fed, struct err *err)
{
	struct feed *x = find(f, job);

	*ret_is_fed = x && x->followers;
	if (is_its_client(x, name, err) < 0)
		return -1;
	if (!x->at_terminal)
		return err_set_id(err, ERRID_TTY_NO_WINDOW, "job %lld", (long long)job);
	x->window = *window;
	serve(x);
	return 0;
}

/* ---- the tomb --------------------------------------------------------------- */

static void refuse_gap(const struct feed *x, struct httpd_req *req)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_RUN_GAP, "stdin");
	httpd_reply_err_expected(req, &err, x->base);
}

static void on_tomb_gone(void *arg)
{
	struct feed *x = arg;
	struct err err = ERR_INIT;

	/* Nobody reads it: the reply only gives the request back. */
	(void)err_set_id(&err, ERRID_HTTP_AWAY, "gone");
	loop_timer_disarm(x->hold);
	httpd_reply_err(TAKE_PTR(x->waiting), &err);
	if (!x->followers && x->over)
		feed_free(x);
}

void feed_take(struct feeds *f, struct httpd_req *req, job_id_t job,
	       const struct feed_question *q)
{
	struct feed *x = feed_of(f, job);
	const uint64_t offset = q->offset;
	bool news = !x->known || q->closed;

	x->was_asked = true;
	x->stays = q->stays;
	if (!x->known) {
		x->base = offset;
		x->known = true;
		if (!x->followers)
			loop_timer_arm(x->gone, FEED_BACK_USEC);
	}
	if (offset < x->base || offset - x->base > x->data.len) {
		refuse_gap(x, req);
		return;
	}
	news |= offset > x->base;
	buf_consume(&x->data, (size_t)(offset - x->base));
	x->base = offset;
	x->closed |= q->closed;
	if (x->waiting) /* its connection is gone, and we did not see that yet */
		answer(x, 206, "", 0);
	x->waiting = req;
	x->told = q->window;
	httpd_req_on_gone(req, on_tomb_gone, x);
	loop_timer_arm(x->hold, FEED_HOLD_USEC);
	serve(x);
	if (news)
		tell(x);
}
