/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See relay.h.
 */
#include "tomb/job/relay.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)
/* Of one stream at one go, so that one loud job leaves time for others. */
#define READ_TURN_BYTES ((size_t)1 << 20)
/* After the tree is gone a pipe holds at most its capacity (1 MiB is the largest that an
 * unprivileged process can ask for); more means that somebody still writes. */
#define DRAIN_MAX_BYTES ((size_t)4 << 20)
#define REPLY_SMALL 4096
#define GAPS_MAX 8
#define FULL_AGAIN_USEC (200 * USEC_PER_MSEC)

struct stream {
	struct relay *relay;
	enum relay_stream which;
	int pipe_fd, spool_fd;
	struct loop_io *io;
	uint64_t kept, sent;
	bool truncated, draining;
	struct buf *
		words; /* of a program that is none of the job's; NULL: it is the job's */
	/* Read, and without room on the disk; the job waits in its pipe meanwhile. */
	char *held;
	size_t held_len;
	struct loop_timer *again;
	unsigned gaps;
	struct work_call *call;
};

struct relay {
	struct loop *loop;
	struct work *work;
	struct lease_key key;
	struct relay_events ev;
	struct stream s[RELAY_STREAMS];
	struct work_call *end_call;
	struct loop_timer
		*later; /* to report trouble from outside of the caller's stack */
	struct err why;
	uint64_t cap;
	bool overflowed, finishing, failed;
	char *block;
};

static void relay_send(struct stream *s);

static void stream_close(struct stream *s)
{
	loop_io_free(s->io);
	s->io = NULL;
	fd_close(&s->pipe_fd);
}

static void tell_trouble(void *arg)
{
	struct relay *r = arg;

	r->ev.trouble(&r->why, r->ev.arg);
}

static void relay_fail(struct relay *r, const struct err *why)
{
	if (r->failed)
		return;
	r->failed = true;
	r->why = *why;
	loop_timer_arm(r->later, 0);
}

static uint64_t relay_room(const struct relay *r)
{
	uint64_t used = r->s[RELAY_STDOUT].kept + r->s[RELAY_STDERR].kept;

	return used < r->cap ? r->cap - used : 0;
}

/* The disk is full: that passes, so nothing more is read until these bytes have room. */
static void stream_hold(struct stream *s, const char *data, size_t len)
{
	s->held = xmalloc(len);
	memcpy(s->held, data, len);
	s->held_len = len;
	if (s->io)
		loop_io_set(s->io, 0);
	loop_timer_arm(s->again, FULL_AGAIN_USEC);
}

/* Keep what fits below the cap; the rest is counted as truncation and thrown away. */
static void stream_keep(struct stream *s, const char *data, size_t len)
{
	struct relay *r = s->relay;
	uint64_t room = relay_room(r);
	struct err err = ERR_INIT;

	if (s->words) {
		room = s->words->max - s->words->len;
		buf_add(s->words, data, len < room ? len : (size_t)room);
		return;
	}
	if (len > room) {
		len = (size_t)room;
		s->truncated = true;
		if (!r->overflowed) {
			r->overflowed = true;
			r->ev.overflow(r->ev.arg);
		}
	}
	while (len && !r->failed) {
		ssize_t n = pwrite(s->spool_fd, data, len, (off_t)s->kept);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && (errno == ENOSPC || errno == EDQUOT))) {
			stream_hold(s, data, len);
			return;
		}
		if (n < 0) {
			(void)err_sys(&err, "write the job's output to the spool");
			relay_fail(r, &err);
			return;
		}
		s->kept += (uint64_t)n;
		data += n;
		len -= (size_t)n;
	}
}

/* Up to max bytes from the pipe. False: the pipe is at its end (or nothing is there now
 * and `all` says that nothing will come). */
