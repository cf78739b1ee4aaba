/* SPDX-License-Identifier: Apache-2.0 */
/* Who is called stuck, and who is not. */
#include "common/watch.h"

#include <criterion/criterion.h>

#define BEGIN (1000 * USEC_PER_SEC)

TestSuite(watch, .timeout = 30);

Test(watch, silence_of_ten_seconds_is_a_hang_and_a_word_ends_it)
{
	struct watch w;
	usec_t now = BEGIN;

	watch_begin(&w, now, WATCH_SILENCE_USEC);
	for (int i = 0; i < 9; i++)
		cr_assert_not(watch_look(&w, now += WATCH_LOOK_USEC, false));
	watch_heard(&w);
	for (int i = 0; i < 9; i++)
		cr_assert_not(watch_look(&w, now += WATCH_LOOK_USEC, false));
	cr_assert(watch_look(&w, now += WATCH_LOOK_USEC, false));
}

Test(watch, time_in_which_nobody_looked_counts_as_one_look)
{
	struct watch w;
	usec_t now = BEGIN;

	watch_begin(&w, now, WATCH_SILENCE_USEC);
	/* The listener was stopped, or got no processor: each gap is one look. */
	for (int i = 0; i < 9; i++)
		cr_assert_not(watch_look(&w, now += 3600 * USEC_PER_SEC, false));
	cr_assert(watch_look(&w, now += 3600 * USEC_PER_SEC, false));
}

Test(watch, who_hung_up_has_two_looks_left)
{
	struct watch w;
	usec_t now = BEGIN;

	watch_begin(&w, now, WATCH_SILENCE_USEC);
	watch_hung_up(&w);
	cr_assert_not(watch_look(&w, now += WATCH_LOOK_USEC, false));
	cr_assert(watch_look(&w, now += WATCH_LOOK_USEC, false));
	/* nobody is watched before it has begun */
	watch_end(&w);
	watch_hung_up(&w);
	cr_assert_not(watch_look(&w, now += 3600 * USEC_PER_SEC, false));
}

Test(watch, what_is_excused_does_not_count)
{
	struct watch w;
	usec_t now = BEGIN;

	watch_begin(&w, now, WATCH_SILENCE_USEC);
	for (int i = 0; i < 99; i++)
		cr_assert_not(watch_look(&w, now += WATCH_LOOK_USEC, i % 11 != 0));
}

Test(watch, many_looks_are_worth_no_more_than_the_time_they_took)
{
	struct watch w;
	usec_t now = BEGIN;

	watch_begin(&w, now, WATCH_SILENCE_USEC);
	for (int i = 0; i < 9999; i++)
		cr_assert_not(watch_look(&w, now += USEC_PER_MSEC, false));
	cr_assert(watch_look(&w, now += USEC_PER_MSEC, false));
}

Test(watch, who_is_not_watched_is_never_stuck)
{
	struct watch w = {0};

	cr_assert_not(watch_look(&w, BEGIN, false));
	watch_begin(&w, BEGIN, WATCH_SILENCE_USEC);
	watch_end(&w);
	cr_assert_not(watch_look(&w, BEGIN + 3600 * USEC_PER_SEC, false));
}
