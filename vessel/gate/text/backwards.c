/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See backwards.h.
 */
#include "vessel/gate/text/backwards.h"
#include "common/mem.h"
#include <stdint.h>
#include <string.h>

#define NOT_ASCII 0x8080808080808080ULL /* in any of eight bytes */

char *gate_backwards(const char *data, size_t len)
{
	char *ret = xmalloc(len + 1);

	for (size_t i = 0, n; i < len; i += n) {
		uint64_t eight = NOT_ASCII;

		if (len - i >= sizeof(eight))
			memcpy(&eight, data + i, sizeof(eight));
		if (!(eight & NOT_ASCII)) {
			n = sizeof(eight);
			eight = __builtin_bswap64(eight);
			memcpy(ret + len - i - n, &eight, n);
			continue;
		}
		for (n = 1; n < 4 && i + n < len && (unsigned char)data[i] >= 0xc2 &&
			    ((unsigned char)data[i + n] & 0xc0) == 0x80;)
			n++;
		memcpy(ret + len - i - n, data + i, n);
	}
	return ret;
}
