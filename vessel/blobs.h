/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by their sha256 (inputs and artifacts), and the uploads that become
 * them: uploads/<owner>-<id> grows in parts, and is renamed to
 * blobs/<aa>/<sha256> once its bytes are hashed, compared and on the disk. The
 * owner is part of the name, so nobody can reach another one's upload.
 */
#ifndef LYCH_VESSEL_BLOBS_H
#define LYCH_VESSEL_BLOBS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/store.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blobs;

#define UPLOAD_ID_SIZE 33    /* 32 hex digits */
#define UPLOAD_OWNER_SIZE 48 /* "owner", "<job>.<epoch>" */
#define UPLOADS_MAX 4096     /* open at once, of everybody */

/* Free on the file system that the blobs lie on; 0 also when it does not say. */
uint64_t blobs_disk_free(const struct blobs *b);
/* Below data_fd (borrowed). Bytes found count against the budget. */
MUST_CHECK int blobs_new(int data_fd, struct store_budget *budget, struct blobs **ret,
			 struct err *err);
void blobs_free(struct blobs *b);

MUST_CHECK int blobs_upload_begin(struct blobs *b, const char *owner,
				  const struct random_ops *rng,
				  char ret_id[UPLOAD_ID_SIZE], struct err *err);
/* As output_append: a repeated part changes nothing, a gap is ERRID_RUN_GAP; *ret_size
 * the bytes received. ERRID_STORE_UPLOAD when there is no such upload of this owner. */
MUST_CHECK int blobs_upload_append(struct blobs *b, const char *owner, const char *id,
				   uint64_t offset, const void *data, size_t len,
				   uint64_t *ret_size, struct err *err);
/* ERRID_STORE_HASH when size or sha256 differ; when only the latter does, the upload is
 * gone. After success the blob is durable. */
MUST_CHECK int blobs_upload_commit(struct blobs *b, const char *owner, const char *id,
				   const char *sha256_hex, uint64_t size,
				   struct err *err);

/* Marks it as used now, so that the collection leaves it alone for an hour.
 * ERRID_STORE_BLOB. */
MUST_CHECK int blobs_touch(struct blobs *b, const char *sha256_hex, uint64_t *ret_size,
			   struct err *err);
/* A descriptor for reading; ERRID_STORE_BLOB. */
MUST_CHECK int blobs_open(const struct blobs *b, const char *sha256_hex,
			  uint64_t *ret_size, struct err *err);

/* Remove uploads untouched since before_wall. */
MUST_CHECK int blobs_reap_uploads(struct blobs *b, usec_t before_wall_usec,
				  unsigned *ret_n, struct err *err);
/* Remove blobs that are not among live (n lower-case hex strings) and were last used
 * before. */
MUST_CHECK int blobs_collect(struct blobs *b, const char *const *live, size_t n,
			     usec_t before_wall_usec, unsigned *ret_n, struct err *err);

#endif
