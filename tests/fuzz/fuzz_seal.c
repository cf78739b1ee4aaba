/* SPDX-License-Identifier: Apache-2.0 */
/* The file of seals, any bytes: what is taken is one after the other in the one form that there is. */
#include "vessel/scribe/seal.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data;
	size_t len;

	for (; (len = seal_length(at, size)); at += len, size -= len) {
		struct seal s;
		struct buf b;

		if (len > size || len > SEAL_MAX)
			abort();
		if (seal_parse(at, len, &s, NULL) < 0)
			return 0;
		buf_init(&b, SEAL_MAX);
		seal_write(&b, &s);
		if (!buf_ok(&b) || b.len != len || memcmp(b.data, at, len) != 0)
			abort();
		for (size_t i = 0; i < len; i++)
			if ((unsigned char)at[i] < 0x20 && at[i] != '\n')
				abort();
		buf_done(&b);
	}
	return 0;
}
