/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * RFC 4648 section 4, strict: padding required, no blanks, unused bits zero.
 */
#ifndef LYCH_COMMON_BASE64_H
#define LYCH_COMMON_BASE64_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

void base64_add(struct buf *out, const void *data, size_t len);
bool base64_is_valid(const char *s, size_t len);
/* *ret is NUL-terminated, the caller frees it. ERRID_SPEC_TYPE. */
MUST_CHECK int base64_decode(const char *s, size_t len, char **ret, size_t *ret_len,
			     struct err *err);

#endif
