/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See detach.h.
 */
#include "cli/follow/detach.h"

#include <string.h>

size_t detach_keys(bool *prefixed, char *typed, size_t n, bool *ret_left)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		char key = typed[i];

		if (!*prefixed && key == DETACH_PREFIX) {
			*prefixed = true;
			continue;
		}
		if (*prefixed && key == 'd') {
			*prefixed = false;
			*ret_left = true;
			return kept;
		}
		if (*prefixed && key != DETACH_PREFIX) {
			/* it was held back: here is its place, or, at the beginning, one byte more */
			if (kept == i) {
				memmove(typed + i + 1, typed + i, n - i);
				n++;
				i++;
			}
			typed[kept++] = DETACH_PREFIX;
		}
		*prefixed = false;
		typed[kept++] = key;
	}
	return kept;
}
