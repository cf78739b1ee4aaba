/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Theory of operation. This process reads what untrusted code wrote, with two engines of
 * regular expressions and a decompressor; so it holds nothing but the rules, the hashes
 * of what the user registered, and the text at hand, and it can reach nothing but its
 * socket. One question at a time, answered before the next is read; nothing of a
 * question outlives its answer. A question that does not end ends the process (the
 * alarm), which the other side counts as 1.0.
 */
#include "vessel/gate/worker.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/worker/pulse.h"
#include "vessel/gate/private.h"
#include "vessel/gate/wire.h"
#include <errno.h>
#include <signal.h>
#include <sys/time.h>

/* Far beyond a scan's own deadline. */
#define ALARM_SEC 15
#define SMALL_BYTES ((size_t)1 << 20)

struct worker {
	int fd;
	struct egress_pulse *pulse;
	struct gate *g;
	struct gate_private *private;
	struct gate_report *report;
	job_id_t job; /* of the question that is next; 0: none */
	int64_t epoch;
	char *frame; /* reused, up to SMALL_BYTES */
	size_t cap;
};

/* All n bytes. 0 at end of file before the first one. */
static int read_all(int fd, void *out, size_t n, struct err *err)
{
	size_t at = 0;

	while (at < n) {
		ssize_t got = read(fd, (char *)out + at, n - at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(err, "read from the vessel");
		if (got == 0 && at == 0)
			return 0;
		if (got == 0)
			return err_set(err, ERR_UPSTREAM, "a frame ends early");
		at += (size_t)got;
	}
	return 1;
}

static void set_alarm(long sec)
{
	const struct itimerval in = {.it_value = {.tv_sec = sec}};

	(void)setitimer(ITIMER_REAL, &in, NULL);
}

static void on_progress(void *arg)
{
	const struct worker *w = arg;

	egress_pulse_beat(w->pulse);
}

static int take_config(struct worker *w, const struct gate_frame *f, struct err *err)
{
	struct gate_config c;
	int r;

	if (w->g || !gate_wire_get_config(w->frame, f->len, &c))
		return err_set(err, ERR_UPSTREAM, "a configuration");
	r = gate_new(&c, &w->g, err);
	explicit_bzero(&c, sizeof(c));
	if (r == 0)
		gate_on_progress(w->g, on_progress, w);
	return r;
}

static int take_private(struct worker *w, const struct gate_frame *f, struct err *err)
{
	struct gate_private *p = NULL;

	if (!w->g)
		return err_set(err, ERR_UPSTREAM, "terms before the configuration");
	if (gate_private_read(w->frame, f->len, &p, err) < 0)
		return -1;
	gate_set_private(w->g, p);
	gate_private_free(w->private);
	w->private = p;
	return 0;
}

static int answer(struct worker *w, const struct gate_frame *f, struct err *err)
{
	cleanup_free void *memory = NULL;
	struct reading *note = egress_pulse_reading(w->pulse);
	bool began = reading_begin(note, w->job, w->epoch, READING_TEXTS), is_one;
	cleanup_buf struct buf out;
	struct gate_input in;

	w->job = 0;
	buf_init(&out, GATE_FRAME_MAX);
	is_one = w->g && gate_wire_get_scan(w->frame, f->len, &in, &memory);
	if (is_one) {
		gate_scan(w->g, &in, w->report);
		gate_wire_put_report(&out, f->id, w->report);
	}
	reading_end(note, began);
	if (!is_one)
		return err_set(err, ERR_UPSTREAM, "a question");
	if (!buf_ok(&out))
		return err_set(err, ERR_INTERNAL, "an answer does not fit");
	return fs_write_all(w->fd, out.data, out.len, err);
}

static int take_frame(struct worker *w, const struct gate_frame *f, struct err *err)
{
	switch (f->type) {
	case GATE_F_CONFIG:
		return take_config(w, f, err);
	case GATE_F_PRIVATE:
		return take_private(w, f, err);
	case GATE_F_WHOSE:
		return gate_wire_get_whose(w->frame, f->len, &w->job, &w->epoch)
			       ? 0
			       : err_set(err, ERR_UPSTREAM, "whose question it is");
	case GATE_F_SCAN:
		return answer(w, f, err);
	case GATE_F_REPORT:
	case GATE_F_MAX_:
		break;
	}
	return err_set(err, ERR_UPSTREAM, "a frame of type %d", (int)f->type);
}

static void make_room(struct worker *w, size_t n)
{
	if (n <= w->cap)
		return;
	free(w->frame);
	w->frame = xmalloc(n);
	w->cap = n;
}

/* What was read is gone before the next one is. */
static void forget(struct worker *w, size_t n)
{
	if (w->frame)
		explicit_bzero(w->frame, n);
	if (w->cap > SMALL_BYTES) {
		free(w->frame);
		w->frame = NULL;
		w->cap = 0;
	}
}

/* 1: a frame was taken; 0: the end. */
static int step(struct worker *w, struct err *err)
{
	char header[GATE_FRAME_HEADER];
	struct gate_frame f;
	int r;

	egress_pulse_wait(w->pulse, w->fd);
	r = read_all(w->fd, header, sizeof(header), err);
	if (r <= 0)
		return r;
	if (gate_wire_header(header, sizeof(header), &f) <= 0)
		return err_set(err, ERR_UPSTREAM, "a frame's header");
	make_room(w, f.len + 1U);
	if (f.len && read_all(w->fd, w->frame, f.len, err) <= 0)
		return err_is_set(err) ? -1
				       : err_set(err, ERR_UPSTREAM, "a frame ends early");
	set_alarm(ALARM_SEC);
	r = take_frame(w, &f, err);
	set_alarm(0);
	forget(w, f.len);
	return r < 0 ? -1 : 1;
}

int gate_worker_main(int fd, struct egress_pulse *pulse, void *arg)
{
	struct worker w = {.fd = fd, .pulse = pulse, .report = xnew(struct gate_report)};
	struct err err = ERR_INIT;
	int r = 1;

	(void)arg;
	(void)signal(SIGALRM, SIG_DFL);
	while (r > 0)
		r = step(&w, &err);
	if (r < 0)
		log_err(LOG_ERROR_, "the gate worker ends", &err);
	gate_free(w.g);
	gate_private_free(w.private);
	free(w.frame);
	free(w.report);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
