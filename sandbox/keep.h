/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's state, shared by its birth (birth.c) and its life (keeper.c). */
#ifndef LYCH_SANDBOX_KEEP_H
#define LYCH_SANDBOX_KEEP_H

#include "sandbox/broker.h"
#include "sandbox/disk.h"
#include "sandbox/keeper.h"
#include "sandbox/notify.h"
#include "sandbox/tree.h"

/* From the spec (a cold start: from birth) until exec. */
#define SETUP_MAX_USEC (15 * USEC_PER_SEC)

/* How much of a walk over the job's trees is done before anything else is seen to. */
#define DISK_ENTRIES_A_STEP 4000

enum phase {
	PHASE_WARM,  /* built, without a spec */
	PHASE_SETUP, /* until exec */
	PHASE_RUNNING,
	PHASE_TERM, /* SIGTERM sent, the grace runs */
	PHASE_KILL, /* SIGKILL until nothing is left */
	PHASE_GONE,
};

struct keep {
	struct sbx_birth birth;
	const struct sbx_spec *spec; /* warm: the shape, until it is bound */
	struct sbx_spec own_spec;    /* what a warm one was bound to */
	struct sbx_limits limits;
	struct sbx_root root;
	struct broker_fds broker;
	int sock, status_fd, signal_fd;
	pid_t main_pid;
	bool main_over, parent_gone, empty, pinned;
	bool child_ended;	   /* SIGCHLD came: there is something to reap */
	bool refused, exec_failed; /* what came through status_fd */
	struct job_status status;
	int main_status;
	enum phase phase;
	bool ended; /* how is decided */
	uint32_t how;
	char detail[SPAWN_TEXT_MAX];
	uint32_t strays;
	usec_t answering; /* spent on the job's calls in this sample */
	usec_t began, over, deadline, kill_at, next_kill, next_sample, next_round;
	usec_t at_limit_since;
	unsigned hiding, n_samples;
	struct tree tree;
	struct notify notify;
	struct landlock_set rules; /* for the job, until it goes */
	struct disk_walk disk;
	uint64_t unlinked; /* when the round of the walk began */
	uint64_t memory_peak, disk_peak;
	uint32_t processes_peak;
	int landlock_abi;
};

/* birth.c. In the keeper only, with everything in place when it returns; stage names what
 * failed. k->main_pid > 0 on failure: the job may be there already. */
MUST_CHECK int birth_give(struct keep *k, const char **stage, struct err *err);
/* The job onto its CPUs, while it waits for us: moving it costs nothing then. A warm one
 * waits for its spec, a cold one at its first question. */
MUST_CHECK int birth_pin(struct keep *k, struct err *err);
/* A warm keeper got its spec (fds as in handover.h; taken over): from PHASE_WARM to
 * PHASE_SETUP. */
MUST_CHECK int birth_bind(struct keep *k, const struct keeper_bind *m,
			  const struct spawn_spec *spec, int *fds, const char **stage,
			  struct err *err);

/* keeper.c. A message for the parent, unless it is gone. */
void keep_tell(const struct keep *k, const void *msg, size_t size);
/* CPU time of what was reaped. */
uint64_t keep_cpu_usec(void);
/* So much was in use: the peak, if there was not more before. */
void keep_note_disk(struct keep *k, uint64_t bytes);
/* end.c. The listener has hung up: the job's processes are ending. Takes a look at the disk, and
 * waits a little for SIGCHLD. */
void end_is_near(struct keep *k);
/* Nothing of the job is left: the last look, the report, and our own end. */
NORETURN void end_keeper(struct keep *k);

#endif
