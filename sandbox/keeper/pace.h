/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the meter.
 * When the meter looks again: before what there is room for can have been filled, and not so soon
 * that looking takes a large part of the time, unless the job is about to pass its limit.
 */
#ifndef LYCH_SANDBOX_KEEPER_PACE_H
#define LYCH_SANDBOX_KEEPER_PACE_H

#include "sandbox/keeper/use.h"

#include "common/clock.h"

#define PACE_MIN_USEC (5 * USEC_PER_MSEC)

struct pace {
	usec_t cost;  /* of the looks since the last whole one */
	uint64_t was; /* memory at the last whole look ... */
	usec_t at;    /* ... and when that was: the job's beginning, before the first */
};

/* How long it takes at least to fill what is left. */
usec_t pace_room_usec(uint64_t is, uint64_t limit);
/* After a look that began at start and is over now; from now on. */
usec_t pace_rest_usec(struct pace *p, const struct use_sum *use, uint64_t limit,
		      usec_t start, usec_t now);

#endif
