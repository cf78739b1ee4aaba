/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. Questions wait in a queue; one is at the worker. Which is next is
 * found when the worker is free (lane_turn.c). What a job's question needs of the job
 * (gate_job_fill) is taken when it is sent to the worker, and what it leaves behind
 * (gate_job_sent) is remembered when it is answered (lane_answer.c): two questions of one
 * job that come at once see each other.
 *
 * Whatever is not a clear answer in time is a refusal; the worker's socket is then closed,
 * since nobody knows what it still will say, and its parent starts another one.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "vessel/broker/gate/lane_priv.h"
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#define TIMEOUT_DEFAULT_USEC (10 * USEC_PER_SEC)
/* A large question takes longer on a crowded machine: a second more for each 64 KiB, and no more than that. */
#define TIMEOUT_PIECE_BYTES ((size_t)64 << 10)
#define TIMEOUT_PIECES_MAX 50
#define READ_BYTES 65536

/* ---- the socket ----------------------------------------------------------------------- */

static void drop(struct gate_lane *c)
{
	loop_io_free(c->io);
	c->io = NULL;
	fd_close(&c->fd);
	loop_timer_disarm(c->timer);
	if (c->out.data)
		explicit_bzero(c->out.data, c->out.len);
	buf_done(&c->out);
	buf_done(&c->in);
	c->out_at = 0;
}

/* An end of file is its death, or a clean end, which leaves no note; when another one comes
 * it is dead. One that is taken over names nobody but who asked. */
static void look_at_note(struct gate_lane *c)
{
	/* as egress_worker_name() has them */
	static const char *const names[] = {"gate", "gate:large"};
	struct reading_note note;
	bool is_noted = reading_get(c->note, &note);

	reading_clear(c->note);
	if (is_noted && c->cfg.on_died &&
	    reading_is_of(&note, c->asked.job, c->asked.epoch))
		c->cfg.on_died(names[c->which], &note, c->cfg.arg);
}

static void away(struct gate_lane *c, const char *why)
{
	struct err err = ERR_INIT;

	drop(c);
	(void)err_set_id(&err, ERRID_GATE_AWAY, "%s", why);
	if (c->cfg.on_away)
		c->cfg.on_away(&err, c->cfg.arg);
	gate_lane_fail_all(c, ERRID_GATE_AWAY, why);
}

static void flush(struct gate_lane *c)
{
	while (c->out_at < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_io_set(c->io, LOOP_READ | LOOP_WRITE);
			return;
		}
		if (n < 0) {
			away(c, "the worker has gone");
			return;
		}
		c->out_at += (size_t)n;
	}
	if (c->out.data)
		explicit_bzero(c->out.data, c->out.len);
	buf_done(&c->out);
	c->out_at = 0;
	loop_io_set(c->io, LOOP_READ);
}

static usec_t patience(const struct gate_lane *c, size_t bytes)
{
	size_t pieces = bytes / TIMEOUT_PIECE_BYTES;

	if (pieces > TIMEOUT_PIECES_MAX)
		pieces = TIMEOUT_PIECES_MAX;
	return c->cfg.timeout_usec + pieces * USEC_PER_SEC;
}

static void put_whose(struct gate_lane *c, const struct gate_ask *a)
{
	struct gate_turn none;
	const struct gate_turn *t = gate_ask_turn(a, &none);

	c->asked = (struct reading_note){.job = t->job, .epoch = t->epoch};
	if (t->job)
		gate_wire_put_whose(&c->out, t->job, t->epoch);
}

