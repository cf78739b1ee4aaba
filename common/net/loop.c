/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See loop.h.
 */
#include "common/net/loop.h"
#include "common/fs.h"

#include "common/mem.h"

#include <assert.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#define LOOP_SIGNALS_MAX 8

struct loop_sig {
	struct event *ev;
	loop_signal_fn *fn;
	void *arg;
};

struct loop {
	struct event_base *base;
	struct loop_sig sigs[LOOP_SIGNALS_MAX];
	unsigned n_sigs;
	int exit_code;
	bool stopped;
	uint64_t longest_turn; /* microseconds */
};

struct loop_timer {
	struct event *ev;
	loop_timer_fn *fn;
	void *arg;
};

struct loop_io {
	struct loop *loop;
	struct event *ev; /* NULL while paused */
	int fd;
	unsigned what;
	loop_io_fn *fn;
	void *arg;
};

int loop_new(struct loop **ret, struct err *err)
{
	struct loop *l;
	struct event_config *cfg = event_config_new();

	if (!cfg)
		return err_set(err, ERR_INTERNAL, "event_config_new failed");
	/* Epoll watches are counted for each uid, in all namespaces together: a job could
	 * use them up and the next epoll_ctl() of a daemon would fail. poll() needs no
	 * quota. IGNORE_ENV: libevent obeys EVENT_* variables otherwise. PRECISE_TIMER,
	 * NO_CACHE_TIME: a timer counts from when it is armed, by the clock that we ask,
	 * not from the last tick before this turn; else it is some milliseconds early. */
	if (event_config_avoid_method(cfg, "epoll") < 0 ||
	    event_config_set_flag(cfg, EVENT_BASE_FLAG_IGNORE_ENV |
					       EVENT_BASE_FLAG_NOLOCK |
					       EVENT_BASE_FLAG_PRECISE_TIMER |
					       EVENT_BASE_FLAG_NO_CACHE_TIME) < 0) {
		event_config_free(cfg);
		return err_set(err, ERR_INTERNAL, "event_config failed");
	}
	l = xnew(struct loop);
	l->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	if (!l->base) {
		free(l);
		return err_set(err, ERR_INTERNAL, "no event base");
	}
	/* A peer that closes early must be an EPIPE, not our death. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
		loop_free(l);
		return err_sys(err, "ignore SIGPIPE");
	}
	fs_raise_nofile();
	*ret = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->n_sigs; i++)
		event_free(l->sigs[i].ev);
	event_base_free(l->base);
	free(l);
}

static uint64_t cpu_usec(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

int loop_run(struct loop *l, struct err *err)
{
	uint64_t before = cpu_usec(), after;

	while (!l->stopped) {
		int r = event_base_loop(l->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);

		if (r < 0)
			return err_set(err, ERR_INTERNAL, "the event loop failed");
		after = cpu_usec();
		if (after - before > l->longest_turn)
			l->longest_turn = after - before;
		before = after;
	}
	l->stopped = false;
	return l->exit_code;
}

uint64_t loop_longest_turn_usec(const struct loop *l)
{
	return l->longest_turn;
}

void loop_stop(struct loop *l, int exit_code)
{
	l->exit_code = exit_code;
	l->stopped = true;
	(void)event_base_loopbreak(l->base);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

static void timer_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct loop_timer *t = arg;

	t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_timer_fn *fn, void *arg)
{
	struct loop_timer *t = xnew(struct loop_timer);

	t->fn = fn;
	t->arg = arg;
	t->ev = event_new(l->base, -1, 0, timer_cb, t);
	assert(t->ev);
	return t;
}

void loop_timer_arm(struct loop_timer *t, usec_t in_usec)
{
	struct timeval tv;
	/* A year is "never" for every user and stays clear of time_t's edges. */
	usec_t capped =
		in_usec < 31536000 * USEC_PER_SEC ? in_usec : 31536000 * USEC_PER_SEC;
	int r;

	tv.tv_sec = (time_t)(capped / USEC_PER_SEC);
	tv.tv_usec = (suseconds_t)(capped % USEC_PER_SEC);
	r = event_add(t->ev, &tv);
	assert(r == 0);
}

void loop_timer_disarm(struct loop_timer *t)
{
	(void)event_del(t->ev);
}

void loop_timer_free(struct loop_timer *t)
{
	if (!t)
		return;
	event_free(t->ev);
	free(t);
}

static void io_cb(evutil_socket_t fd, short what, void *arg)
{
	struct loop_io *io = arg;
	unsigned got = 0;

	if (what & EV_READ)
		got |= LOOP_READ;
	if (what & EV_WRITE)
		got |= LOOP_WRITE;
	io->fn(fd, got, io->arg);
}

struct loop_io *loop_io_new(struct loop *l, int fd, unsigned what, loop_io_fn *fn,
			    void *arg)
{
	struct loop_io *io = xnew(struct loop_io);

	assert(fd >= 0);
	io->loop = l;
	io->fd = fd;
	io->fn = fn;
	io->arg = arg;
	loop_io_set(io, what);
	return io;
}

void loop_io_set(struct loop_io *io, unsigned what)
{
	short ev = EV_PERSIST;
	int r;

	if (what == io->what)
		return;
	if (io->ev) {
		event_free(io->ev);
		io->ev = NULL;
	}
	io->what = what;
	if (!what)
		return;
	if (what & LOOP_READ)
		ev |= EV_READ;
	if (what & LOOP_WRITE)
		ev |= EV_WRITE;
	io->ev = event_new(io->loop->base, io->fd, ev, io_cb, io);
	assert(io->ev);
	r = event_add(io->ev, NULL);
	assert(r == 0);
}

void loop_io_free(struct loop_io *io)
{
	if (!io)
		return;
	if (io->ev)
		event_free(io->ev);
	free(io);
}

static void signal_cb(evutil_socket_t signo, short what UNUSED, void *arg)
{
	struct loop_sig *s = arg;

	s->fn(signo, s->arg);
}

int loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *arg, struct err *err)
{
	struct loop_sig *s;

	if (l->n_sigs == LOOP_SIGNALS_MAX)
		return err_set(err, ERR_INTERNAL, "too many signal handlers");
	s = &l->sigs[l->n_sigs];
	s->fn = fn;
	s->arg = arg;
	s->ev = evsignal_new(l->base, signo, signal_cb, s);
	if (!s->ev)
		return err_set(err, ERR_INTERNAL, "no event for signal %d", signo);
	if (evsignal_add(s->ev, NULL) < 0) {
		event_free(s->ev);
		return err_set(err, ERR_INTERNAL, "cannot watch signal %d", signo);
	}
	l->n_sigs++;
	return 0;
}
