/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The stdin of a job that is streamed: from the vessel, part by part, into the job's pipe or
 * terminal, with the size of the client's window. The next
 * part is asked for when the job has room for all of the last one, so that a job that does not read
 * costs one part here, whatever waits for it.
 */
#ifndef LYCH_TOMB_JOB_STDIN_PIPE_H
#define LYCH_TOMB_JOB_STDIN_PIPE_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "tomb/queue/queue.h"
#include "tomb/queue/work.h"

struct stdin_pipe;

/* trouble: the vessel refused (ERR_GONE: the lease is not ours any more); nothing follows. It may free
 * the pipe. */
typedef void stdin_trouble(const struct err *why, void *arg);

/* *ret_fd is the job's end, the caller's. */
MUST_CHECK int stdin_pipe_new(struct loop *l, struct work *w, const struct lease_key *key,
			      stdin_trouble *trouble, void *arg, struct stdin_pipe **ret,
			      int *ret_fd, struct err *err);
struct stdin_terminal {
	int fd; /* the side that is not the job's; it does not block, and is taken */
	unsigned cols, rows; /* its size */
	bool stays;	     /* its stdin does not end when no client is there */
	/* The client's window has another one. */
	void (*resize)(unsigned cols, unsigned rows, void *arg);
};
/* Of a job with a terminal: arg is of both. */
struct stdin_pipe *stdin_pipe_at(struct loop *l, struct work *w,
				 const struct lease_key *key, stdin_trouble *trouble,
				 void *arg, const struct stdin_terminal *terminal);
/* The job runs: ask. NULL is fine, here and below. */
void stdin_pipe_begin(struct stdin_pipe *p);
void stdin_pipe_free(struct stdin_pipe *p);

#endif
