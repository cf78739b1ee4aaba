/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): to tell names apart, where nothing
 * is lost when two fall together. No protection against who chooses them.
 */
#ifndef LYCH_COMMON_TEXT_FNV_H
#define LYCH_COMMON_TEXT_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START 0xcbf29ce484222325u

static inline uint64_t fnv(uint64_t hash, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
	return hash;
}

#endif
