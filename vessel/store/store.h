/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What blobs.c and output.c share: one budget of bytes for everything that
 * jobs and clients can make the vessel keep, and writes that leave nothing
 * half-done when the disk is full.
 */
#ifndef LYCH_VESSEL_STORE_STORE_H
#define LYCH_VESSEL_STORE_STORE_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

struct store_budget {
	uint64_t used, max; /* bytes */
};

/* Of these the last quarter is the person's alone: what jobs deliver can't keep a person from
 * sending the next one. */
enum store_who { STORE_PERSON, STORE_TOMB };

/* ERRID_STORE_LIMIT when n more bytes would pass the limit; else they count as used. */
MUST_CHECK int store_reserve(struct store_budget *b, enum store_who who, uint64_t n,
			     struct err *err);
void store_return(struct store_budget *b, uint64_t n);

/* Turns the error of a write (ENOSPC, EDQUOT, EFBIG) into ERRID_CORE_DISK_FULL. Returns
 * -1. */
int store_err(struct err *err);
/* Append data at `size`, the file's present length: all of it, or the file is cut back to
 * size. */
MUST_CHECK int store_append(int fd, uint64_t size, const void *data, size_t len,
			    struct err *err);
/* Length of an open regular file; anything else is an error. */
MUST_CHECK int store_size(int fd, uint64_t *ret, struct err *err);
/* Bytes in the regular files below a directory, at most three levels deep. */
MUST_CHECK int store_measure(int dirfd, const char *path, uint64_t *ret, struct err *err);

#endif
