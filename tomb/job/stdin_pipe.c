/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See stdin_pipe.h.
 */
#include "tomb/job/stdin_pipe.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/job_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stdin_pipe {
	struct work *work;
	struct lease_key key;
	stdin_trouble *trouble;
	void *arg;
	int fd; /* our end; -1: it has ended, or the job reads no more */
	struct loop_io *io;
	struct work_call *call;
	uint64_t taken; /* the job has room for all before it */
	char *part;	/* what it has not */
	size_t len, written;
	bool is_last;
	struct stdin_terminal terminal; /* cols 0: it is a pipe */
};

static void ask(struct stdin_pipe *p, bool closed);

/* The job sees the end; or has seen enough. */
static void end(struct stdin_pipe *p)
{
	loop_io_free(p->io);
	p->io = NULL;
	fd_close(&p->fd);
}

static void push(struct stdin_pipe *p)
{
	while (p->written < p->len) {
		ssize_t n = write(p->fd, p->part + p->written, p->len - p->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno == EAGAIN)) {
			loop_io_set(p->io, LOOP_WRITE);
			return;
		}
		if (n < 0) { /* nobody has the other end any more */
			end(p);
			ask(p, true);
			return;
		}
		p->written += (size_t)n;
	}
	loop_io_set(p->io, 0);
	p->taken += p->len;
	p->len = p->written = 0;
	if (p->is_last)
		end(p);
	else
		ask(p, false);
}

static void on_room(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	push(arg);
}

static void fail(struct stdin_pipe *p, const struct err *why)
{
	end(p);
	p->trouble(why, p->arg);
}

/* The client's window has another size than we said. */
static void resize(struct stdin_pipe *p, const struct work_reply *reply)
{
	struct stdin_terminal *t = &p->terminal;
	uint64_t cols = 0, rows = 0;
	struct err err = ERR_INIT;

	if (work_reply_u64(reply, "cols", &cols, &err) < 0 ||
	    work_reply_u64(reply, "rows", &rows, &err) < 0) {
		fail(p, &err);
		return;
	}
	if (!t->cols || !cols || !rows || cols > TTY_SIDE_MAX || rows > TTY_SIDE_MAX ||
	    (cols == t->cols && rows == t->rows)) {
		(void)err_set(&err, ERR_UPSTREAM,
			      "stdin: a window of %" PRIu64 "x%" PRIu64, cols, rows);
		fail(p, &err);
		return;
	}
	t->cols = (unsigned)cols;
	t->rows = (unsigned)rows;
	t->resize(t->cols, t->rows, p->arg);
	ask(p, false);
}

static void answered(const struct work_reply *reply, void *arg)
{
	struct stdin_pipe *p = arg;
	struct err err = ERR_INIT;

	p->call = NULL;
	if (p->fd < 0)
		return;
	if (reply->status == 202) {
		resize(p, reply);
		return;
	}
	if (reply->status != 200 && reply->status != 206) {
		if (work_is_lost(reply->status))
			(void)work_lost_err(reply, "stdin", &err);
		else
			(void)work_reply_err(reply, "stdin", &err);
		fail(p, &err);
		return;
	}
	memcpy(p->part, reply->body, reply->len);
	p->len = reply->len;
	p->is_last = reply->status == 200;
	push(p);
}

static void ask(struct stdin_pipe *p, bool closed)
{
	char target[128], window[56] = "";
	const struct work_request rq = {
		.method = HTTP_M_POST,
		.target = target,
		.reply_max = STREAM_PART_MAX_BYTES,
	};

	if (p->terminal.cols)
		(void)snprintf(window, sizeof(window), "&cols=%u&rows=%u%s",
			       p->terminal.cols, p->terminal.rows,
			       p->terminal.stays ? "&stays=1" : "");
	(void)snprintf(target, sizeof(target), "/work/v1/stdin?offset=%" PRIu64 "%s%s",
		       p->taken, window, closed ? "&closed=1" : "");
	p->call = work_send(p->work, &p->key, &rq, answered, p);
}

/* Takes fd. */
static struct stdin_pipe *make(struct loop *l, struct work *w,
			       const struct lease_key *key, stdin_trouble *trouble,
			       void *arg, int fd)
{
	struct stdin_pipe *p = xnew(struct stdin_pipe);

	p->fd = fd;
	p->io = loop_io_new(l, p->fd, 0, on_room, p);
	p->work = w;
	p->key = *key;
	p->trouble = trouble;
	p->arg = arg;
	p->part = xmalloc(STREAM_PART_MAX_BYTES);
	return p;
}

struct stdin_pipe *stdin_pipe_at(struct loop *l, struct work *w,
				 const struct lease_key *key, stdin_trouble *trouble,
				 void *arg, const struct stdin_terminal *terminal)
{
	struct stdin_pipe *p = make(l, w, key, trouble, arg, terminal->fd);

	p->terminal = *terminal;
	return p;
}

int stdin_pipe_new(struct loop *l, struct work *w, const struct lease_key *key,
		   stdin_trouble *trouble, void *arg, struct stdin_pipe **ret,
		   int *ret_fd, struct err *err)
{
	struct stdin_pipe *p;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	*ret_fd = fds[0];
	*ret = p = make(l, w, key, trouble, arg, fds[1]);
	/* the job's end is another open file: it blocks there as it should */
	return fcntl(p->fd, F_SETFL, O_NONBLOCK) < 0 ? err_sys(err, "pipe") : 0;
}

void stdin_pipe_begin(struct stdin_pipe *p)
{
	if (p)
		ask(p, false);
}

void stdin_pipe_free(struct stdin_pipe *p)
{
	if (!p)
		return;
	work_cancel(p->call);
	end(p);
	explicit_bzero(&p->key, sizeof(p->key));
	free(p->part);
	free(p);
}
