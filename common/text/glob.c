/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Both pattern and path come from outside, so a backtracking matcher is out of the
 * question ("*a*a*a*b"). This one keeps the set of pattern positions that can be
 * reached after each byte of the path: time is pattern * path, memory one bit a byte.
 */
#include "common/text/glob.h"

#include "common/cleanup.h"
#include "common/mem.h"

#include <stddef.h>
#include <string.h>

/* Reach p and what can be reached from it without consuming a byte. */
static void glob_reach(const char *pattern, size_t p, bool *set)
{
	while (!set[p]) {
		set[p] = true;
		if (pattern[p] != '*')
			return;
		if (pattern[p + 1] == '*') {
			/* A whole component "**" may match nothing: its slash goes too.
			 */
			if (pattern[p + 2] == '/' && (p == 0 || pattern[p - 1] == '/'))
				glob_reach(pattern, p + 3, set);
			p += 2;
		} else {
			p++;
		}
	}
}

bool glob_match(const char *pattern, const char *path)
{
	size_t n = strlen(pattern);
	cleanup_free bool *now = xcalloc(n + 1, sizeof(*now));
	cleanup_free bool *next = xcalloc(n + 1, sizeof(*next));

	glob_reach(pattern, 0, now);
	for (const char *s = path; *s; s++) {
		bool *swap = now;

		memset(next, 0, (n + 1) * sizeof(*next));
		for (size_t p = 0; p < n; p++) {
			if (!now[p])
				continue;
			if (pattern[p] == '*') {
				/* Of "**" only the first star is ever in the set. Having
				 * matched something, it needs its slash. */
				if (pattern[p + 1] == '*') {
					next[p] = true;
					glob_reach(pattern, p + 2, next);
				} else if (*s != '/') {
					glob_reach(pattern, p, next);
				}
			} else if (pattern[p] == '?' ? *s != '/' : pattern[p] == *s) {
				glob_reach(pattern, p + 1, next);
			}
		}
		now = next;
		next = swap;
	}
	return now[n];
}
