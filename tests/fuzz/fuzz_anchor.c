/* SPDX-License-Identifier: Apache-2.0 */
/* A line of an anchor, any bytes: what is taken is written again as the same bytes. */
#include "vessel/scribe/anchor_line.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seal s;
	struct buf b;

	if (anchor_line_parse((const char *)data, size, &s, NULL) < 0)
		return 0;
	buf_init(&b, ANCHOR_LINE_MAX);
	anchor_line_write(&b, &s);
	if (!buf_ok(&b) || b.len != size + 1 || memcmp(b.data, data, size) != 0)
		abort();
	buf_done(&b);
	return 0;
}
