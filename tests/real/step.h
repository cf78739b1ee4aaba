/* SPDX-License-Identifier: Apache-2.0 */
/* An outcome of a piece of work that is written in C, as step.sh says it. */
#ifndef LYCH_TESTS_REAL_STEP_H
#define LYCH_TESTS_REAL_STEP_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static inline bool step(const char *name, bool is_ok)
{
	if (!is_ok)
		(void)fprintf(stderr, "%s: %s\n", name, strerror(errno));
	printf("%s %s\n", is_ok ? "ok" : "FAIL", name);
	(void)fflush(stdout);
	return is_ok;
}

#endif
