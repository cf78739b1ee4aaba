/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Jobs that somebody waits for (`lych run`): when that client is gone, the job is cancelled.
 *
 * A client that waits has a stream of the job's events open, and says in its request that it
 * attends. ATTENDED_GONE_USEC after the last such stream of a job has ended, or after the job was
 * submitted and none has begun, it is abandoned. After a start of the vessel the clients need a
 * while to come back: jobs of which nobody was heard since are abandoned ATTENDED_BACK_USEC
 * later, and never what ran while there was no vessel that could be asked.
 *
 * Which jobs are attended is in the database (lych.job.attended): of any other nothing
 * comes here. So is the order of things: a job that ends first, or was submitted once more by
 * somebody who does not wait for it, is left alone.
 */
#ifndef LYCH_VESSEL_API_ATTENDED_H
#define LYCH_VESSEL_API_ATTENDED_H

#include "common/id.h"
#include "common/net/loop.h"
#include "vessel/db/queue.h"

#define ATTENDED_GONE_USEC (10 * USEC_PER_SEC)
#define ATTENDED_BACK_USEC (60 * USEC_PER_SEC)

struct attended;

struct attended_world {
	struct loop *loop;
	struct queue *queue;
	/* a job was abandoned, which cancelled it */
	void (*on_abandoned)(job_id_t job, void *arg);
	void *arg;
};

struct attended *attended_new(const struct attended_world *w);
void attended_free(struct attended *a); /* NULL is fine */
/* The database is ours: from now on clients can come back. */
void attended_begin(struct attended *a);
/* Somebody who waits for it has submitted the job, or asks for its stream. */
void attended_seen(struct attended *a, job_id_t job);
/* Such a stream begins; ends. */
void attended_enter(struct attended *a, job_id_t job);
void attended_leave(struct attended *a, job_id_t job);
/* Its end was told. */
void attended_over(struct attended *a, job_id_t job);

#endif
