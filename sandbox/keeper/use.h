/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * What the processes of one job use, as their keeper finds it through /proc.
 *
 * A look has two halves. What changes fastest and is told at once, the pages of each process,
 * is read at every look; nothing of it waits for the job. What hides behind descriptors and
 * mappings is walked over in rounds, a slice of a round at a look, since a job decides how many
 * of them there are: what the last whole round found counts until the next is whole, and what a
 * round has found so far counts as soon as it is more.
 */
#ifndef LYCH_SANDBOX_KEEPER_USE_H
#define LYCH_SANDBOX_KEEPER_USE_H

#include "sandbox/contract/meminfo.h"
#include "sandbox/contract/shared_maps.h"
#include "sandbox/contract/sysvipc.h"
#include "sandbox/keeper/hidden.h"
#include "sandbox/keeper/tree.h"

struct use_walk; /* use_walk.c: where a round stands */

struct use_found { /* by one round */
	uint64_t
		object_bytes; /* memory behind descriptors: memfds, and what nobody maps */
	uint64_t
		kernel_bytes; /* of the kernel's, for descriptors, sockets and mappings */
	uint64_t hidden_bytes; /* of no process (hidden.c), a part of it guessed */
	uint64_t guessed_bytes;
	uint64_t unlinked_bytes; /* on the workspace's file system, without a name */
	unsigned unreadable;	 /* live processes that hide what they use */
	uint64_t locks;		 /* byte-range locks; only in a thorough round */
	uint64_t thread_filters; /* on threads that are not their process's first */
	/* Processes that were forked and executed nothing since; what they map. */
	uint64_t forked, forked_mappings;
	bool watch; /* something may be hidden: look again soon */
};

/* Of the cheap half: the numbers of /proc/PID/status, bytes. */
struct use_pages {
	uint64_t anon, shmem, swap, tables, huge, size;
	unsigned filters; /* seccomp filters */
};
/* false: this task has no memory (any more). */
bool use_parse_status(const char *text, struct use_pages *ret);

struct use {
	struct tree *tree;
	int tmp_fd, shm_fd; /* borrowed: the job's tmpfs mounts, or -1 */
	int meminfo_fd;	    /* borrowed */
	uint64_t work_dev;
	bool has_work;
	unsigned own_filters; /* on the keeper, and so on the job without its doing */
	const _Atomic uint32_t *filters_made;  /* borrowed; NULL: not counted */
	const struct shared_maps *shared_maps; /* borrowed; NULL: not counted */
	struct meminfo base;		       /* when the job had not begun */
	struct inode_set seen; /* objects met through descriptors in this round */
	struct hidden *hidden;
	struct use_walk *walk;
	struct use_found now, last; /* of the round that goes on; of the last whole one */
	unsigned rounds;	    /* whole ones so far */
	bool thorough; /* this round looks at locks, too, and does not pause */
	/* When the last thorough round began: MemAvailable, the kernel's, and what was known of. */
	uint64_t seen_available, seen_kernel, seen_bytes;
	usec_t round_began;
	uint64_t largest_shmem; /* that one process has mapped: some of what is known */
	uint64_t shmem; /* all of them together: some of it counted more than once */
	struct sysvipc_sum ipc; /* full: of the job's own namespace */
	/* When the round began: shared memory of the machine, the kernel's, of the job's tmpfs, and shmem. */
	uint64_t begun_shmem, begun_kernel, begun_tmpfs, begun_shown, begun_ipc;
	uint64_t files_grown; /* the keeper: of the workspace's file system, by whoever */
	/* exact sizes, where pages shared after fork() would be counted twice */
	struct use_exact *exact;
	uint64_t exact_bytes, exact_bound;
	usec_t exact_at; /* when that was known; 0: not so far */
	usec_t doubt_since;
	uint64_t doubt_free; /* the machine's memory and swap then */
	/* Called now and then while it looks; may be NULL. */
	void (*meanwhile)(void *arg);
	void *meanwhile_arg;
};

struct use_sum {
	unsigned processes; /* tasks: threads and zombies too, as RLIMIT_NPROC counts */
	unsigned unreadable;
	uint64_t memory_bytes;
	uint64_t unowned_bytes; /* of these: of no process */
	uint64_t guessed_bytes; /* of these: a guess */
	uint64_t unlinked_bytes;
	uint64_t cpu_usec; /* of the living */
	uint64_t locks;
	bool settled; /* memory_bytes is what counts; else a bound that is being told apart */
	bool doubted;	 /* settled, for time is up: memory_bytes is the bound */
	bool watch;	 /* look again soon */
	bool going;	 /* a round is not whole yet */
	bool hurry;	 /* it is not to wait */
	unsigned rounds; /* whole ones so far */
	bool held_up; /* a round has gone on for too long while the machine's memory went */
};

/* Before the job begins. diag_fd: diag.h, or -1 (floor). Borrows all of these. */
MUST_CHECK int use_init(struct use *u, struct tree *t, int tmp_fd, int shm_fd,
			int meminfo_fd, int diag_fd, struct err *err);
/* The file system of the workspace: unlinked files there count as disk. */
MUST_CHECK int use_set_work(struct use *u, int work_fd, struct err *err);
/* One look, some milliseconds of it a slice of a round. */
MUST_CHECK int use_look(struct use *u, uint64_t memory_limit, struct use_sum *ret,
			struct err *err);
/* A large file that has a name, met by the walk over the workspace. */
void use_note_file(struct use *u, uint64_t dev, uint64_t ino, uint64_t bytes);

/* use_walk.c: a slice; true: the round is whole. */
bool use_walk_step(struct use *u);
/* Of a process; a leader that has exited shows none, the threads behind it do. False: nobody has its
 * memory any more. */
bool use_pages_of(const struct use *u, pid_t pid, unsigned threads,
		  struct use_pages *ret);
uint64_t use_bytes_of(const struct use_pages *v);
/* use_exact.c: a slice; true: *ret is known. */
struct use_exact_sum {
	uint64_t least,
		most; /* bytes; they differ when processes ended meanwhile, or may share */
};
bool use_exact_step(struct use *u, struct use_exact_sum *ret);
/* It takes longer than it should to find out. */
bool use_is_late(const struct use *u, usec_t now);
void use_exact_done(struct use *u);
/* Of a task: filters that are not on the keeper. */
unsigned use_filters(const struct use *u, const struct use_pages *p);
/* How many the job has made so far. */
uint64_t use_filters_made(const struct use *u);
/* use.c: so much of the kernel's memory has come since the job began and is not known of it. */
uint64_t use_missing_kernel(const struct use *u);
/* use.c: so much shared memory, and of the kernel's, has come since the job began that nobody
 * can be shown to have: more is not hidden. */
uint64_t use_missing(const struct use *u);
/* Lets the caller do what cannot wait. */
void use_meanwhile(const struct use *u);

#endif
