/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * The processes of one job as its keeper sees them, and what they use.
 * Grade full: everything in the job's pid namespace but the keeper (pid 1) and the guard.
 * Grade floor: every descendant of the guard, which is their subreaper.
 */
#ifndef LYCH_SANDBOX_KEEPER_TREE_H
#define LYCH_SANDBOX_KEEPER_TREE_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/proto.h"
#include "sandbox/keeper/inode_set.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_proc {
	pid_t pid, ppid;
	char state;
	bool member;
	bool shares;	/* use.c: its memory is its parent's, where it is counted */
	bool may_share; /* use.c: its memory may be its parent's: nobody can tell */
	bool in_doubt;	/* use.c: of one of its children that is so */
	unsigned threads;
	uint64_t flags;	      /* PF_* of the kernel */
	uint64_t start;	      /* clock ticks after boot */
	uint64_t cpu_ticks;   /* own and waited-for children */
	uint64_t ino;	      /* of its directory in /proc, as the listing says it */
	uint64_t pages, size; /* use.c: bytes that it has at most, and maps */
};

struct tree {
	enum sbx_grade grade;
	int proc_fd;
	pid_t self;
	pid_t meter;		/* of our own, and no member; 0: none */
	pid_t guard;		/* the parent of the job, and no member; 0: we are */
	uint64_t shm_dev;	/* the kernel's internal tmpfs: memfd, shared anonymous */
	struct tree_proc *proc; /* of the last scan: members, and others but older */
	size_t n, cap;
	struct inode_set older; /* floor: (pid, ino) of what is older than we are */
	/* Called now and then while it looks at processes; may be NULL. */
	void (*meanwhile)(void *arg);
	void *meanwhile_arg;
};

/* What is the same for all trees: a parent learns it for its keepers, which inherit it. */
MUST_CHECK int tree_learn(struct err *err);
/* guard: 0 where the job's processes are our own descendants. */
MUST_CHECK int tree_init(struct tree *t, enum sbx_grade grade, pid_t guard, int proc_fd,
			 struct err *err);
void tree_done(struct tree *t);
/* List the processes; the number of members. */
MUST_CHECK int tree_scan(struct tree *t, struct err *err);
/* Has this child of ours, not yet waited for, executed a program? */
bool tree_has_executed(const struct tree *t, pid_t pid);
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
