/* SPDX-License-Identifier: Apache-2.0 */
/* A classifier's reply: a number from 0 to 1, or none and the error; and slices of any bytes. */
#include "common/buf.h"
#include "vessel/broker/opinion/text.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct err err = ERR_INIT;
	double score = 7;
	size_t at = 0, seen = 0;

	if (opinion_reply_read(data, size, &score, &err) == 0)
		assert(score >= 0.0 && score <= 1.0);
	else
		assert(score == 7 && err.id == ERRID_CLASSIFIER_AWAY);
	while (at < size) {
		size_t n = opinion_slice_len(text, size, at);

		assert(n > 0 && n <= OPINION_SLICE_BYTES && at + n > seen && at <= seen);
		seen = at + n;
		at = opinion_slice_next(text, size, at, n);
	}
	assert(seen == size);
	return 0;
}
