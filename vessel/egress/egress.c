/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. For each worker there is a link, which the parent hands over when
 * it has forked one, and a list of calls. A worker is up once its first frame said that
 * its walls hold. Its end is the end of its link: every call that was open there ends as
 * lost and counts as spent, and nothing can be begun until the next link's first frame.
 *
 * Bytes of a reply are taken at once or lie in the call's own queue, which the window
 * bounds: the worker may send so many, and gets room again for what was taken.
 *
 * Callbacks may cancel the call that they are about: `busy` keeps it until they return.
 */
#include "vessel/egress/egress.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/worker/pulse.h"
#include "vessel/egress/link.h"
#include "vessel/egress/parent.h"
#include "vessel/egress/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ATTACH_USEC (60 * USEC_PER_SEC)
/* It makes namespaces, for which it may have to wait for the whole machine. */
#define PARENT_BEGIN_USEC ATTACH_USEC
#define BODIES_MAX ((size_t)128 << 20) /* of one worker's open calls together */
#define CREDIT_BYTES (EGRESS_WINDOW_BYTES / 4)

/* Jobs whose calls are remembered beyond their end: who hangs up while its reply is read is
 * found all the same. */
#define RECENT 64u

struct egress_call {
	struct worker *worker;
	job_id_t job; /* 0: of none */
	int64_t epoch;
	struct egress_call *prev, *next;
	struct egress_ops ops;
	void *arg;
	uint32_t id;
	struct buf queue; /* what came while paused */
	size_t unpaid;	  /* bytes that came and for which no room was given back */
	size_t taken;	  /* of these, taken */
	size_t body_len;
	uint64_t received;
	struct egress_end end;
	struct err end_err;
	bool head_seen, paused, ended, busy, gone;
};

struct worker {
	struct egress *egress;
	char name[EGRESS_NAME_SIZE + 8];
	struct egress_link *link;
	struct egress_call *calls;
	unsigned n_calls, starts;
	size_t bodies;
	uint32_t next_id;
	struct confine_report walls;
	struct egress_pulse *pulse;
	/* What it read when we gave it up, of a job that had a request with it: counts when it
	 * is found dead with that. */
	struct reading_note suspect;
	struct reading_note recent[RECENT]; /* the last jobs that asked something of it */
	unsigned next_recent;
	bool up;
};

struct egress {
	struct egress_config cfg;
	struct loop *loop;
	struct egress_events events;
	struct loop_io *io;
	struct loop_timer *late, *look;
	struct egress_pulse *pulse; /* the parent's */
	struct egress_heard heard;
	struct worker *worker;
	size_t n;
	struct confine_report parent_walls;
	struct err failed; /* why attaching failed */
	pid_t pid;
	int control;
	bool parent_up, attaching, parent_stuck;
};

/* ---- the parent ---- */

NORETURN static void become_parent(const struct egress *e, int control)
{
	struct egress_pulse *workers[EGRESS_PORTALS_MAX + 1 + EGRESS_GATES];

	if (control > 3)
		(void)close_range(3, (unsigned)control - 1, 0);
	(void)close_range((unsigned)control + 1, ~0U, 0);
	log_init("egress", LOG_INFO_);
	for (size_t i = 0; i < e->n; i++)
		workers[i] = e->worker[i].pulse;
	_exit(egress_parent_run(&e->cfg, control, e->pulse, workers));
}

static int start_parent(struct egress *e, struct err *err)
{
	int pair[2];

	if (egress_pulse_new(&e->pulse, err) < 0)
		return -1;
	for (size_t i = 0; i < e->n; i++)
		if (egress_pulse_new(&e->worker[i].pulse, err) < 0)
			return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "a socket to the egress workers");
	(void)fflush(NULL);
	e->pid = fork();
	if (e->pid == 0)
		become_parent(e, pair[1]);
	fd_close(&pair[1]);
	e->control = pair[0];
	return e->pid < 0 ? err_sys(err, "fork the parent of the egress workers") : 0;
}

int egress_fork(const struct egress_config *cfg, struct egress **ret, struct err *err)
{
	struct egress *e = xnew(struct egress);

	assert(cfg->n_portals <= EGRESS_PORTALS_MAX);
	e->cfg = *cfg;
	e->pid = e->control = -1;
	e->n = egress_workers_count(cfg);
	e->worker = xcalloc(e->n, sizeof(*e->worker));
	for (size_t i = 0; i < e->n; i++) {
		e->worker[i].egress = e;
		e->worker[i].next_id = 1;
		egress_worker_name(cfg, i, e->worker[i].name);
	}
	if (start_parent(e, err) < 0) {
		egress_free(e);
		return -1;
	}
	*ret = e;
	return 0;
}

/* ---- calls ---- */

