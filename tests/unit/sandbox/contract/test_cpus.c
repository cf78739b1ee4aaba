/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/contract/cpus.h"

#include <criterion/criterion.h>
#include <unistd.h>

static cpu_set_t have;
static uint16_t jobs[CPU_SETSIZE];

/* Four CPUs, not from 0 and not in a row, as a cpuset may give them. */
static void setup(void)
{
	static const unsigned ours[] = {2, 3, 5, 9};

	CPU_ZERO(&have);
	for (unsigned i = 0; i < 4; i++)
		CPU_SET(ours[i], &have);
}

TestSuite(cpus, .init = setup);

static unsigned bits(const struct sbx_cpus *c)
{
	unsigned r = 0;

	for (unsigned i = 0; i < 16; i++)
		if (CPU_ISSET(i, &c->mine))
			r |= 1u << i;
	return r;
}

static unsigned choose(int here, unsigned wanted)
{
	struct sbx_cpus c;

	cpus_choose(&have, jobs, here, wanted, &c);
	cr_expect_eq(c.n, wanted);
	cr_expect_eq(CPU_COUNT(&c.mine), (int)wanted);
	return bits(&c);
}

Test(cpus, among_equals_the_one_that_we_are_on)
{
	cr_expect_eq(choose(5, 1), 1u << 5);
	cr_expect_eq(choose(9, 1), 1u << 9);
	cr_expect_eq(choose(9, 2), 1u << 9 | 1u << 2);
}

Test(cpus, the_fewest_jobs_go_first)
{
	jobs[5] = jobs[2] = 1;
	cr_expect_eq(choose(5, 1), 1u << 9);
	jobs[3] = jobs[9] = 2;
	cr_expect_eq(choose(3, 1), 1u << 5);
	cr_expect_eq(choose(3, 2), 1u << 3 | 1u << 5);
	jobs[2] = 0;
	cr_expect_eq(choose(3, 2), 1u << 9 | 1u << 2);
}

Test(cpus, one_that_is_not_ours_is_never_taken)
{
	/* Where nobody works: 0 has no jobs, but it is none of ours. */
	jobs[2] = jobs[3] = jobs[5] = jobs[9] = 7;
	cr_expect_eq(choose(0, 1), 1u << 2);
	cr_expect_eq(choose(-1, 3), 1u << 2 | 1u << 3 | 1u << 5);
}

Test(cpus, all_or_more_is_nothing_to_set)
{
	struct sbx_cpus c;

	for (unsigned wanted = 4; wanted <= 5; wanted++) {
		cpus_choose(&have, jobs, 2, wanted, &c);
		cr_expect_eq(c.n, 0);
	}
}

Test(cpus, what_is_taken_counts_until_it_is_given_back)
{
	struct sbx_cpus a, b;
	struct err err = ERR_INIT;
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t own, both, is;

	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	cr_assert_eq(cpus_take(1, &a, &err), 0);
	cr_assert_eq(cpus_take(1, &b, &err), 0);
	if (n < 2 || CPU_COUNT(&own) < 2) {
		cr_expect_eq(a.n, 0);
		return;
	}
	CPU_AND(&both, &a.mine, &b.mine);
	cr_expect_eq(CPU_COUNT(&both), 0, "two jobs on one CPU while another is free");
	both = a.mine;
	cpus_give(&a);
	cpus_give(&a); /* no second time */
	cr_assert_eq(cpus_take(1, &a, &err), 0);
	cr_expect(CPU_EQUAL(&both, &a.mine) || CPU_COUNT(&own) > 2);
	cr_assert_eq(cpus_pin(getpid(), &a, &is, &err), 0);
	cr_expect(CPU_EQUAL(&is, &a.mine));
	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	cr_expect(CPU_EQUAL(&own, &a.mine));
}
