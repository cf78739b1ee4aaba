/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job asked for in shared mappings. One without a descriptor, or of /dev/zero, is an object
 * of just the length that was asked for: no descriptor of it can be had, so it never grows, and once
 * most of it is unmapped nothing tells how long it was. The sum of what was asked for bounds what
 * all of them hold, the longest what one does.
 */
#ifndef LYCH_SANDBOX_SHARED_MAPS_H
#define LYCH_SANDBOX_SHARED_MAPS_H

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

/* One more is asked for; before the kernel is let do it. */
void shared_maps_add(struct shared_maps *s, uint64_t length);

/* What the objects can hold at most, bytes. */
struct shared_most {
	uint64_t each, all;
};
struct shared_most shared_maps_most(const struct shared_maps *s);

#endif