static bool stream_read(struct stream *s, size_t max, bool all)
{
	for (size_t done = 0; done < max && !s->held;) {
		ssize_t n = read(s->pipe_fd, s->relay->block, READ_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return !all;
		if (n <= 0)
			return false;
		stream_keep(s, s->relay->block, (size_t)n);
		done += (size_t)n;
	}
	return true;
}

static void on_pipe(int fd, unsigned what, void *arg)
{
	struct stream *s = arg;

	(void)fd;
	(void)what;
	if (!stream_read(s, READ_TURN_BYTES, false))
		stream_close(s);
	relay_send(s);
}

static void on_again(void *arg)
{
	struct stream *s = arg;
	char *data = s->held;

	s->held = NULL;
	stream_keep(s, data, s->held_len);
	free(data);
	if (s->held)
		return;
	if (s->pipe_fd >= 0 && s->draining) {
		(void)stream_read(s, DRAIN_MAX_BYTES, true);
		if (s->held)
			return;
		stream_close(s);
	} else if (s->io) {
		loop_io_set(s->io, LOOP_READ);
	}
	relay_send(s);
}

static void end_done(const struct work_reply *reply, void *arg)
{
	struct relay *r = arg;
	struct err err = ERR_INIT;

	r->end_call = NULL;
	if (reply->status == 200 || reply->status == 204) {
		r->ev.flushed(r->ev.arg);
		return;
	}
	if (work_is_lost(reply->status))
		(void)work_lost_err(reply, "output", &err);
	else
		(void)work_reply_err(reply, "end of output", &err);
	relay_fail(r, &err);
}

static void relay_end(struct relay *r)
{
	cleanup_buf struct buf body = {.max = 1024};
	struct work_request rq = {
		.method = HTTP_M_POST,
		.target = "/work/v1/output/end",
		.reply_max = REPLY_SMALL,
	};
	struct jsonw w;

	for (int i = 0; i < RELAY_STREAMS; i++)
		if (r->s[i].pipe_fd >= 0 || r->s[i].held || r->s[i].call ||
		    r->s[i].sent < r->s[i].kept)
			return;
	if (!r->finishing || r->failed || r->end_call)
		return;
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_ku64(&w, "stdout_bytes", r->s[RELAY_STDOUT].kept);
	jsonw_ku64(&w, "stderr_bytes", r->s[RELAY_STDERR].kept);
	jsonw_kbool(&w, "stdout_truncated", r->s[RELAY_STDOUT].truncated);
	jsonw_kbool(&w, "stderr_truncated", r->s[RELAY_STDERR].truncated);
	jsonw_obj_end(&w);
	rq.body = buf_str(&body);
	rq.len = body.len;
	r->end_call = work_send(r->work, &r->key, &rq, end_done, r);
}

static int send_answer(struct stream *s, const struct work_reply *reply, struct err *err)
{
	uint64_t at = 0;

	if (work_is_lost(reply->status))
		return work_lost_err(reply, "output", err);
	if (reply->status == 413) {
		/* The vessel's store is full: its own cap, not the job's fault. What it
		 * has stays, and the result says that it is not all. */
		s->truncated = true;
		s->kept = s->sent;
		return 0;
	}
	if (reply->status != 200 && reply->status != 409)
		return work_reply_err(reply, "output", err);
	if (work_reply_u64(reply, reply->status == 200 ? "size" : "expected", &at, err) <
	    0)
		return -1;
	if (at > s->kept || (at <= s->sent && ++s->gaps > GAPS_MAX))
		return err_set(err, ERR_UPSTREAM,
			       "output: the vessel is at %" PRIu64 " of %" PRIu64, at,
			       s->kept);
	s->sent = at;
	return 0;
}

static void send_done(const struct work_reply *reply, void *arg)
{
	struct stream *s = arg;
	struct err err = ERR_INIT;

	s->call = NULL;
	if (send_answer(s, reply, &err) < 0) {
		relay_fail(s->relay, &err);
		return;
	}
	relay_send(s);
}

static void relay_send(struct stream *s)
{
	struct relay *r = s->relay;
	char target[96];
	struct work_request rq = {
		.method = HTTP_M_POST,
		.target = target,
		.reply_max = REPLY_SMALL,
	};
	cleanup_free char *chunk = NULL;
	size_t want;
	ssize_t n;

	if (s->call || r->failed)
		return;
	if (s->sent >= s->kept) {
		relay_end(r);
		return;
	}
	want = s->kept - s->sent < OUTPUT_CHUNK_MAX_BYTES ? (size_t)(s->kept - s->sent)
							  : OUTPUT_CHUNK_MAX_BYTES;
	chunk = xmalloc(want);
	do
		n = pread(s->spool_fd, chunk, want, (off_t)s->sent);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		struct err err = ERR_INIT;

		(void)err_sys(&err, "read the output's spool");
		relay_fail(r, &err);
		return;
	}
	(void)snprintf(target, sizeof(target),
		       "/work/v1/output?stream=%s&offset=%" PRIu64,
		       s->which == RELAY_STDOUT ? "stdout" : "stderr", s->sent);
	rq.body = chunk;
	rq.len = (size_t)n;
	s->call = work_send(r->work, &r->key, &rq, send_done, s);
}

