/* SPDX-License-Identifier: Apache-2.0 */
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
