/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the guard.
 * The guard: the clock of one job, and its parent. The keeper forks it, it forks the job.
 *
 * Whoever measures a job, or acts on what is the job's, can be made to wait by it: the lock of
 * an address space, of a directory, of an inode is held by whoever the scheduler lets hold it,
 * and such a wait cannot be interrupted, not even by SIGKILL. So the keeper, which does all of
 * that, keeps no time. The guard knows a deadline, the end of its parent and of the keeper, and
 * one kill(-1, SIGKILL); it touches nothing of the job, opens no file while the job runs, and
 * what it is told comes through a socket, two pipes and some shared memory:
 *
 *	full	inside the job's pid namespace, where kill(-1) meets all but the keeper
 *		(process 1) and itself
 *	floor	inside an outer Landlock domain that scopes signals; the job's own domain is a
 *		child of it, the keeper stands outside
 *
 * In both the job's processes are its descendants and come back to it when they lose their
 * parent (it is a subreaper), so waitpid() saying ECHILD is the proof that none is left. It is
 * outside the job's CPUs, cgroup leaf, rlimits and signal scope, and asks for a short slice of
 * the processor, so that burners beside it do not delay it.
 *
 * It looks at the meter, too: one that has been about something for a second and did not run
 * meanwhile (blocked, or stopped, and not merely waiting for a processor) can no longer measure
 * the job, which is ended for it. The end of either of keeper and meter is the end of the job;
 * that of a keeper that is held shows only in the signal that waits for it.
 *
 * The job is forked before the guard has let go of what it inherited, the job's socket among it,
 * whose end is how the keeper learns of exec. So the guard says when it stands, and the keeper
 * answers no question of the job before: nothing is executed under a guard that may still fail.
 */
#ifndef LYCH_SANDBOX_KEEPER_GUARD_H
#define LYCH_SANDBOX_KEEPER_GUARD_H

#include "sandbox/contract/sandbox.h"
#include "sandbox/contract/shared_maps.h"
#include "sandbox/keeper/denials.h"

#include <stdatomic.h>

/* From the spec (a cold start: from birth) until exec. */
#define SETUP_MAX_USEC (15 * USEC_PER_SEC)
/* The keeper's last look at the files: a disk may be slow, and there may be many. */
#define LAST_LOOK_MAX_USEC (60 * USEC_PER_SEC)

/*
 * Shared by the keeper and its guard. Each number has one writer; a text is written before
 * the word (below) that tells of it. The job's process has it too until its exec, which takes
 * it away: all of that is our own code.
 */
#define WATCH_NAMED_MAX 256
struct watch_named { /* a large file of the workspace */
	uint64_t dev, ino, bytes;
};

struct watch {
	/* The meter: since when it is about something that may make it wait; 0: it waits for
	 * the next look. Which process it is. */
	_Atomic uint64_t busy_since;
	_Atomic int32_t meter_pid;
	_Atomic uint64_t memory_peak, disk_peak; /* seen so far, bytes */
	_Atomic uint32_t processes_peak;
	_Atomic uint32_t filters_made;	/* the keeper: seccomp filters, by the job */
	struct shared_maps shared_maps; /* the keeper */
	_Atomic int32_t main_pid;	/* the job: its process, as soon as it exists */
	/* The guard: of what it has waited for; whether it ends the job, or did, so that no
	 * last look is wanted. */
	_Atomic uint64_t reaped_cpu_usec;
	_Atomic bool ended, killing; /* killing: whoever is in its reach dies now */
	/* Of keeper and meter, whoever finds a limit passed first writes how and detail. */
	_Atomic bool judged;
	/* Whoever says first why nothing runs writes status (watch_refuse()). */
	_Atomic bool refused;
	struct job_status status;
	/* The keeper, before it says so: */
	usec_t timeout_usec;	     /* KEEPER_EXECUTED */
	unsigned grace_ms;	     /* KEEPER_EXECUTED */
	uint32_t how;		     /* KEEPER_OVER, KEEPER_LOOKED: enum spawn_end */
	char detail[SPAWN_TEXT_MAX]; /* of it */
	/* Between keeper and meter: bytes without a name, of the meter; the rest is the
	 * keeper's. When it last looked at the files, what the last whole round found, and
	 * how many there were. */
	_Atomic uint64_t unlinked, disk_looked, disk_total;
	_Atomic uint32_t disk_rounds, n_named;
	struct watch_named named[WATCH_NAMED_MAX]; /* a ring */
	/* The meter: its last looks, a ring; counts what is whole. */
	_Atomic uint32_t n_samples;
	uint32_t sample_kib[SPAWN_SAMPLES_MAX], sample_processes[SPAWN_SAMPLES_MAX];
	struct denials denials; /* the keeper */
};

/* A limit was passed; false: another was before. */
bool watch_judge(struct watch *w, enum spawn_end how, const char *detail);
/* Why nothing runs; the first reason stays. */
void watch_refuse(struct watch *w, const char *stage, const struct err *err);
void watch_refuse_as(struct watch *w, const struct job_status *status);

/* The keeper's words to the guard, through a pipe, whole (PIPE_BUF). Its end is the end of
 * either: not a socket, which would be one of the job's network namespace. */
enum keeper_word {
	KEEPER_TAKEN =
		1, /* a warm one has its spec: the clock of the set-up runs from now */
	KEEPER_EXECUTED, /* the command runs, and the parent knows: its clock starts */
	KEEPER_REFUSED,	 /* nothing was executed, status says why */
	KEEPER_OVER,	 /* a limit: how */
	/* All its processes are ending, and what there was to see was seen. how: the last
	 * look found a limit passed, else SPAWN_END_EXITED. */
	KEEPER_LOOKED,
};

/*
 * In the keeper: forks the guard, which forks the job. born: what both need of the keeper.
 * *ret_pid: the guard; ret_words: pipes to it, the keeper's, which has an error when it is gone,
 * and the meter's;
 * *ret_watch: shared with it. The parent's socket is used by both:
 * the keeper takes KEEPER_BIND from it until it says KEEPER_TAKEN, and tells SPAWN_STARTED; then
 * it is the guard's alone, so that its end is the guard's end.
 */
struct guard_birth {
	const struct sbx_birth *birth;
	const struct sbx_limits *limits;
	int parent_sock;
	int pulse_fd;		/* the keeper's own /proc/self/status */
	int stands_fd;		/* eventfd: the guard writes once, when it stands */
	int proc_fd;		/* full: a /proc of the job's pid namespace; else -1 */
	int status_fd, work_fd; /* the job's */
};
MUST_CHECK int guard_fork(const struct guard_birth *born, pid_t *ret_pid,
			  int ret_words[2], struct watch **ret_watch, struct err *err);

/* Of the caller: who looks after a job is among the next to get a processor. */
MUST_CHECK int guard_short_slice(struct err *err);

/* The job's process begins: job_main() with what it needs; never returns. birth.c */
NORETURN void birth_of_job(const struct guard_birth *born, struct watch *w, pid_t guard);

/* What /proc/PID/status says of the keeper. */
struct pulse {
	char state;	   /* 'R', 'S', 'D', 'T', ... */
	uint64_t switches; /* how often it has left a processor */
	bool killed;	   /* SIGKILL waits for it */
};
/* -1: that is no such text. */
MUST_CHECK int pulse_parse(const char *text, struct pulse *ret);

#endif
