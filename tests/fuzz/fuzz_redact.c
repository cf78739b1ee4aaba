/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First byte: how the rest is cut. However it is cut the outcome is the same, and the key
 * is in none of them, neither as it is nor percent-encoded.
 */
#include "common/mem.h"
#include "vessel/egress/redact.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEY "sk-Zq7/R+xV2m9"

static void run(const struct redact *r, const uint8_t *data, size_t size, size_t piece,
		struct buf *out)
{
	struct redact_stream s;

	redact_begin(&s, r);
	for (size_t at = 0; at < size; at += piece)
		redact_feed(&s, data + at, size - at < piece ? size - at : piece, out);
	redact_end(&s, out);
	redact_done(&s);
	assert(buf_ok(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct redact *r;
	cleanup_buf struct buf whole, cut;
	struct err err = ERR_INIT;

	buf_init(&whole, 8 * size + 64);
	buf_init(&cut, 8 * size + 64);
	if (!r && redact_new(KEY, sizeof(KEY) - 1, &r, &err) < 0)
		abort();
	if (size < 1)
		return 0;
	run(r, data + 1, size - 1, size, &whole);
	run(r, data + 1, size - 1, (size_t)data[0] + 1, &cut);
	assert(whole.len == cut.len &&
	       (whole.len == 0 || memcmp(whole.data, cut.data, whole.len) == 0));
	assert(whole.len == 0 || !memmem(whole.data, whole.len, KEY, sizeof(KEY) - 1));
	return 0;
}
