/* SPDX-License-Identifier: Apache-2.0 */
/* A place for one listening socket of a test process. */
#ifndef LYCH_TESTS_SUPPORT_SCRATCH_SOCKET_H
#define LYCH_TESTS_SUPPORT_SCRATCH_SOCKET_H

#include "common/str.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch_dir[32], scratch_path[40];

static inline void scratch_remove(void)
{
	(void)unlink(scratch_path);
	(void)rmdir(scratch_dir);
}

/*
 * The path, in a directory of this process alone: a name by process number would
 * meet what a killed test of another user left behind. Both are removed at exit.
 */
static inline const char *scratch_socket(void)
{
	if (!scratch_path[0]) {
		cr_assert(str_copy(scratch_dir, sizeof(scratch_dir),
				   "/tmp/lych-sock-XXXXXX") == 0);
		cr_assert(mkdtemp(scratch_dir) != NULL);
		cr_assert(str_fmt(scratch_path, sizeof(scratch_path), "%s/s",
				  scratch_dir) == 0);
		cr_assert(atexit(scratch_remove) == 0);
	}
	return scratch_path;
}

#endif
