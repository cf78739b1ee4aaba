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
		if (n < 0 && errno == EAGAIN) {
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

static void answered(const struct work_reply *reply, void *arg)
{
	struct stdin_pipe *p = arg;
	struct err err = ERR_INIT;

	p->call = NULL;
	if (p->fd < 0)
		return;
	if (reply->status != 200 && reply->status != 206) {
		if (work_is_lost(reply->status))
			(void)err_set_id(&err, ERRID_RUN_STALE, "stdin");
		else
			(void)work_reply_err(reply, "stdin", &err);
		end(p);
		p->trouble(&err, p->arg);
		return;
	}
	memcpy(p->part, reply->body, reply->len);
	p->len = reply->len;
	p->is_last = reply->status == 200;
	push(p);
}

static void ask(struct stdin_pipe *p, bool closed)
{
	char target[64];
	const struct work_request rq = {
		.method = HTTP_M_POST,
		.target = target,
		.reply_max = STREAM_PART_MAX_BYTES,
	};

	(void)snprintf(target, sizeof(target), "/work/v1/stdin?offset=%" PRIu64 "%s",
		       p->taken, closed ? "&closed=1" : "");
	p->call = work_send(p->work, &p->key, &rq, answered, p);
}

int stdin_pipe_new(struct loop *l, struct work *w, const struct lease_key *key,
		   stdin_trouble *trouble, void *arg, struct stdin_pipe **ret,
		   int *ret_fd, struct err *err)
{
	struct stdin_pipe *p;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	p = xnew(struct stdin_pipe);
	p->fd = fds[1];
	*ret_fd = fds[0];
	p->io = loop_io_new(l, p->fd, 0, on_room, p);
	p->work = w;
	p->key = *key;
	p->trouble = trouble;
	p->arg = arg;
	p->part = xmalloc(STREAM_PART_MAX_BYTES);
	*ret = p;
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
