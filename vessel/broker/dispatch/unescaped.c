/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See unescaped.h.
 */
#include "vessel/broker/dispatch/unescaped.h"

#include <string.h>

static const char signs[] = "nrt\"'/\\", meant[] = "\n\r\t\"'/\\";

bool unescaped(const char *text, size_t len, struct buf *out)
{
	if (!memmem(text, len, "\\n", 2) && !memmem(text, len, "\\r", 2))
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *sign = text[i] == '\\' && i + 1 < len && text[i + 1]
					   ? strchr(signs, text[i + 1])
					   : NULL;

		buf_addc(out, sign ? meant[sign - signs] : text[i]);
		i += sign != NULL;
	}
	return true;
}