/* The next question, if none is at the worker. */
static void work(struct gate_lane *c)
{
	struct gate_input in = {0};
	struct gate_ask *a;

	if (c->fd < 0 || c->at_work || !gate_lane_bring_forward(c))
		return;
	a = c->first;
	gate_ask_is_read(a);
	if (a->job)
		gate_job_fill(a->job, a->destination, &in);
	in.parts = a->parts->part;
	in.n_parts = a->parts->n;
	put_whose(c, a);
	gate_wire_put_scan(&c->out, ++c->id, &in);
	c->at_work = true;
	c->began = clock_boot_usec();
	c->figures.bytes += a->parts->bytes;
	loop_timer_arm(c->timer, patience(c, a->parts->bytes));
	flush(c);
}

/* One frame of c->in; false: there is none, or the worker is away. */
static bool take_frame(struct gate_lane *c)
{
	struct gate_frame f;
	const struct gate_parts *parts = c->first ? c->first->parts : NULL;
	int r = gate_wire_header(c->in.data, c->in.len, &f);

	if (r == 0)
		return false;
	if (r < 0 || f.type != GATE_F_REPORT || !c->at_work || f.id != c->id || !parts) {
		away(c, "the worker broke its protocol");
		return false;
	}
	if (c->in.len - GATE_FRAME_HEADER < f.len)
		return false;
	if (!gate_wire_get_report(c->in.data + GATE_FRAME_HEADER, f.len, parts->part,
				  parts->n, c->report)) {
		away(c, "the worker's answer is not one");
		return false;
	}
	buf_consume(&c->in, GATE_FRAME_HEADER + f.len);
	c->at_work = false;
	loop_timer_disarm(c->timer);
	gate_lane_take_report(c, c->report);
	work(c);
	return c->fd >= 0;
}

static void on_io(int fd, unsigned what, void *arg)
{
	struct gate_lane *c = arg;
	char bytes[READ_BYTES];
	ssize_t n;

	if (what & LOOP_WRITE)
		flush(c);
	if (!(what & LOOP_READ) || c->fd != fd)
		return;
	n = recv(fd, bytes, sizeof(bytes), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		look_at_note(c);
		away(c, "the worker has gone");
		return;
	}
	buf_add(&c->in, bytes, (size_t)n);
	if (!buf_ok(&c->in)) {
		away(c, "the worker's answer is too long");
		return;
	}
	while (c->fd >= 0 && take_frame(c))
		;
}

static void on_timeout(void *arg)
{
	away(arg, "the worker took too long");
}

static void on_soon(void *arg)
{
	work(arg);
}

void gate_ask_is_read(struct gate_ask *a)
{
	a->is_read = true;
	if (a->job)
		gate_job_turn(a->job)->is_read = true;
}

void gate_ask_has_read(struct gate_ask *a)
{
	if (!a->is_read || !a->job)
		return;
	a->is_read = false;
	gate_job_turn(a->job)->is_read = false;
	loop_timer_arm(a->c->other->soon, 0);
}

static void send_private(struct gate_lane *c)
{
	if (c->private.len == 0)
		return;
	gate_wire_put_header(&c->out, GATE_F_PRIVATE, 0, c->private.len);
	buf_add(&c->out, c->private.data, c->private.len);
}

void gate_lane_attach(struct gate_lane *c, int fd, struct reading *note)
{
	look_at_note(c);
	if (c->fd >= 0)
		away(c, "another worker has come");
	c->note = note;
	c->figures.restarts += c->was_up;
	c->was_up = true;
	c->fd = fd;
	c->io = loop_io_new(c->cfg.loop, fd, LOOP_READ, on_io, c);
	gate_wire_put_config(&c->out, &c->gate);
	send_private(c);
	flush(c);
	work(c);
}

bool gate_lane_is_up(const struct gate_lane *c)
{
	return c->fd >= 0;
}

void gate_lane_set_private(struct gate_lane *c, const struct gate_private *p)
{
	buf_done(&c->private);
	gate_private_write(p, &c->private);
	if (c->fd < 0)
		return;
	send_private(c);
	flush(c);
}

/* ---- asking ---------------------------------------------------------------------------- */

