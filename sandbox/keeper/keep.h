/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * The keeper's state, shared by its birth (birth.c), its loop (keeper.c), its looks
 * at files (files.c) and the last one (end.c); the meter (meter.c, sample.c) has a copy of it.
 */
#ifndef LYCH_SANDBOX_KEEPER_KEEP_H
#define LYCH_SANDBOX_KEEPER_KEEP_H

#include "sandbox/contract/keeper.h"
#include "sandbox/keeper/disk.h"
#include "sandbox/keeper/guard.h"
#include "sandbox/keeper/notify.h"
#include "sandbox/keeper/pace.h"
#include "sandbox/keeper/tree.h"
#include "sandbox/keeper/use.h"
#include "sandbox/walls/broker.h"

/* How much of a walk over the job's trees is done before anything else is seen to. */
#define DISK_ENTRIES_A_STEP 4000

enum keep_phase {
	KEEP_WARM,    /* built, without a spec */
	KEEP_SETUP,   /* until exec */
	KEEP_RUNNING, /* it takes samples */
	KEEP_OVER,    /* nothing more to be done but to end with the guard */
};

struct keep {
	struct sbx_birth birth;
	const struct sbx_spec *spec; /* warm: the shape, until it is bound */
	struct sbx_spec own_spec;    /* what a warm one was bound to */
	struct sbx_limits limits;
	struct sbx_root root;
	struct broker_fds broker;
	int sock, status_fd, words, meter_words;
	int stands_fd; /* the guard's word that it stands; -1: it has come */
	pid_t main_pid, guard_pid, meter_pid;
	struct watch *watch; /* from the guard's fork on */
	bool pinned;
	bool made_tmpdir; /* floor: SBX_TMPDIR was not there before */
	int tmpdir_fd;	  /* it, and our lock on it; -1: none */
	enum keep_phase phase;
	usec_t answering; /* spent on the job's calls in this sample */
	usec_t next_sample, next_look, next_round;
	/* files.c: of the disk, given by fallocate(2) and maybe not counted yet: since then; before. */
	uint64_t given[2];
	usec_t given_since;
	uint64_t given_whole; /* since the last whole round ended: not counted yet */
	usec_t at_limit_since;
	unsigned hiding, n_looks, rounds, disk_rounds;
	uint32_t named_heard;
	uint64_t grown_before,
		grown_round; /* disk.grown, one round ago and at the last */
	struct pace pace;
	struct tree tree;
	struct use use;
	int diag_fd;
	struct notify notify;
	struct landlock_set rules; /* for the job, until it goes */
	struct disk_walk disk;
	uint64_t unlinked;	 /* when the round of the walk began */
	uint64_t total_unlinked; /* the same of the last whole one */
	int landlock_abi;
};

/* birth.c. In the keeper only, with everything in place when it returns; stage names what
 * failed. k->words >= 0 on failure: the guard, and the job perhaps, are there already. */
MUST_CHECK int birth_give(struct keep *k, const char **stage, struct err *err);
/* The job onto its CPUs, while it waits for us: moving it costs nothing then. A warm one
 * waits for its spec, a cold one at its first question. */
MUST_CHECK int birth_pin(struct keep *k, struct err *err);
/* Returns when the guard stands; until then nothing of the job may be executed. */
MUST_CHECK int birth_await_guard(struct keep *k, struct err *err);
/* The job before everybody else when memory runs out; not before it can be looked at. */
MUST_CHECK int birth_first_for_oom(const struct keep *k, struct err *err);
/* A warm keeper got its spec (fds as in handover.h; taken over). */
MUST_CHECK int birth_bind(struct keep *k, const struct keeper_bind *m,
			  const struct payload *spec, int *fds, const char **stage,
			  struct err *err);

/* keeper.c. A word for the guard; keeper and meter have a pipe each. */
/* The job has passed a limit: the guard ends it. */
void keep_verdict(struct keep *k, enum spawn_end how, const char *detail);

/* sample.c. One look at its processes; says when the next one is due. */
void keep_sample(struct keep *k);
void keep_over(struct keep *k, enum spawn_end how, const char *what, uint64_t is,
	       uint64_t limit);

/* meter.c. From here on the job is measured. */
void meter_fork(struct keep *k);
/* It is gone when this returns. */
void meter_end(struct keep *k);

/* files.c. One look at what it has on the disk; says when the next one is due. */
void files_look(struct keep *k);
void files_tell_named(void *keep, uint64_t dev, uint64_t ino, uint64_t bytes);
/* What the disk limit still covers, as far as is known now. */
struct room files_room(void *keep);
/* The keeper made fallocate(2) for the job: for `asked` bytes that the file did not seem to have, of
 * which it has `grew` more. */
void files_given(void *keep, uint64_t asked, uint64_t grew);
/* So much was in use: the peak, if there was not more before. */
void files_note(struct keep *k, uint64_t bytes);

/* end.c. The listener has hung up: the job's processes are ending. The last look at the disk, and
 * what the parent is told of refusals. */
void last_look(struct keep *k);

#endif
