/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * The keeper counts, the meter asks: see shared_maps.h.
 */
#include "sandbox/contract/shared_maps.h"

#include "sandbox/contract/meminfo.h"

#define PAGE_BYTES ((uint64_t)4096)
#define HUGE_PAGE_BYTES ((uint64_t)2 << 20)

uint64_t shared_maps_add_up(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void shared_maps_add(struct shared_maps *s, uint64_t length)
{
	uint64_t bytes = shared_maps_add_up(length, PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

	atomic_store(&s->n, shared_maps_add_up(atomic_load(&s->n), 1));
	atomic_store(&s->bytes, shared_maps_add_up(atomic_load(&s->bytes), bytes));
	if (bytes > atomic_load(&s->longest))
		atomic_store(&s->longest, bytes);
}

struct shared_most shared_maps_most(const struct shared_maps *s)
{
	bool huge = atomic_load(&s->huge) || meminfo_has_huge_shmem();
	uint64_t more = huge ? HUGE_PAGE_BYTES : 0, n = atomic_load(&s->n);
	uint64_t longest = atomic_load(&s->longest);

	if (longest < SHARED_MAPS_SMALL)
		longest = SHARED_MAPS_SMALL;
	if (huge && n > UINT64_MAX / HUGE_PAGE_BYTES)
		n = UINT64_MAX / HUGE_PAGE_BYTES;
	return (struct shared_most){
		.each = shared_maps_add_up(longest, more),
		.all = shared_maps_add_up(atomic_load(&s->bytes), n * more),
		.small = SHARED_MAPS_SMALL + more,
	};
}
