/* SPDX-License-Identifier: Apache-2.0 */
/* The event stream as the command line reads it: the pieces must not matter. */
#include "cli/base/sse.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count(const char *event, const char *data, size_t len, void *arg,
		 struct err *err)
{
	size_t *sum = arg;

	(void)err;
	assert(strlen(event) < 32);
	for (size_t i = 0; i < len; i++)
		*sum = *sum * 31 + (unsigned char)data[i];
	*sum += strlen(event);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t whole = 0, pieces = 0;
	struct err err = ERR_INIT;
	struct sse a, b;
	int ra, rb = 0;

	sse_init(&a);
	sse_init(&b);
	ra = sse_feed(&a, data, size, count, &whole, &err);
	for (size_t i = 0; i < size && rb == 0; i++)
		rb = sse_feed(&b, data + i, 1, count, &pieces, &err);
	assert(ra == rb);
	assert(whole == pieces);
	sse_done(&a);
	sse_done(&b);
	return 0;
}
