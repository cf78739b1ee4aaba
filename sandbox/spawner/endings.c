/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
 * What it does not wait for.
 */
#include "sandbox/spawner/endings.h"

#include "common/attr.h"

#include <assert.h>
#include <poll.h>

static void add(struct endings *e, const struct keeper *k, bool owed, uint64_t handle)
{
	/* keeper_start() makes no more than there is room for here. */
	assert(e->n < ARRAY_SIZE(e->all));
	e->all[e->n] = (struct ending){.keeper = *k, .owed = owed, .handle = handle};
	e->n_owed += owed;
	keeper_end(&e->all[e->n++].keeper, owed);
}

void endings_add(struct endings *e, const struct keeper *k)
{
	add(e, k, false, 0);
}

void endings_add_lost(struct endings *e, const struct keeper *k, uint64_t handle)
{
	add(e, k, true, handle);
}

bool endings_step(struct endings *e, unsigned i, bool *ret_owed, uint64_t *ret_handle)
{
	if (!keeper_is_over(&e->all[i].keeper))
		return false;
	*ret_owed = e->all[i].owed;
	*ret_handle = e->all[i].handle;
	e->n_owed -= e->all[i].owed;
	e->all[i] = e->all[--e->n];
	return true;
}

usec_t endings_next(const struct endings *e)
{
	for (unsigned i = 0; i < e->n; i++)
		if (e->all[i].keeper.lost)
			return clock_boot_usec() + STRAYS_MSEC * USEC_PER_MSEC;
	return USEC_INFINITY;
}

void endings_wait(struct endings *e, usec_t usec)
{
	usec_t end = clock_boot_usec() + usec;

	while (e->n && clock_boot_usec() < end) {
		uint64_t handle;
		bool owed;

		for (unsigned i = e->n; i-- > 0;)
			(void)!endings_step(e, i, &owed, &handle);
		if (e->n)
			(void)poll(NULL, 0, STRAYS_MSEC);
	}
}
