/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * Keepers of which nothing more is wanted: their jobs' ends were told, or will be when a lost one
 * is proved to be gone. The kernel takes its time over a namespace, and a keeper may be held
 * longer than its job, by another's lock: the spawner waits for none of them.
 */
#ifndef LYCH_SANDBOX_SPAWNER_ENDINGS_H
#define LYCH_SANDBOX_SPAWNER_ENDINGS_H

#include "sandbox/contract/sandbox.h"

struct endings {
	unsigned n, n_owed;
	struct ending {
		struct keeper keeper;
		bool owed; /* the tomb is to be told, when it is over */
		uint64_t handle;
	} all[KEEPERS_MAX];
};

/* Takes the keeper over. */
void endings_add(struct endings *e, const struct keeper *k);
/* ... one whose socket ended without a report, and whose job's end is still to be told. */
void endings_add_lost(struct endings *e, const struct keeper *k, uint64_t handle);
/* Is all[i] over? It is taken out then (the last takes its place); *ret_owed: tell *ret_handle. */
MUST_CHECK bool endings_step(struct endings *e, unsigned i, bool *ret_owed,
			     uint64_t *ret_handle);
/* When to step those that have no event to tell of it; USEC_INFINITY: none. */
usec_t endings_next(const struct endings *e);
/* Steps all until they are over, but not longer than this. */
void endings_wait(struct endings *e, usec_t usec);

#endif
