/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/progress.h"

#include <criterion/criterion.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

Test(progress, how_far_and_how_long_still)
{
	static const struct {
		uint64_t done, total;
		bool at_most;
		usec_t took;
		const char *text;
	} rows[] = {
		{12 * MIB, 40 * MIB, true, 3 * USEC_PER_SEC / 2,
		 "x: 12.0 MiB of at most 40.0 MiB, 8.0 MiB/s, 3.0s left"},
		{12 * MIB, 40 * MIB, false, 3 * USEC_PER_SEC / 2,
		 "x: 12.0 MiB of 40.0 MiB, 8.0 MiB/s, 3.0s left"},
		{MIB, 7201 * MIB, false, USEC_PER_SEC,
		 "x: 1.0 MiB of 7.0 GiB, 1.0 MiB/s, 2h00m left"},
		{40 * MIB, 40 * MIB, false, 10 * USEC_PER_SEC,
		 "x: 40.0 MiB of 40.0 MiB, 4.0 MiB/s, 0s left"},
		/* nobody knows, or it was wrong */
		{12 * MIB, 0, false, 2 * USEC_PER_SEC, "x: 12.0 MiB, 6.0 MiB/s"},
		{41 * MIB, 40 * MIB, true, 10 * USEC_PER_SEC, "x: 41.0 MiB, 4.1 MiB/s"},
		/* nothing yet: no time can be told */
		{0, 40 * MIB, false, 9 * USEC_PER_SEC, "x: 0 B of 40.0 MiB, 0 B/s"},
		{5, 40 * MIB, false, 0, "x: 5 B of 40.0 MiB, 0 B/s"},
		{UINT64_MAX / 2, UINT64_MAX, true, 1, NULL},
		{1, UINT64_MAX, true, UINT64_MAX, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[PROGRESS_TEXT_SIZE];

		progress_text("x", rows[i].done, rows[i].total, rows[i].at_most,
			      rows[i].took, text);
		if (rows[i].text)
			cr_expect_str_eq(text, rows[i].text, "%zu: %s", i, text);
	}
}

/* Where stderr is no terminal nothing is written, whatever comes in which order. */
Test(progress, a_pipe_sees_nothing_of_it)
{
	progress_add(5);
	progress_hide();
	progress_begin("x", 10, false, false);
	progress_add(UINT64_MAX);
	progress_begin("y", 0, false, true);
	progress_end();
	progress_end();
	cr_expect_eq(progress_weigh("/"), 0, "and nothing is weighed");
}
