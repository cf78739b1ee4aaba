/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * What a job asked for in shared mappings. One without a descriptor, or of /dev/zero, is an object
 * of just the length that was asked for: no descriptor of it can be had, so it never grows, and once
 * most of it is unmapped nothing tells how long it was. The sum of what was asked for bounds what
 * all of them hold, the longest what one does.
 */
#ifndef LYCH_SANDBOX_CONTRACT_SHARED_MAPS_H
#define LYCH_SANDBOX_CONTRACT_SHARED_MAPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The keeper writes, the meter reads. */
struct shared_maps {
	_Atomic uint64_t n, bytes,
		longest; /* never less; bytes: of all, UINT64_MAX at most */
	/* Pages were made huge ones: an object may have one that reaches beyond its end. */
	_Atomic bool huge;
};

/* Shorter ones are not told: as many as there are, each may be so long. */
#define SHARED_MAPS_SMALL ((uint64_t)128 << 10)

/* One more is asked for; before the kernel is let do it. */
void shared_maps_add(struct shared_maps *s, uint64_t length);

/* What the objects can hold at most, bytes: one of them; all that were told together, and each of those that
 * were not. */
struct shared_most {
	uint64_t each, all, small;
};
/* UINT64_MAX at most. */
uint64_t shared_maps_add_up(uint64_t a, uint64_t b);
struct shared_most shared_maps_most(const struct shared_maps *s);

#endif
