/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Fan-out of job changes. What is kept is a state, not a stream: for each subscriber
 * the version of its job that it has seen. A hint (NOTIFY) or, while somebody listens,
 * a timer leads to one question about all of them, which brings the jobs that are at
 * another version by now. So nothing can fall between two looks, whatever is lost, late
 * or in another order: who has seen less than there is, is told at the next look.
 *
 * A subscriber whose first version is not known yet (its own question is under way) is
 * asked for as soon as it has said events_seen().
 *
 * Sees the database through queue.h and time through the loop only.
 */
#ifndef LYCH_VESSEL_API_EVENTS_H
#define LYCH_VESSEL_API_EVENTS_H

#include "common/id.h"
#include "common/net/loop.h"
#include "vessel/db/queue.h"
#include <stddef.h>

struct events;
struct events_sub;

struct events_callbacks {
	/* A subscriber may end its own subscription inside these, nobody else's. */
	void (*changed)(const struct queue_job *j, void *arg);
	void (*output)(void *arg); /* more output of this job is stored */
	void (*gone)(void *arg);   /* the job is no more; told until it unsubscribes */
};

struct events *events_new(struct loop *l);
void events_free(struct events *e);
/* The queue is made after the fan-out, since its hints come here. */
void events_set_queue(struct events *e, struct queue *q);

struct events_sub *events_subscribe(struct events *e, job_id_t job,
				    const struct events_callbacks *cb, void *arg);
void events_unsubscribe(struct events_sub *s);
/* The subscriber has seen the job at this version: it is told of later ones. */
void events_seen(struct events_sub *s, int64_t version);

void events_hint(struct events *e);
void events_output(struct events *e, job_id_t job);
size_t events_subscribers(const struct events *e);

#endif
