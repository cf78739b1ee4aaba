/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See spark.h.
 */
#include "cli/ui/spark.h"

#include "common/attr.h"

void spark_line(const uint64_t *v, size_t n, uint64_t top, struct buf *out)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	const size_t last = ARRAY_SIZE(blocks) - 1;

	for (size_t i = 0; i < n; i++) {
		size_t at = last;

		if (top && v[i] < top)
			at = (size_t)((double)v[i] / (double)top * (double)(last + 1));
		buf_adds(out, blocks[at < last ? at : last]);
	}
}
