/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of one job as its keeper sees them, and what they use.
 * Grade full: everything in the job's pid namespace but the keeper (pid 1).
 * Grade floor: every descendant of the keeper, which is their subreaper.
 */
#ifndef LYCH_SANDBOX_TREE_H
#define LYCH_SANDBOX_TREE_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/proto.h"
#include "sandbox/inode_set.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_proc {
	pid_t pid, ppid;
	char state;
	bool member;
	unsigned threads;
	uint64_t flags;	    /* PF_* of the kernel */
	uint64_t start;	    /* clock ticks after boot */
	uint64_t cpu_ticks; /* own and waited-for children */
	uint64_t ino;	    /* of its directory in /proc, as the listing says it */
};

struct tree {
	enum sbx_grade grade;
	int proc_fd;
	pid_t self;
	int tmp_fd, shm_fd; /* borrowed */
	uint64_t shm_dev;   /* the kernel's internal tmpfs: memfd, shared anonymous */
	uint64_t work_dev;
	bool has_work;
	struct tree_proc *proc; /* of the last scan: members, and others but elders */
	size_t n, cap;
	struct inode_set elders; /* floor: (pid, ino) of what is older than we are */
	struct inode_set seen;	 /* objects met through descriptors in this sample */
	struct hidden *hidden;	 /* from the first sample on */
	/* Called now and then while it looks at processes; may be NULL. */
	void (*meanwhile)(void *arg);
	void *meanwhile_arg;
};

struct tree_use {
	unsigned processes;  /* tasks: threads and zombies too, as RLIMIT_NPROC counts */
	unsigned unreadable; /* live processes that hide what they use */
	uint64_t memory_bytes;
	uint64_t unowned_bytes;	 /* of these: of no process (hidden.c) */
	uint64_t unlinked_bytes; /* on the workspace's file system, without a name */
	uint64_t cpu_usec;	 /* of the living */
	bool watch;		 /* something may be hidden: look again soon */
};

/* What is the same for all trees: a parent learns it for its keepers, which inherit it. */
MUST_CHECK int tree_learn(struct err *err);
MUST_CHECK int tree_init(struct tree *t, enum sbx_grade grade, int proc_fd, int tmp_fd,
			 int shm_fd, struct err *err);
/* The file system of the workspace: unlinked files there count as disk. */
MUST_CHECK int tree_set_work(struct tree *t, int work_fd, struct err *err);
void tree_done(struct tree *t);
/* List the processes; the number of members. */
MUST_CHECK int tree_scan(struct tree *t, struct err *err);
/* Scan and measure. A cheap upper bound first; only where it passes memory_limit are
 * shared pages told apart (0: the bound will do). */
MUST_CHECK int tree_measure(struct tree *t, uint64_t memory_limit, struct tree_use *ret,
			    struct err *err);
/* A large file that has a name, met by the walk over the workspace. */
void tree_note_file(struct tree *t, uint64_t dev, uint64_t ino, uint64_t bytes);
/* Has this child of ours, not yet waited for, executed a program? */
bool tree_has_executed(const struct tree *t, pid_t pid);
/* Send a signal to every member (of a fresh scan; in full by one kill(-1)). How many it
 * met. */
unsigned tree_signal(struct tree *t, int signo);
/* Only the process that was scanned, never another that got its number meanwhile. */
bool tree_signal_one(struct tree *t, const struct tree_proc *p, int signo);

/* Pure parts. */
MUST_CHECK int tree_parse_stat(const char *line, struct tree_proc *ret);
/* "Name:   123 kB" of /proc/PID/status or smaps_rollup, in bytes; 0 when absent. */
uint64_t tree_status_bytes(const char *text, const char *name);
/* Number of tasks of this uid on the whole system (floor: RLIMIT_NPROC counts all of
 * them). */
MUST_CHECK int tree_count_uid_tasks(uid_t uid, unsigned *ret, struct err *err);

#endif
