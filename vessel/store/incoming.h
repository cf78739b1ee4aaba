/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Uploads that are no blobs yet: uploads/<owner>-<id> grows in parts, and becomes a blob
 * (blobs.h) once its bytes are hashed, compared and on the disk. The owner is part of the
 * name, so nobody can reach another one's upload.
 *
 * What comes is hashed behind the requests, a slice a turn of the loop, whoever sent it and
 * however much it is: a commit waits for the rest of its own hash, and nobody else does.
 *
 * Shares: a lease has UPLOADS_LEASE_MAX uploads and BLOB_MAX_BYTES in them, a tomb
 * UPLOADS_TOMB_MAX; whoever begins or sends more loses the one of its own that was idle
 * longest. All tombs together leave the person UPLOADS_OWNER_MAX.
 */
#ifndef LYCH_VESSEL_STORE_INCOMING_H
#define LYCH_VESSEL_STORE_INCOMING_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include "vessel/store/blobs.h"
#include "vessel/store/store.h"
#include <stddef.h>
#include <stdint.h>

struct incoming;

#define UPLOAD_ID_SIZE 33      /* 32 hex digits */
#define UPLOAD_OWNER_SIZE 80   /* UPLOAD_OWNER, "<tomb>.<job>.<epoch>" */
#define UPLOAD_OWNER "owner"   /* the person */
#define UPLOADS_MAX 4096       /* open at once, of everybody */
#define UPLOADS_OWNER_MAX 1024 /* of these for the person alone */
#define UPLOADS_LEASE_MAX 8
#define UPLOADS_TOMB_MAX 512

/* Below data_fd (borrowed). Bytes found count against the budget. */
MUST_CHECK int incoming_new(struct loop *l, int data_fd, struct store_budget *budget,
			    struct blobs *blobs, struct incoming **ret, struct err *err);
void incoming_free(struct incoming *in); /* waiting commits are told ERR_UNAVAILABLE */

MUST_CHECK int incoming_begin(struct incoming *in, const char *owner,
			      const struct random_ops *rng, char ret_id[UPLOAD_ID_SIZE],
			      struct err *err);
/* As output_append: a repeated part changes nothing, a gap is ERRID_RUN_GAP; *ret_size
 * the bytes received. ERRID_STORE_UPLOAD when there is no such upload of this owner. */
MUST_CHECK int incoming_append(struct incoming *in, const char *owner, const char *id,
			       uint64_t offset, const void *data, size_t len,
			       uint64_t *ret_size, struct err *err);
/* err NULL: the blob is durable. Called once, from the loop. */
typedef void incoming_done(const struct err *err, void *arg);
/* ERRID_STORE_HASH when size or sha256 differ; when only the latter does, the upload is
 * gone. -1: refused at once, and done is not called. */
MUST_CHECK int incoming_commit(struct incoming *in, const char *owner, const char *id,
			       const char *sha256_hex, uint64_t size, incoming_done *done,
			       void *arg, struct err *err);
/* Remove uploads untouched since before_wall. */
void incoming_reap(struct incoming *in, usec_t before_wall_usec, unsigned *ret_n);

#endif
