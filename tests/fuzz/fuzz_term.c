/* SPDX-License-Identifier: Apache-2.0 */
/* A job's bytes on a terminal: whatever comes in, only colours leave with an ESC. */
#include "cli/render.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct term_filter f = {0};
	struct buf out;

	buf_init(&out, size * 8 + 64);
	term_filter(&f, data, size, &out);
	term_filter_end(&f, &out);
	assert(buf_ok(&out));
	for (size_t i = 0; i < out.len; i++) {
		unsigned char c = (unsigned char)out.data[i];

		if (c != 0x1b) {
			assert(c >= 0x20 || (c >= 7 && c <= 10) || c == 13);
			continue;
		}
		assert(out.data[++i] == '[');
		while (strchr("0123456789;:", out.data[i + 1]) && out.data[i + 1])
			i++;
		assert(out.data[++i] == 'm');
	}
	buf_reset(&out);
	render_escape(&out, (const char *)data, size, 0);
	for (size_t i = 0; i < out.len; i++)
		assert((unsigned char)out.data[i] >= 0x20);
	buf_done(&out);
	return 0;
}
