/* SPDX-License-Identifier: Apache-2.0 */
/* A job's bytes on a terminal: whatever comes in, nothing leaves that moves the cursor back,
 * erases or hides, and only known renditions leave with an ESC. */
#include "cli/ui/log_filter.h"
#include "cli/ui/render.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The numbers up to 'm'; the place of the m. */
static size_t check_sgr(const char *s, size_t i)
{
	unsigned skip = 0;

	for (;;) {
		unsigned n = 0, digits = 0;

		for (; s[i] >= '0' && s[i] <= '9'; i++, digits++)
			n = n * 10 + (unsigned)(s[i] - '0');
		assert(digits >= 1 && digits <= 3 && n <= 255);
		if (skip == 100) {
			assert(n == 5 || n == 2);
			skip = n == 5 ? 1 : 3;
		} else if (skip) {
			skip--;
		} else {
			assert(n != 5 && n != 6 && n != 8 && !(n >= 10 && n <= 20) &&
			       n <= 107);
			if (n == 38 || n == 48)
				skip = 100;
		}
		if (s[i] == 'm')
			break;
		assert(s[i++] == ';');
	}
	assert(!skip);
	return i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log_filter f = {0};
	struct buf out;

	buf_init(&out, size * 8 + 64);
	log_filter(&f, data, size, &out);
	log_filter_end(&f, &out);
	assert(buf_ok(&out));
	for (size_t i = 0; i < out.len; i++) {
		unsigned char c = (unsigned char)out.data[i];

		if (c != 0x1b) {
			assert((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t');
			continue;
		}
		assert(out.data[i + 1] == '[');
		i = check_sgr(out.data, i + 2);
	}
	buf_reset(&out);
	render_escape(&out, (const char *)data, size, 0);
	for (size_t i = 0; i < out.len; i++)
		assert((unsigned char)out.data[i] >= 0x20);
	buf_done(&out);
	return 0;
}
