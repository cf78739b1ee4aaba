/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * zlib over what git sends, never more than a cap.
 */
#ifndef LYCH_VESSEL_GATE_GIT_INFLATE_H
#define LYCH_VESSEL_GATE_GIT_INFLATE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Of a request's body in gzip. */
#define GIT_REQUEST_MAX_BYTES ((size_t)8 << 20)

bool git_is_gzip(const void *data, size_t len);
/* One stream of gzip with nothing in its head and nothing behind it, into out (which has its cap).
 * ERRID_GIT_REQUEST. */
MUST_CHECK int git_gunzip(const void *data, size_t len, struct buf *out, struct err *err);

/* *data in gzip is unpacked into plain, at most GIT_REQUEST_MAX_BYTES, and *data and *len are that; else
 * nothing happens. plain is empty. As above. */
MUST_CHECK int git_plain(const void **data, size_t *len, struct buf *plain,
			 struct err *err);

/* One stream of zlib that unpacks to exactly out_len bytes, out; *ret_used: what of data it took. What
 * is behind it does not matter. */
bool git_inflate(const void *data, size_t len, char *out, size_t out_len,
		 size_t *ret_used);

#endif
