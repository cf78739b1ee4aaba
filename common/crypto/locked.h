/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Memory for a credential: never swapped, never in a core file, wiped when it goes.
 */
#ifndef LYCH_COMMON_CRYPTO_LOCKED_H
#define LYCH_COMMON_CRYPTO_LOCKED_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>

/* Zeroed. ERRID_START_LIMIT when it cannot be locked. */
MUST_CHECK int locked_new(size_t size, void **ret, struct err *err);
void locked_free(void *p, size_t size); /* the size it was made with; NULL is fine */

#endif
