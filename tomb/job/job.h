/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * One job from claimed to reported: a pure state machine. It does no I/O and sees
 * time only through what it is told; events go in, actions come out (runner.c carries
 * them out). So every order of events can be tried from a table or a seed.
 *
 *	prepare -> [unpack] -> [deps fetch -> deps install] -> start -> run -> harvest
 *	-> deliver -> report -> clean
 *
 * Each step before the run has a deadline (runner.c): one that something hangs in ends the attempt,
 * not the job.
 *
 * A sandbox may be alive from unpack to run. From there nothing moves on but
 * by the spawner's word that the tree is gone: whoever wants the job dead asks for a
 * kill and leaves a verdict for that moment.
 */
#ifndef LYCH_TOMB_JOB_JOB_H
#define LYCH_TOMB_JOB_JOB_H

#include "common/clock.h"
#include "common/proto.h"
#include "common/proto/spawn_proto.h"
#include "tomb/queue/queue.h"
#include <stdbool.h>

enum job_step {
	STEP_NEW,
	STEP_PREPARE,	   /* folder, downloads */
	STEP_UNPACK,	   /* the input archive, inside a sandbox */
	STEP_DEPS_FETCH,   /* in one that has the mirrors, and runs nothing fetched */
	STEP_DEPS_INSTALL, /* in one that reaches nothing */
	STEP_START,	   /* handed to the spawner, not yet running */
	STEP_RUN,
	STEP_HARVEST,
	STEP_DELIVER, /* artifacts and the rest of the output to the vessel */
	STEP_REPORT,  /* ack, fail or release, until there is a definite answer */
	STEP_CLEAN,
	STEP_DONE,
	STEP_MAX_
};

enum job_verdict {
	VERDICT_NONE,
	VERDICT_ACK,	   /* exit code 0 */
	VERDICT_FAIL,	   /* with a class */
	VERDICT_CANCELLED, /* reported by fail; the queue makes it cancelled */
	VERDICT_RELEASE,   /* graceful stop: the attempt is given back */
	VERDICT_DISCARD,   /* the lease is lost: say nothing, remove everything */
	VERDICT_REVOKED,   /* contained: say that the tree is dead, remove everything */
};

enum job_event_type {
	EVENT_BEGIN,
	EVENT_PREPARED,
	EVENT_TROUBLE, /* the tomb could not do its part: fail_class, retry, text */
	EVENT_STARTED, /* the four of the spawner */
	EVENT_REFUSED,
	EVENT_EXITED,
	EVENT_LATE,	 /* a step before the job's own run took too long: text */
	EVENT_UNSTARTED, /* asked to be killed before it was handed to the spawner */
	EVENT_HARVESTED,
	EVENT_DELIVERED,
	EVENT_ANSWER,
	EVENT_CLEANED,
	EVENT_OVERFLOW, /* more output than allowed */
	EVENT_CANCEL,
	EVENT_LEASE_LOST,     /* the queue said so */
	EVENT_LEASE_REVOKED,  /* likewise: the job was contained */
	EVENT_LEASE_DEADLINE, /* no answer of the queue in time */
	EVENT_SHUTDOWN,
	EVENT_SHUTDOWN_NOW, /* patience with what is past its end is over */
	EVENT_MAX_
};

struct job_event {
	enum job_event_type type;
	/* EVENT_TROUBLE; text: of EVENT_LATE, too, and of EVENT_EXITED what a program said
	 * that is none of the job's (NULL: nothing) */
	enum fail_class fail_class;
	bool retry;
	bool nothing_runs; /* in unpack or start: it was never handed to the spawner */
	bool not_begun;	   /* nothing of it ran and it is not its fault: given back */
	const char *text;
	const struct spawn_started *started;
	const struct spawn_refused *refused;
	const struct spawn_exited *exited;
	enum queue_answer answer;
};

enum job_action {
	ACT_PREPARE,
	ACT_UNPACK,
	ACT_DEPS_FETCH, /* place the files, fetch */
	ACT_DEPS_INSTALL,
	ACT_START,   /* place the files, run the job */
	ACT_RUNNING, /* tell the vessel */
	ACT_KILL,    /* with why and grace_ms */
	ACT_HARVEST,
	ACT_DELIVER,
	ACT_ABORT, /* stop every transfer of this job */
	ACT_ACK,
	ACT_FAIL,
	ACT_RELEASE,
	ACT_SECURITY, /* the answer was one that only a second speaker explains */
	ACT_CLEAN,
	ACT_MAX_
};

#define JOB_ACTIONS_MAX 4
struct job_actions {
	unsigned n;
	enum job_action list[JOB_ACTIONS_MAX];
	enum spawn_end kill_why;
	unsigned kill_grace_ms;
};

struct job {
	enum job_step step;
	enum job_verdict verdict;
	enum fail_class fail_class;
	bool retry;	/* of a failure that was the tomb's own */
	bool has_input; /* set before EVENT_BEGIN */
	bool has_deps;	/* likewise */
	bool killing;
	bool ran; /* the job's argv was executed */
	bool overflow;
	bool has_exited;
	bool has_refused;
	struct spawn_started started;
	struct spawn_refused refused; /* of the job or of what goes before it */
	struct spawn_exited exited;   /* of the job itself, not of what goes before it */
	char detail[SPAWN_TEXT_MAX + 64];
};

#define KILL_GRACE_MS 250u

void job_init(struct job *j, bool has_input, bool has_deps);
/* One event in, up to JOB_ACTIONS_MAX actions out. An event that does not fit the step
 * is ignored when it can arrive late, and is an assertion failure when it cannot. */
void job_step(struct job *j, const struct job_event *ev, struct job_actions *ret);
/* A process of this job may be alive. */
bool job_is_live(const struct job *j);
const char *job_step_name(enum job_step s);

#endif
