/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fan-out of job changes. A hint (NOTIFY) or, while somebody listens, a timer
 * leads to one query for what changed since the last sequence number; each
 * change goes to the subscribers of that job. Hints may be lost and changes may
 * become visible out of order: the timer looks a little further back.
 *
 * Sees the database through queue.h and time through the loop only.
 */
#ifndef LYCH_VESSEL_EVENTS_H
#define LYCH_VESSEL_EVENTS_H

#include "common/id.h"
#include "common/net/loop.h"
#include "vessel/queue.h"
#include <stddef.h>

struct events;
struct events_sub;

struct events_callbacks {
	/* A subscriber may end its own subscription inside these, nobody else's. */
	void (*changed)(const struct queue_job *j, void *arg);
	void (*output)(void *arg); /* more output of this job is stored */
};

struct events *events_new(struct loop *l);
void events_free(struct events *e);
/* The queue is made after the fan-out, since its hints come here. */
void events_set_queue(struct events *e, struct queue *q);

struct events_sub *events_subscribe(struct events *e, job_id_t job,
				    const struct events_callbacks *cb, void *arg);
void events_unsubscribe(struct events_sub *s);
/* The subscriber has seen the job at this change_seq: older changes are not told. */
void events_seen(struct events_sub *s, int64_t change_seq);

void events_hint(struct events *e);
void events_output(struct events *e, job_id_t job);
size_t events_subscribers(const struct events *e);

#endif