static void call_free(struct egress_call *c)
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
	call_free(c);
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
		call_free(c);
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
	call_free(c);
}

static struct worker *worker_for(const struct egress *e, const char *portal)
{
	if (!portal)
		return &e->worker[e->cfg.n_portals];
	for (size_t i = 0; i < e->cfg.n_portals; i++)
		if (str_eq(e->cfg.portals[i].name, portal))
			return &e->worker[i];
	return NULL;
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

static bool is_recent(const struct worker *w, job_id_t job, int64_t epoch)
{
	for (unsigned i = 0; i < RECENT; i++)
		if (reading_is_of(&w->recent[i], job, epoch))
			return true;
	return false;
}

static void remember_job(struct worker *w, job_id_t job, int64_t epoch)
{
	if (is_recent(w, job, epoch))
		return;
	w->recent[w->next_recent++ % RECENT] =
		(struct reading_note){.job = job, .epoch = epoch};
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
	if (w->n_calls >= EGRESS_CALLS_MAX || rq->body_len > BODIES_MAX - w->bodies)
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
	remember_job(w, c->job, c->epoch);
	egress_link_flush(w->link);
	*ret = c;
	return 0;
}

/* ---- frames of a worker ---- */

static int broken(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_EGRESS_WORKER, "%s", what);
}

static int on_head(struct egress_call *c, const struct egress_frame *f, struct err *err)
{
	struct egress_wire_head head;

	if (c->head_seen)
		return broken(err, "two heads of one reply");
	if (egress_head_parse(f->data, f->len, &head, err) < 0)
		return -1;
	c->head_seen = true;
	c->busy = true;
	c->ops.on_head(&head.head, c->arg);
	c->busy = false;
	free(head.memory);
	if (c->gone)
		call_free(c);
	return 0;
}

static int on_data(struct egress_call *c, const struct egress_frame *f, struct err *err)
{
	if (!c->head_seen || f->len == 0)
		return broken(err, "a body without a head");
	if (f->len > EGRESS_WINDOW_BYTES - c->unpaid)
		return broken(err, "more than there is room for");
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
		return broken(err, "room for a reply that has all of it");
	c->busy = true;
	c->ops.on_more(c->arg);
	c->busy = false;
	if (c->gone)
		call_free(c);
	return 0;
}

static int on_end(struct egress_call *c, const struct egress_frame *f, struct err *err)
{
	if (egress_end_parse(f->data, f->len, &c->end, &c->end_err, err) < 0)
		return -1;
	if (!c->end.err && !c->head_seen)
		return broken(err, "a reply without a head");
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
	if (i >= e->cfg.n_portals)
		return broken(err, "a credential where there is none");
	if (e->events.on_redacted)
		e->events.on_redacted(e->cfg.portals[i].name, in_header, count,
				      e->events.arg);
	return 0;
}

static void note_state(struct worker *w, bool up, const struct err *why)
{
	struct egress *e = w->egress;

	w->up = up;
	if (e->events.on_worker)
		e->events.on_worker(w->name, up, why, e->events.arg);
}

static void attach_failed(struct egress *e, const struct err *why)
{
	if (!e->attaching || err_is_set(&e->failed))
		return;
	e->failed = *why;
	loop_stop(e->loop, 0);
}

static void attach_step(struct egress *e)
{
	bool all = e->parent_up;

	for (size_t i = 0; i < e->n; i++)
		all = all && e->worker[i].up;
	if (e->attaching && all)
		loop_stop(e->loop, 0);
}

static int hand_to_gate(struct worker *w, struct err *err)
{
	int fd = egress_link_release(TAKE_PTR(w->link));

	if (fd < 0)
		return broken(err, "the gate speaks before it is asked");
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		fd_close(&fd);
		return err_sys(err, "the gate worker's socket");
	}
	/* what its predecessor left there is the gate's to judge */
	w->egress->events.on_gate((unsigned)(w - w->egress->worker) -
					  (unsigned)w->egress->cfg.n_portals - 1,
				  fd, egress_pulse_reading(w->pulse),
				  w->egress->events.arg);
	return 0;
}

/* The first frame of a worker's life. */
static int on_begin(struct worker *w, const struct egress_frame *f, struct err *err)
{
	struct egress *e = w->egress;
	struct err why = ERR_INIT;

	if (f->type == EGRESS_F_FAILED) {
		if (egress_failed_parse(f->data, f->len, &why, err) < 0)
			return -1;
		attach_failed(e, &why);
		note_state(w, false, &why);
		return 0;
	}
	if (f->type != EGRESS_F_READY)
		return broken(err, "it does not say that its walls hold");
	if (egress_ready_parse(f->data, f->len, &w->walls, err) < 0)
		return -1;
	w->starts++;
	note_state(w, true, NULL);
	if (egress_worker_is_gate(&e->cfg, (size_t)(w - e->worker)) &&
	    hand_to_gate(w, err) < 0)
		return -1;
	attach_step(e);
	return 0;
}

