/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as a line of blocks. */
#include "cli/ui/spark.h"

#include "common/cleanup.h"
#include <criterion/criterion.h>

TestSuite(spark, .timeout = 20);

static void draws(const uint64_t *v, size_t n, uint64_t top, const char *wanted)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, 4096);
	spark_line(v, n, top, &b);
	cr_assert_str_eq(buf_str(&b), wanted);
}

Test(spark, one_block_a_number_by_its_share_of_the_top)
{
	const uint64_t steps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, UINT64_MAX};

	draws(steps, 11, 8, "▁▂▃▄▅▆▇████");
	draws(steps, 0, 8, "");
	draws(steps, 2, 0, "██");
	draws(steps + 10, 1, UINT64_MAX, "█");
}