struct gate_lane *gate_lane_new(const struct gate_client_config *cfg,
				enum gate_lanes which)
{
	struct gate_lane *c = xnew(struct gate_lane);

	c->cfg = *cfg;
	c->which = which;
	if (!c->cfg.timeout_usec)
		c->cfg.timeout_usec = TIMEOUT_DEFAULT_USEC;
	c->gate.portal_threshold = cfg->portal_threshold;
	c->gate.forbidden_threshold = cfg->forbidden_threshold;
	memcpy(c->gate.refuses, cfg->refuses, sizeof(c->gate.refuses));
	random_bytes(c->gate.mac_key, sizeof(c->gate.mac_key));
	c->fd = -1;
	c->report = xnew(struct gate_report);
	c->timer = loop_timer_new(cfg->loop, on_timeout, c);
	c->soon = loop_timer_new(cfg->loop, on_soon, c);
	buf_init(&c->out, 3 * GATE_FRAME_MAX);
	buf_init(&c->in, GATE_FRAME_MAX);
	buf_init(&c->private, GATE_FRAME_MAX);
	return c;
}

void gate_lane_pair(struct gate_lane *a, struct gate_lane *b)
{
	a->other = b;
	b->other = a;
}

void gate_lane_free(struct gate_lane *c)
{
	if (!c)
		return;
	drop(c);
	while (c->first) {
		struct gate_ask *a = c->first;

		gate_lane_take_out(a);
		gate_ask_free(a);
	}
	loop_timer_free(c->timer);
	loop_timer_free(c->soon);
	buf_done(&c->private);
	explicit_bzero(&c->gate, sizeof(c->gate));
	free(c->report);
	free(c);
}

static int check_room(const struct gate_lane *c, struct gate_job *job,
		      const struct gate_parts *parts, struct err *err)
{
	const struct gate_turn *t = job ? gate_job_turn(job) : NULL;

	if (c->fd < 0)
		return err_set_id(err, ERRID_GATE_AWAY, "no worker");
	if (parts->overflow)
		return err_set_id(err, ERRID_GATE_UNREADABLE, "too large");
	if (c->n >= GATE_ASKS_MAX)
		return err_set_id(err, ERRID_GATE_BUSY, "%d wait", GATE_ASKS_MAX);
	if (t && gate_turn_waiting(t) >= GATE_ASKS_JOB_MAX)
		return err_set_id(err, ERRID_GATE_BUSY, "%u of this job wait",
				  gate_turn_waiting(t));
	if (t && t->bytes > 0 && t->bytes + parts->bytes > GATE_ASKS_JOB_MAX_BYTES)
		return err_set_id(err, ERRID_GATE_BUSY, "%zu bytes of this job wait",
				  t->bytes);
	return 0;
}

int gate_lane_ask(struct gate_lane *c, struct gate_job *job, const char *destination,
		  struct gate_parts *parts, gate_ask_done *done, void *arg,
		  struct gate_ask **ret, struct err *err)
{
	struct gate_ask *a;

	if (check_room(c, job, parts, err) < 0) {
		c->figures.failed++;
		gate_parts_free(parts);
		return -1;
	}
	a = xnew(struct gate_ask);
	a->job = job;
	a->destination = xstrdup(destination);
	a->parts = parts;
	a->done = done;
	a->arg = arg;
	gate_lane_append(c, a);
	*ret = a;
	/* never from within this function */
	loop_timer_arm(c->soon, 0);
	return 0;
}

void gate_lane_cancel(struct gate_ask *a)
{
	struct gate_lane *c = a->c;

	if (a == c->first && c->at_work) {
		/* it leaves nothing behind that another one of the job must see */
		gate_ask_has_read(a);
		gate_ask_forget_job(a);
		a->is_cancelled = true;
		return;
	}
	gate_lane_take_out(a);
	gate_ask_free(a);
}

struct gate_client_figures gate_lane_figures(const struct gate_lane *c)
{
	return c->figures;
}
