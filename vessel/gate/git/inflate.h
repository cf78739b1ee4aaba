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

bool git_is_gzip(const void *data, size_t len);
/* One stream of gzip with nothing in its head and nothing behind it, into out (which has its cap).
 * ERRID_GIT_REQUEST. */
MUST_CHECK int git_gunzip(const void *data, size_t len, struct buf *out, struct err *err);

#endif
