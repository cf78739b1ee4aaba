/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * See link.h.
 */
#include "vessel/egress/link.h"

#include "common/cleanup.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Room for a frame that is half there and one more read. */
#define IN_MAX (3 * (EGRESS_FRAME_MAX + EGRESS_FRAME_HEADER))

struct egress_link {
	struct loop *loop;
	struct loop_io *io;
	struct loop_timer *fail; /* on_closed is never called from within flush */
	struct egress_link_ops ops;
	struct buf in, out;
	struct err why;
	int fd;
	size_t taken; /* of in, by frames that were handed on */
	bool busy;    /* on_frame may be running */
	bool freed;   /* while busy */
	bool closed;  /* on_closed was called, or is about to be */
};

static void really_free(struct egress_link *k)
{
	loop_io_free(k->io);
	loop_timer_free(k->fail);
	buf_done(&k->in);
	buf_done(&k->out);
	fd_close(&k->fd);
	free(k);
}

static void close_now(struct egress_link *k, const struct err *why)
{
	k->closed = true;
	loop_io_set(k->io, 0);
	loop_timer_disarm(k->fail);
	k->ops.on_closed(why, k->ops.arg);
}

static void on_fail(void *arg)
{
	struct egress_link *k = arg;

	close_now(k, err_is_set(&k->why) ? &k->why : NULL);
}

static void close_later(struct egress_link *k)
{
	if (k->closed)
		return;
	k->closed = true;
	loop_io_set(k->io, 0);
	loop_timer_arm(k->fail, 0);
}

/* -1: k->why; 0: all whole frames are taken. */
static int take_frames(struct egress_link *k)
{
	size_t at = 0;
	int r = 0;

	while (!k->freed && !k->closed) {
		struct egress_frame f;
		size_t used = 0;

		r = egress_frame_next(k->in.data + at, k->in.len - at, &f, &used,
				      &k->why);
		if (r <= 0)
			break;
		at += used;
		k->taken = at;
		r = k->ops.on_frame(&f, k->ops.arg, &k->why);
		if (r < 0)
			break;
	}
	buf_consume(&k->in, at);
	return r < 0 ? -1 : 0;
}

/* 1: something came, 0: nothing for now, -1: the end of it. */
static int receive(struct egress_link *k)
{
	char piece[EGRESS_FRAME_MAX];
	ssize_t n = recv(k->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	buf_add(&k->in, piece, (size_t)n);
	return 1;
}

static void on_readable(struct egress_link *k)
{
	int r = receive(k);

	if (r == 0)
		return;
	if (r < 0) {
		close_now(k, NULL);
		return;
	}
	k->busy = true;
	r = take_frames(k);
	k->busy = false;
	if (k->freed)
		really_free(k);
	else if (r < 0 && !k->closed)
		close_now(k, &k->why);
}

static void on_io(int fd UNUSED, unsigned what, void *arg)
{
	struct egress_link *k = arg;

	if (what & LOOP_WRITE)
		egress_link_flush(k);
	if ((what & LOOP_READ) && !k->closed)
		on_readable(k);
}

struct egress_link *egress_link_new(struct loop *l, int fd, size_t out_max,
				    const struct egress_link_ops *ops)
{
	struct egress_link *k = xnew(struct egress_link);

	k->loop = l;
	k->fd = fd;
	k->ops = *ops;
	buf_init(&k->in, IN_MAX);
	buf_init(&k->out, out_max);
	k->fail = loop_timer_new(l, on_fail, k);
	k->io = loop_io_new(l, fd, LOOP_READ, on_io, k);
	return k;
}

void egress_link_free(struct egress_link *k)
{
	if (!k)
		return;
	k->closed = true;
	if (k->busy)
		k->freed = true;
	else
		really_free(k);
}

int egress_link_release(struct egress_link *k)
{
	bool spare = k->in.len > k->taken;
	int fd = spare ? -1 : TAKE_FD(k->fd);

	egress_link_free(k);
	return fd;
}

struct buf *egress_link_out(struct egress_link *k)
{
	return &k->out;
}

void egress_link_flush(struct egress_link *k)
{
	if (k->closed)
		return;
	if (!buf_ok(&k->out)) {
		(void)err_set_id(&k->why, ERRID_EGRESS_WORKER,
				 "it does not take what is sent to it");
		close_later(k);
		return;
	}
	while (k->out.len > 0) {
		ssize_t n =
			send(k->fd, k->out.data, k->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			close_later(k);
			return;
		}
		buf_consume(&k->out, (size_t)n);
	}
	/* a large body leaves its room behind */
	if (k->out.len == 0 && k->out.cap > 4 * EGRESS_FRAME_MAX)
		buf_done(&k->out);
	loop_io_set(k->io, LOOP_READ | (k->out.len > 0 ? LOOP_WRITE : 0));
}
