/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is: order, equal shares, and nobody who waits for ever. */
#include "vessel/broker/gate/turns.h"

#include <criterion/criterion.h>

TestSuite(turns, .timeout = 60);

/* The first of those that wait, by what turns.h says. */
static unsigned next_of(const struct turns_line *l, const struct turns_account *a,
			unsigned n)
{
	unsigned best = n;

	for (unsigned i = 0; i < n; i++)
		if (a[i].waiting > 0 &&
		    (best == n || turns_is_before(l, &a[i], &a[best])))
			best = i;
	cr_assert_lt(best, n);
	return best;
}

static unsigned serve(struct turns_line *l, struct turns_account *a, unsigned n,
		      uint64_t cost)
{
	unsigned i = next_of(l, a, n);

	turns_serve(l, &a[i], cost);
	return i;
}

Test(turns, who_came_first_is_first_and_who_had_least_is_next)
{
	struct turns_line l = {0};
	struct turns_account a[3] = {{0}};

	for (unsigned i = 0; i < 3; i++)
		turns_join(&l, &a[i]);
	cr_expect_eq(serve(&l, a, 3, 100), 0u);
	cr_expect_eq(serve(&l, a, 3, 10), 1u);
	cr_expect_eq(serve(&l, a, 3, 10), 2u);
	cr_expect_eq(serve(&l, a, 3, 10), 1u);
	turns_leave(&a[1]);
	turns_leave(&a[2]);
	cr_expect_eq(serve(&l, a, 3, 10), 0u);
}

Test(turns, to_be_away_earns_nothing)
{
	struct turns_line l = {0};
	struct turns_account a[2] = {{0}};

	turns_join(&l, &a[0]);
	for (int i = 0; i < 40; i++)
		(void)serve(&l, a, 1, 100);
	turns_join(&l, &a[1]);
	cr_expect_eq(a[1].used, 3900u);
	cr_expect_eq(serve(&l, a, 2, 100), 1u);
	cr_expect_eq(serve(&l, a, 2, 100), 0u);
	/* nor does it to come back */
	turns_leave(&a[1]);
	turns_join(&l, &a[1]);
	cr_expect_eq(a[1].used, 4000u);
}

/* Large ones and small ones: of two that always wait, none gets more than one turn ahead. */
Test(turns, shares_are_equal_whatever_a_turn_costs)
{
	static const uint64_t cost[2] = {4 << 20, 5000};
	struct turns_line l = {0};
	struct turns_account a[2] = {{0}};
	unsigned turns[2] = {0, 0};

	turns_join(&l, &a[0]);
	turns_join(&l, &a[1]);
	for (int i = 0; i < 10000; i++) {
		unsigned k = next_of(&l, a, 2);

		turns_serve(&l, &a[k], cost[k]);
		turns[k]++;
	}
	/* the one with large ones comes by the bound at least, and else by its bytes */
	cr_expect_geq(turns[0], 10000u / (TURNS_PASSED_MAX + 1));
	cr_expect_leq(turns[0], 10000u / TURNS_PASSED_MAX + 1);
	cr_expect_eq(turns[0] + turns[1], 10000u);
}

/* There is always a new one, that had nothing: who waits has its turn all the same. */
Test(turns, new_ones_for_ever_starve_nobody)
{
	struct turns_line l = {0};
	struct turns_account old = {0}, fresh;
	unsigned n;

	turns_join(&l, &old);
	turns_serve(&l, &old, 1 << 30);
	for (int round = 0; round < 100; round++) {
		for (n = 0; n <= TURNS_PASSED_MAX; n++) {
			fresh = (struct turns_account){0};
			turns_join(&l, &fresh);
			if (!turns_is_before(&l, &fresh, &old))
				break;
			turns_serve(&l, &fresh, 10);
		}
		cr_assert_eq(n, TURNS_PASSED_MAX, "round %d: %u", round, n);
		turns_serve(&l, &old, 1 << 30);
		/* that it was passed over makes it no measure for the others */
		cr_assert_lt(l.at, (uint64_t)1 << 20);
	}
}

/* Of many that were passed over, each has its turn before one has two. */
Test(turns, all_who_wait_long_take_turns)
{
	enum { N = 200 };
	struct turns_line l = {0};
	struct turns_account a[N] = {{0}};
	unsigned turns[N] = {0};

	for (unsigned i = 0; i < N; i++) {
		a[i].used = (uint64_t)i * 1000000;
		turns_join(&l, &a[i]);
	}
	for (unsigned i = 0; i < 3 * N + TURNS_PASSED_MAX; i++)
		turns[serve(&l, a, N, 1)]++;
	for (unsigned i = 0; i < N; i++)
		cr_expect_geq(turns[i], 1u, "%u has waited for %u turns", i,
			      3 * N + TURNS_PASSED_MAX);
}
