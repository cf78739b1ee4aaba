/* SPDX-License-Identifier: Apache-2.0 */
/* When the meter looks again. */
#include "sandbox/keeper/pace.h"

#include <criterion/criterion.h>

#define MIB ((uint64_t)1 << 20)
#define LIMIT (128 * MIB)

/* One look of that many milliseconds that began at a second, 50 ms after the last whole one. */
static usec_t rest_after(uint64_t was, struct use_sum use, usec_t ms)
{
	struct pace p = {.was = was, .at = USEC_PER_SEC - 50 * USEC_PER_MSEC};

	return pace_rest_usec(&p, &use, LIMIT, USEC_PER_SEC,
			      USEC_PER_SEC + ms * USEC_PER_MSEC) /
	       USEC_PER_MSEC;
}

Test(pace, what_there_is_room_for_is_not_filled_meanwhile)
{
	struct use_sum use = {.memory_bytes = 48 * MIB, .settled = true};

	cr_expect_eq(rest_after(use.memory_bytes, use, 0), 20);
	use.memory_bytes = LIMIT - MIB;
	cr_expect_eq(rest_after(use.memory_bytes, use, 0), 5);
	use.memory_bytes = 0;
	use.watch = true;
	cr_expect_eq(rest_after(0, use, 0), 10);
}

Test(pace, looking_is_a_small_part_of_the_time)
{
	struct use_sum use = {.memory_bytes = 48 * MIB, .settled = true};

	cr_expect_eq(rest_after(use.memory_bytes, use, 6), 60);
	cr_expect_eq(rest_after(use.memory_bytes, use, 60), 250);
}

/* A hundred processes with sockets: a look was 6 ms of a busy machine's, and in the 60 ms after it
 * they filled 300 MiB. */
Test(pace, one_that_is_about_to_pass_its_limit_is_looked_at_soon)
{
	struct use_sum use = {.memory_bytes = 64 * MIB, .settled = true};

	cr_expect_eq(rest_after(0, use, 6), 24);
	use.memory_bytes = 96 * MIB;
	cr_expect_eq(rest_after(0, use, 6), 8);
	/* It would take seconds. */
	use.memory_bytes = 65 * MIB;
	cr_expect_eq(rest_after(64 * MIB, use, 6), 60);
}

Test(pace, a_round_that_is_not_whole_goes_on_and_its_cost_counts)
{
	struct pace p = {.at = 0};
	struct use_sum use = {.settled = true, .going = true};

	cr_expect_eq(pace_rest_usec(&p, &use, LIMIT, 0, 4000), PACE_MIN_USEC);
	use.hurry = true;
	cr_expect_eq(pace_rest_usec(&p, &use, LIMIT, 9000, 13000), 0);
	use = (struct use_sum){.settled = true};
	cr_expect_eq(pace_rest_usec(&p, &use, LIMIT, 13000, 15000), 100 * USEC_PER_MSEC);
	cr_expect_eq(p.cost, 0);
}
