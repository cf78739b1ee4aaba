/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The daemons that died while they read what a job sent, or what came back for it
 * (reading.h): each death is an event of the audit log that says whose that was. The second
 * for one job, in whatever attempt, is a signal for containment, and ends the job.
 *
 * The book of them is a file of the data directory, so that it outlives the vessel, which may
 * be who died. What is still to be told or ended is tried again until it is done, first the
 * log, then the job. The book is short: who comes when it is full takes the place of the
 * oldest that is done with.
 */
#ifndef LYCH_VESSEL_BROKER_DEATHS_H
#define LYCH_VESSEL_BROKER_DEATHS_H

#include "common/net/loop.h"
#include "common/worker/reading.h"
#include "vessel/audit/event.h"
#include "vessel/db/queue.h"

#define DEATHS_FILE "deaths"
#define DEATHS_MAX 64u
/* So many, and the job is ended. */
#define DEATHS_ENOUGH 2u

struct audit_wait;
struct deaths;

struct deaths_ops {
	void *env;
	/* As audit_before(): on disk, or why not. */
	struct audit_wait *(*before)(void *env, const struct audit_event *e,
				     queue_done *done, void *arg, struct err *err);
	void (*forget)(struct audit_wait *w);
	/* Revokes and quarantines; a job that is so already, or gone, is done with. */
	void (*contain)(void *env, job_id_t job, const char *reason, queue_done *done,
			void *arg);
	void (*signal)(void *env); /* counts */
};

struct deaths_config {
	struct loop *loop;
	const struct clock_ops *clock;
	int data_fd; /* borrowed */
	struct deaths_ops ops;
};

/* A book that cannot be read as one is begun anew. */
MUST_CHECK int deaths_new(const struct deaths_config *cfg, struct deaths **ret,
			  struct err *err);
/* An answer of contain that still comes finds nobody. NULL is fine. */
void deaths_free(struct deaths *d);
/* Notes of this installation are written under it. */
uint64_t deaths_key(const struct deaths *d);
/* daemon: "vessel", or an egress worker's name. */
void deaths_found(struct deaths *d, const char *daemon, const struct reading_note *note);
/* The log and the database may be there now. */
void deaths_hint(struct deaths *d);

struct vessel;
/* v->deaths and v->reading, whose file lies in api_dir; what the last vessel read when it
 * died is counted. v has queue, audit, dispatch, and the data directory's lock. */
MUST_CHECK int deaths_open(struct vessel *v, const char *api_dir, struct err *err);
void deaths_close(struct vessel *v);

#endif
