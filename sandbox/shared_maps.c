/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in the keeper, who counts, and in the meter, who asks: see shared_maps.h. */
#include "sandbox/shared_maps.h"

#include "sandbox/meminfo.h"

#define PAGE_BYTES ((uint64_t)4096)
#define HUGE_PAGE_BYTES ((uint64_t)2 << 20)

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void shared_maps_add(struct shared_maps *s, uint64_t length)
{
	uint64_t bytes = add(length, PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

	atomic_store(&s->n, add(atomic_load(&s->n), 1));
	atomic_store(&s->bytes, add(atomic_load(&s->bytes), bytes));
	if (bytes > atomic_load(&s->longest))
		atomic_store(&s->longest, bytes);
}

struct shared_most shared_maps_most(const struct shared_maps *s)
{
	struct shared_most most = {atomic_load(&s->longest), atomic_load(&s->bytes)};
	uint64_t n = atomic_load(&s->n);

	if (!atomic_load(&s->huge) && !meminfo_has_huge_shmem())
		return most;
	most.each = add(most.each, HUGE_PAGE_BYTES);
	most.all = add(most.all, n > UINT64_MAX / HUGE_PAGE_BYTES ? UINT64_MAX
								  : n * HUGE_PAGE_BYTES);
	return most;
}
