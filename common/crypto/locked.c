/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See locked.h.
 */
#include "common/crypto/locked.h"

#include <string.h>
#include <sys/mman.h>

int locked_new(size_t size, void **ret, struct err *err)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return err_sys(err, "memory for a secret");
	if (mlock(p, size) < 0 || madvise(p, size, MADV_DONTDUMP) < 0) {
		(void)err_sys_id(
			err, ERRID_START_LIMIT,
			"lock %zu bytes of memory (RLIMIT_MEMLOCK, which needs 1 MiB)",
			size);
		(void)munmap(p, size);
		return -1;
	}
	*ret = p;
	return 0;
}

void locked_free(void *p, size_t size)
{
	if (!p)
		return;
	explicit_bzero(p, size);
	(void)munmap(p, size);
}
