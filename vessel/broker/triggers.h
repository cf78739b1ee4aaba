/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Containment that begins by itself: a signal that codex.yaml takes for enough (common/conf/containment.h)
 * contains its job as a person does, and what follows is the same (containments.h). In the log it is an actor of
 * its own, "trigger:NAME", and the reason of the job begins with TRIGGER_REASON, which no person's may.
 *
 * The call is tried again until the database has taken it. A vessel that is killed before that has refused the
 * request by then; what it saw is in the log, and the job's next such request contains it.
 */
#ifndef LYCH_VESSEL_BROKER_TRIGGERS_H
#define LYCH_VESSEL_BROKER_TRIGGERS_H

#include "common/conf/containment.h"
#include "common/jsonw.h"
#include "vessel/db/queue.h"

#define TRIGGER_REASON "trigger "

struct triggers;
struct vessel;

/* v has loop, conf, queue, audit and containments by the first pull. */
struct triggers *triggers_new(struct vessel *v);
/* Behind the queue, as containments_free(). NULL is fine. */
void triggers_free(struct triggers *t);
/* why: one line without a byte of the job's. What is found is in the log already. */
void triggers_pull(struct triggers *t, enum conf_trigger which,
		   const struct queue_lease *l, const char *why);
/* Of each trigger what it does, and how often it was pulled since the vessel began, as an array. */
void triggers_write(const struct triggers *t, struct jsonw *w);

#endif
