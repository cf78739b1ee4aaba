/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * Theory of operation. A call about a directory can wait in the kernel, where no signal ends
 * it: for the lock of a directory that a job's thread holds while it gets no processor, or for
 * the one lock that a file system has for renames. The thread that renews leases must not
 * wait. So everything about the folders of jobs (made, filled, harvested, removed) is done by
 * processes of their own, the file workers, each about one job's task at a time. One that
 * waits holds up its own job and nobody else: the next task gets another worker.
 *
 * The tomb may fork nothing once it has confined itself, and a worker that hangs cannot be
 * taken back. So their parent is forked at the very start, before a secret is read; it
 * confines itself to their directories and forks a worker whenever it is asked to. They
 * hold no secret and no socket but the one to the tomb, and they are who parses what jobs left.
 *
 * Tasks of one job are done in the order in which they were asked for, one after the other.
 */
#ifndef LYCH_TOMB_FILES_FILES_H
#define LYCH_TOMB_FILES_FILES_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "tomb/files/files_wire.h"

struct confine_probe;
struct files;
struct file_task;

/* Where they work: absolute paths, kept by the caller. */
struct files_place {
	const char *jobs, *spool, *artifacts, *quarantine;
	bool unrooted;		/* daemons: no_private_root */
	const char *api_socket; /* with it: what their self-tests try */
#ifdef LYCH_TEST_BUILD
	const struct confine_probe *probe;
	const char *probe_process; /* "files-parent", "file-worker": who tries it; NULL */
#endif
};

struct files_answer {
	int fds[FILES_FDS_MAX]; /* taken over by who sets them to -1; else closed */
	const char *payload;	/* NULL: none; gone after the callback */
	size_t payload_bytes;
};

/* So long nothing may be heard of a task, or of the parent that was asked for a worker. Between
 * two steps of a task little is done: a slow disk is no hang. */
#define FILES_PATIENCE_USEC (12 * USEC_PER_SEC)

/* err NULL: done. ERR_UNAVAILABLE: the worker ended, or nothing was heard of it for so long
 * that somebody must hold what it wants; whether it was done is not known then. */
typedef void file_done(struct files_answer *a, const struct err *err, void *arg);

struct files_events {
	void (*up)(void *arg); /* the first worker's walls stand */
	/* Their parent ended, or a wall did not stand: nothing more can be done. */
	void (*gone)(const struct err *why, void *arg);
	void *arg;
	usec_t patience_usec; /* FILES_PATIENCE_USEC */
};

/* Forks the parent. jobs_max: how many jobs there are at a time at most. */
MUST_CHECK int files_start(const struct files_place *place, unsigned jobs_max,
			   struct files **ret, struct err *err);
MUST_CHECK int files_attach(struct files *f, struct loop *l,
			    const struct files_events *ev, struct err *err);
void files_free(struct files *f); /* open tasks are dropped without a callback */

/* job and name as in struct files_request; payload is copied. done is called once, from the
 * loop. */
struct file_task *files_ask(struct files *f, enum files_op op, const char *job,
			    const char *name, const struct buf *payload, file_done *done,
			    void *arg);
/* Nobody is told any more; what was begun is finished all the same. NULL is fine; not after
 * done. */
void files_cancel(struct file_task *t);

/* files_parent.c: in the child. Returns the exit code. */
int files_parent_run(const struct files_place *place, int control);
/* files_worker.c: in its children, below its walls. */
int files_worker_run(const struct files_place *place, int fd);
/* The walls of both; parent: it makes them, may fork, and its children are below it. */
MUST_CHECK int files_confine(const struct files_place *place, bool parent,
			     struct err *err);
/* Test builds: below its walls `process` tries what it was given, and ends. */
void files_probe(const struct files_place *place, const char *process);
/* One word without descriptors. -1: the other side is gone. */
MUST_CHECK int files_say(int fd, enum files_word word, const struct err *why);

#endif
