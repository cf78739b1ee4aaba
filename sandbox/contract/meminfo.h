/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner and the keeper.
 * What the whole machine has, of /proc/meminfo: bounds what one job could have hidden.
 */
#ifndef LYCH_SANDBOX_CONTRACT_MEMINFO_H
#define LYCH_SANDBOX_CONTRACT_MEMINFO_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stdint.h>

struct meminfo { /* bytes */
	uint64_t available, swap, shmem,
		kernel; /* swap: free; kernel: slabs that can't be reclaimed */
};

/* Of this machine's /proc, whatever root its reader stands in later. */
MUST_CHECK int meminfo_open(struct err *err);
MUST_CHECK int meminfo_read(int fd, struct meminfo *ret);
/* Shared memory may be given as huge pages on this machine. As it was when meminfo_open() was called;
 * before that, and where nothing can be read, it is so. */
bool meminfo_has_huge_shmem(void);
/* What a file "shmem_enabled" says: other than "never", or for one size as the whole. */
bool meminfo_parse_huge(const char *text);
/* -1: one of them is missing. */
MUST_CHECK int meminfo_parse(const char *text, struct meminfo *ret);

#endif
