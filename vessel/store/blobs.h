/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Files by their sha256 (inputs and artifacts): blobs/<aa>/<sha256>. incoming.h makes them.
 */
#ifndef LYCH_VESSEL_STORE_BLOBS_H
#define LYCH_VESSEL_STORE_BLOBS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/store/store.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blobs;

/* Free on the file system that the blobs lie on; 0 also when it does not say. */
uint64_t blobs_disk_free(const struct blobs *b);
/* Below data_fd (borrowed). Bytes found count against the budget. */
MUST_CHECK int blobs_new(int data_fd, struct store_budget *budget, struct blobs **ret,
			 struct err *err);
void blobs_free(struct blobs *b);

/* The file `name` of from_fd, open as fd, whose bytes have this digest, becomes the blob,
 * in the place of one that was there already; durable. */
MUST_CHECK int blobs_take(struct blobs *b, int from_fd, const char *name, int fd,
			  const char *sha256_hex, struct err *err);

/* Marks it as used now, so that the collection leaves it alone for an hour.
 * ERRID_STORE_BLOB. */
MUST_CHECK int blobs_touch(struct blobs *b, const char *sha256_hex, uint64_t *ret_size,
			   struct err *err);
/* A descriptor for reading; ERRID_STORE_BLOB. */
MUST_CHECK int blobs_open(const struct blobs *b, const char *sha256_hex,
			  uint64_t *ret_size, struct err *err);

/* The store lies in so many pieces, by the first two digits of the digests: "00" to "ff". */
#define BLOBS_FANS 256
/* Remove blobs of one piece ("a7") that are not among live (n lower-case hex strings) and
 * were last used before. */
MUST_CHECK int blobs_collect(struct blobs *b, const char *fan, const char *const *live,
			     size_t n, usec_t before_wall_usec, unsigned *ret_n,
			     struct err *err);

#endif
