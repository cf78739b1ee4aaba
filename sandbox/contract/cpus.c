/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * See cpus.h.
 */
#include "sandbox/contract/cpus.h"

#include <stdbool.h>

static uint16_t jobs_on[CPU_SETSIZE];

/* Neighbours, in a ring, as their caches are nearest. */
static void take_ring(const uint16_t *ring, unsigned n, unsigned first, unsigned wanted,
		      struct sbx_cpus *ret)
{
	CPU_ZERO(&ret->mine);
	for (unsigned i = 0; i < wanted; i++)
		CPU_SET(ring[(first + i) % n], &ret->mine);
	ret->n = wanted;
}

void cpus_choose(const cpu_set_t *have, const uint16_t jobs[CPU_SETSIZE], int here,
		 unsigned wanted, struct sbx_cpus *ret)
{
	uint16_t ring[CPU_SETSIZE];
	unsigned all = (unsigned)CPU_COUNT(have), n = 0;
	unsigned start = 0, best = 0, least = UINT32_MAX;

	for (unsigned cpu = 0; n < all && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, have))
			continue;
		if ((int)cpu == here)
			start = n;
		ring[n++] = (uint16_t)cpu;
	}
	ret->n = 0;
	if (wanted >= n)
		return;
	for (unsigned i = 0; i < n; i++) {
		unsigned first = (start + i) % n, sum = 0;

		for (unsigned k = 0; k < wanted; k++)
			sum += jobs[ring[(first + k) % n]];
		if (sum < least) {
			least = sum;
			best = first;
		}
	}
	take_ring(ring, n, best, wanted, ret);
}

static void count(const struct sbx_cpus *c, bool more)
{
	unsigned left = c->n;

	for (unsigned cpu = 0; left && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &c->mine))
			continue;
		left--;
		jobs_on[cpu] = (uint16_t)(jobs_on[cpu] + (more ? 1 : -1));
	}
}

int cpus_take(unsigned wanted, struct sbx_cpus *ret, struct err *err)
{
	cpu_set_t have;

	if (sched_getaffinity(0, sizeof(have), &have) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT, "cpus: sched_getaffinity");
	cpus_choose(&have, jobs_on, sched_getcpu(), wanted, ret);
	count(ret, true);
	return 0;
}

void cpus_give(struct sbx_cpus *c)
{
	count(c, false);
	c->n = 0;
}

int cpus_pin(pid_t pid, const struct sbx_cpus *c, cpu_set_t *ret, struct err *err)
{
	if (c->n && sched_setaffinity(pid, sizeof(c->mine), &c->mine) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT, "cpus: sched_setaffinity");
	CPU_ZERO(ret);
	if (sched_getaffinity(pid, sizeof(*ret), ret) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT, "cpus: sched_getaffinity");
	if (c->n && !CPU_EQUAL(ret, &c->mine))
		return err_set_id(err, ERRID_SANDBOX_LIMIT,
				  "cpus: the affinity did not take");
	return 0;
}
