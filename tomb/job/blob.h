/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * Blobs between the vessel's store and files of the tomb, in parts.
 */
#ifndef LYCH_TOMB_JOB_BLOB_H
#define LYCH_TOMB_JOB_BLOB_H

#include "common/err.h"
#include "tomb/queue/work.h"

/* err: NULL when it is done. ERR_GONE: the vessel says that the lease is lost. */
typedef void blob_done(const struct err *err, void *arg);

/*
 * Download blob `sha256` into fd (empty, the caller's), and verify it. The bytes are not
 * to be used before done(NULL).
 */
struct blob_get;
struct blob_get *blob_get_start(struct work *w, const struct lease_key *key,
				const char *sha256, int fd, blob_done *done, void *arg);
void blob_get_cancel(struct blob_get *g); /* NULL is fine; not after done */

/* Upload fd (size bytes, the caller's) as blob `sha256`. */
struct blob_put;
struct blob_put *blob_put_start(struct work *w, const struct lease_key *key,
				const char *sha256, int fd, uint64_t size,
				blob_done *done, void *arg);
void blob_put_cancel(struct blob_put *p);

#endif
