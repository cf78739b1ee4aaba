/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Digests of a growing file: beside it lies a file of slots, one for each block of
 * SUM_BLOCK_BYTES, with how many bytes of the block it covers and their SHA-256. Bytes are
 * appended first and covered after; nobody is told of bytes that are not covered. What a
 * writer that died left behind its last slots counts as never written.
 */
#ifndef LYCH_VESSEL_STORE_OUTPUT_SUM_H
#define LYCH_VESSEL_STORE_OUTPUT_SUM_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

#define SUM_BLOCK_BYTES ((size_t)16384)
#define SUM_SLOT_BYTES ((size_t)36)

/* A file and its slots; sums -1: an older release wrote it, nothing is compared. */
struct sum_pair {
	int data, sums;
};

/* Bytes of slots for so many of data. */
uint64_t sum_bytes(uint64_t size);
/* How many bytes the file has, as far as they are covered. A file whose slots are missing
 * beyond what one write can leave open has the bytes that it has: reading tells. */
MUST_CHECK int sum_size(const struct sum_pair *p, uint64_t *ret, struct err *err);
/* Append at `size`, sum_size()'s answer; what lies behind it is cut off. On failure the
 * pair is as it was. ERRID_STORE_DAMAGED: the block that goes on is not what was written. */
MUST_CHECK int sum_append(const struct sum_pair *p, uint64_t size, const void *data,
			  size_t len, struct err *err);
/*
 * Bytes from offset on, at most room and below size; *ret_len of them, up to the first
 * damaged block. ERRID_STORE_DAMAGED when offset lies in one: *ret_next is where the next
 * block begins, or size.
 */
MUST_CHECK int sum_read(const struct sum_pair *p, uint64_t size, uint64_t offset,
			void *buf, size_t room, size_t *ret_len, uint64_t *ret_next,
			struct err *err);

#endif
