/* SPDX-License-Identifier: Apache-2.0 */
/* A message of sock_diag: the kernel's, but of what a job named and made. */
#include "common/mem.h"
#include "sandbox/keeper/diag.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diag_one one;
	/* Where the kernel's are: aligned, and no byte behind the end is ours. */
	char *copy = xmalloc(size + 1);

	memcpy(copy, data, size);
	(void)diag_parse(AF_UNIX, copy, size, 1 << 20, &one);
	(void)diag_parse(AF_INET, copy, size, 1 << 20, &one);
	free(copy);
	return 0;
}