struct relay *relay_new(struct loop *l, struct work *w, const struct lease_key *key,
			const int spool_fds[RELAY_STREAMS], uint64_t cap,
			const struct relay_events *ev)
{
	struct relay *r = xnew(struct relay);

	r->loop = l;
	r->work = w;
	r->key = *key;
	r->ev = *ev;
	r->cap = cap;
	r->block = xmalloc(READ_BYTES);
	r->later = loop_timer_new(l, tell_trouble, r);
	for (int i = 0; i < RELAY_STREAMS; i++) {
		r->s[i].relay = r;
		r->s[i].which = (enum relay_stream)i;
		r->s[i].pipe_fd = -1;
		r->s[i].spool_fd = spool_fds[i];
		r->s[i].again = loop_timer_new(l, on_again, &r->s[i]);
	}
	return r;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	for (int i = 0; i < RELAY_STREAMS; i++) {
		work_cancel(r->s[i].call);
		stream_close(&r->s[i]);
		fd_close(&r->s[i].spool_fd);
		loop_timer_free(r->s[i].again);
		free(r->s[i].held);
	}
	work_cancel(r->end_call);
	loop_timer_free(r->later);
	free(r->block);
	free(r);
}

static void attach(struct relay *r, enum relay_stream which, int pipe_fd,
		   struct buf *words)
{
	struct stream *s = &r->s[which];

	stream_close(s);
	s->words = words;
	s->pipe_fd = pipe_fd;
	s->draining = false;
	s->io = loop_io_new(r->loop, pipe_fd, LOOP_READ, on_pipe, s);
	if (s->held)
		loop_io_set(s->io, 0);
}

void relay_attach(struct relay *r, enum relay_stream which, int pipe_fd)
{
	attach(r, which, pipe_fd, NULL);
}

void relay_attach_words(struct relay *r, int pipe_fd, struct buf *words)
{
	attach(r, RELAY_STDERR, pipe_fd, words);
}

void relay_drain(struct relay *r)
{
	for (int i = 0; i < RELAY_STREAMS; i++) {
		struct stream *s = &r->s[i];

		if (s->pipe_fd < 0)
			continue;
		(void)stream_read(s, DRAIN_MAX_BYTES, true);
		if (s->held) {
			s->draining = true; /* goes on when there is room */
			continue;
		}
		stream_close(s);
		relay_send(s);
	}
}

void relay_finish(struct relay *r)
{
	r->finishing = true;
	if (r->failed) {
		/* Said before, perhaps to somebody who was busy ending the job. */
		loop_timer_arm(r->later, 0);
		return;
	}
	for (int i = 0; i < RELAY_STREAMS; i++)
		relay_send(&r->s[i]);
}

uint64_t relay_bytes(const struct relay *r, enum relay_stream which)
{
	return r->s[which].kept;
}

bool relay_truncated(const struct relay *r, enum relay_stream which)
{
	return r->s[which].truncated;
}
