/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What nobody asks for and must happen: the fencing row, expired leases, old
 * jobs with their files, forgotten uploads, blobs and output that no job names.
 * Sees the database through queue.h, time through clock_ops and the loop.
 */
#ifndef LYCH_VESSEL_RECONCILE_H
#define LYCH_VESSEL_RECONCILE_H

#include "common/err.h"
#include "vessel/api/vessel.h"

struct reconcile;

/* After a start or an outage tombs still acknowledge what they finished meanwhile: until
 * then nobody names the artifacts that they uploaded. */
#define RECONCILE_SWEEP_USEC (600 * USEC_PER_SEC)

struct reconcile_config {
	/* The last process on this data directory (its lock is ours now, so it is dead);
	 * "" when there was none. Its row is taken over first. */
	struct uuid previous;
	/* Between the two: the name of this process is made durable. */
	int (*remember)(void *arg, struct err *err);
	usec_t sweep_after;	  /* the first sweep comes so long after that */
	void (*owned)(void *arg); /* once: the row is ours */
	void (*ended)(const struct err *why,
		      void *arg); /* stop: not ours, or never was */
	void *arg;
};

/* v->queue, blobs, output must be there. Runs from the loop. */
struct reconcile *reconcile_new(struct vessel *v, const struct reconcile_config *cfg);
void reconcile_free(struct reconcile *r);
/* Nothing is renewed or served any more: the row may be given back. */
void reconcile_stop(struct reconcile *r);
/* The database came up: beat at once. */
void reconcile_db_up(struct reconcile *r);

#endif
