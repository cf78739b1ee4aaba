/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a job that has a terminal: whatever comes in, and in whatever pieces, only what may be
 * there leaves, in the room that was promised, and once more through the filter it is the same. */
#include "common/mem.h"
#include "common/term/filter.h"
#include "tests/unit/common/term/term_clean.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t in_pieces(struct term_filter *f, const char *in, size_t size, size_t piece,
			char *out)
{
	size_t n = 0;

	for (size_t at = 0; at < size; at += piece) {
		size_t len = size - at < piece ? size - at : piece;
		size_t wrote = term_filter(f, in + at, len, out + n);

		assert(wrote <= TERM_FILTER_ROOM(len));
		n += wrote;
	}
	return n;
}

static void replies(struct term_filter *f)
{
	char out[64];
	size_t n, total = 0;

	assert(term_filter_replies(f, out, 3) == 0);
	while ((n = term_filter_replies(f, out, 9)) > 0) {
		assert(n <= 9 && out[0] == '\x1b' && out[1] == '[' &&
		       (out[n - 1] == 'c' || out[n - 1] == 'n'));
		total++;
	}
	assert(total <= TERM_FILTER_REPLIES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *in = (const char *)data;
	size_t room = TERM_FILTER_ROOM(size) * 2, n;
	char *whole = xmalloc(room), *pieces = xmalloc(room),
	     *again = xmalloc(TERM_FILTER_ROOM(room));

	for (int is_ascii = 0; is_ascii < 2; is_ascii++) {
		struct term_filter f = {.is_ascii = is_ascii != 0}, g = f, h = f;

		n = term_filter(&f, in, size, whole);
		assert(n <= TERM_FILTER_ROOM(size));
		assert(!term_clean(whole, n));
		assert(in_pieces(&g, in, size, 1, pieces) == n &&
		       !memcmp(whole, pieces, n));
		g = (struct term_filter){.is_ascii = is_ascii != 0};
		assert(in_pieces(&g, in, size, 7, pieces) == n &&
		       !memcmp(whole, pieces, n));
		assert(term_filter(&h, whole, n, again) == n && !memcmp(whole, again, n));
		assert(h.n_replies == 0);
		for (size_t i = 0; is_ascii && i < n; i++)
			assert((unsigned char)whole[i] < 0x80);
		replies(&f);
		term_filter_typed(&f, in, size);
		assert(f.asked <= TERM_FILTER_ASKED_MAX);
	}
	free(whole);
	free(pieces);
	free(again);
	return 0;
}