static int on_frame(const struct egress_frame *f, void *arg, struct err *err)
{
	struct worker *w = arg;
	struct egress_call *c;

	if (!w->up)
		return on_begin(w, f, err);
	c = find(w, f->call);
	if (!c) {
		/* of one that was cancelled, or never was */
		bool was = f->type >= EGRESS_F_DATA && f->call < w->next_id;

		return was ? 0 : broken(err, "a call that never was");
	}
	if (f->type == EGRESS_F_REDACTED)
		return on_redacted(w, f, err);
	if (c->ended)
		return broken(err, "more after the end");
	if (f->type == EGRESS_F_HEAD)
		return on_head(c, f, err);
	if (f->type == EGRESS_F_DATA)
		return on_data(c, f, err);
	if (f->type == EGRESS_F_MORE)
		return on_more(c, f, err);
	if (f->type == EGRESS_F_END)
		return on_end(c, f, err);
	return broken(err, "a frame that is the vessel's to send");
}

/* ---- what it read when it died ---- */

/* A worker that is taken over writes what it likes there, but names nobody who asks nothing
 * of it, nor did lately. */
static bool reads_of_a_call(const struct worker *w, struct reading_note *ret)
{
	if (!reading_get(egress_pulse_reading(w->pulse), ret))
		return false;
	if (is_recent(w, ret->job, ret->epoch))
		return true;
	for (const struct egress_call *c = w->calls; c; c = c->next)
		if (reading_is_of(ret, c->job, c->epoch))
			return true;
	return false;
}

static void tell_died(struct worker *w, const struct reading_note *note)
{
	struct egress *e = w->egress;

	if (e->events.on_died)
		e->events.on_died(w->name, note, e->events.arg);
}

/* An end of file is its death, or a clean end, which leaves no note. One that we gave up may
 * still live. */
static void look_at_note(struct worker *w, bool is_dead)
{
	struct reading_note note;

	w->suspect = (struct reading_note){0};
	if (!reads_of_a_call(w, &note))
		return;
	if (!is_dead) {
		w->suspect = note;
		return;
	}
	reading_clear(egress_pulse_reading(w->pulse));
	tell_died(w, &note);
}

/* Another one has come, so it is dead. */
static void clear_note(struct worker *w)
{
	struct reading *r = egress_pulse_reading(w->pulse);
	struct reading_note note;

	if (w->suspect.job && reading_get(r, &note) &&
	    reading_is_of(&note, w->suspect.job, w->suspect.epoch))
		tell_died(w, &note);
	w->suspect = (struct reading_note){0};
	reading_clear(r);
}

