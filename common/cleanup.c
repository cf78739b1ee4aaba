/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See cleanup.h.
 */
#include "common/cleanup.h"

#include <errno.h>

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}