/* Every open call of it is lost, and counts. */
static void on_closed(const struct err *why, void *arg)
{
	struct worker *w = arg;
	struct err early = ERR_INIT;

	egress_link_free(TAKE_PTR(w->link));
	look_at_note(w, !why);
	(void)err_set_id(&early, ERRID_EGRESS_AWAY, "%s ended before it was ready",
			 w->name);
	attach_failed(w->egress, why ? why : &early);
	note_state(w, false, why);
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

/* ---- packets of the parent ---- */

static void parent_lost(struct egress *e, const struct err *why)
{
	loop_io_set(e->io, 0);
	loop_timer_disarm(e->look);
	e->parent_up = false;
	if (e->attaching)
		attach_failed(e, why);
	else
		e->events.on_lost(why, e->events.arg);
}

static int on_parent_frame(struct egress *e, const char *data, size_t len,
			   struct err *err)
{
	struct egress_frame f;
	struct err why = ERR_INIT;
	size_t used;

	if (egress_frame_next(data, len, &f, &used, err) != 1 || used != len)
		return broken(err, "the parent says nothing that can be understood");
	if (f.type == EGRESS_F_FAILED &&
	    egress_failed_parse(f.data, f.len, &why, err) == 0) {
		*err = why;
		return -1;
	}
	if (f.type != EGRESS_F_READY)
		return broken(err, "the parent does not say that its walls hold");
	if (egress_ready_parse(f.data, f.len, &e->parent_walls, err) < 0)
		return -1;
	e->parent_up = true;
	/* Its walls stand: from here it owes a sign of life as anybody else. */
	egress_heard_begin(&e->heard, e->pulse, WATCH_SILENCE_USEC);
	attach_step(e);
	return 0;
}

static void new_link(struct worker *w, int fd)
{
	const struct egress_link_ops ops = {on_frame, on_closed, w};

	/* The parent starts the next only when the last is dead: its link's end is on its
	 * way at most. */
	if (w->link)
		on_closed(NULL, w);
	if (!egress_worker_is_gate(&w->egress->cfg, (size_t)(w - w->egress->worker)))
		clear_note(w);
	w->up = false;
	w->link = egress_link_new(w->egress->loop, fd,
				  BODIES_MAX + EGRESS_CALLS_MAX * EGRESS_FRAME_MAX, &ops);
}

static int on_packet(struct egress *e, const unsigned char *data, size_t len, int *fds,
		     unsigned n_fds, struct err *err)
{
	if (len > 1 && n_fds == 0 && data[0] == EGRESS_PARENT_ITSELF)
		return on_parent_frame(e, (const char *)data + 1, len - 1, err);
	if (len != 1 || n_fds != 1 || data[0] >= e->n)
		return broken(err, "the parent sends no worker");
	new_link(&e->worker[data[0]], TAKE_FD(fds[0]));
	return 0;
}

static void on_control(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	static unsigned char packet[EGRESS_PARENT_PACKET_MAX];
	int fds[FDPASS_MAX];
	struct egress *e = arg;
	struct err err = ERR_INIT;
	unsigned n_fds = 0;
	ssize_t n;
	int r;

	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fds[i] = -1;
	n = fdpass_recv(e->control, packet, sizeof(packet), fds, &n_fds, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		r = err_set_id(&err, ERRID_EGRESS_AWAY,
			       "the parent of the workers ended");
	else
		r = on_packet(e, packet, (size_t)n, fds, n_fds, &err);
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	if (r < 0)
		parent_lost(e, &err);
}

/* It lives outside of our Landlock scope: whoever supervises us ends it. */
static void on_look(void *arg)
{
	struct egress *e = arg;
	struct err err = ERR_INIT;

	if (!egress_heard_look(&e->heard, e->pulse)) {
		loop_timer_arm(e->look, WATCH_LOOK_USEC);
		return;
	}
	e->parent_stuck = true;
	(void)err_set_id(&err, ERRID_EGRESS_AWAY,
			 "the parent of the workers does not answer: it is stopped or "
			 "stuck");
	parent_lost(e, &err);
}

static void on_late(void *arg)
{
	struct egress *e = arg;
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_EGRESS_AWAY, "not all workers came up in time");
	attach_failed(e, &err);
}

int egress_attach(struct egress *e, struct loop *l, const struct egress_events *events,
		  struct err *err)
{
	assert(events->on_lost && (events->on_gate || !e->cfg.gate));
	e->loop = l;
	e->events = *events;
	e->io = loop_io_new(l, e->control, LOOP_READ, on_control, e);
	e->late = loop_timer_new(l, on_late, e);
	e->look = loop_timer_new(l, on_look, e);
	egress_heard_begin(&e->heard, e->pulse, PARENT_BEGIN_USEC);
	loop_timer_arm(e->look, WATCH_LOOK_USEC);
	loop_timer_arm(e->late, ATTACH_USEC);
	e->attaching = true;
	if (loop_run(l, err) < 0)
		return -1;
	e->attaching = false;
	loop_timer_disarm(e->late);
	if (err_is_set(&e->failed)) {
		*err = e->failed;
		return -1;
	}
	/* A signal stopped the loop: let it end as it would have later. */
	for (size_t i = 0; i < e->n; i++)
		if (!e->worker[i].up) {
			loop_stop(l, 0);
			break;
		}
	return 0;
}

void egress_free(struct egress *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++) {
		egress_link_free(e->worker[i].link);
		while (e->worker[i].calls)
			call_free(e->worker[i].calls);
		egress_pulse_free(e->worker[i].pulse);
	}
	loop_io_free(e->io);
	loop_timer_free(e->late);
	loop_timer_free(e->look);
	fd_close(&e->control);
	if (e->pid > 0)
		(void)waitpid(e->pid, NULL, e->parent_stuck ? WNOHANG : 0);
	egress_pulse_free(e->pulse);
	free(e->worker);
	free(e);
}

/* ---- for status ---- */

size_t egress_worker_count(const struct egress *e)
{
	return e->n + 1;
}

void egress_worker_info(const struct egress *e, size_t i, struct egress_worker_info *ret)
{
	if (i == 0) {
		*ret = (struct egress_worker_info){
			.name = "parent", .up = e->parent_up, .walls = &e->parent_walls};
		return;
	}
	*ret = (struct egress_worker_info){
		.name = e->worker[i - 1].name,
		.up = e->worker[i - 1].up,
		.restarts = e->worker[i - 1].starts ? e->worker[i - 1].starts - 1 : 0,
		.calls = e->worker[i - 1].n_calls,
		.walls = &e->worker[i - 1].walls,
	};
}
