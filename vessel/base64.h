/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 4648 section 4, strict: padding is required, spare bits must be zero. */
#ifndef LYCH_VESSEL_BASE64_H
#define LYCH_VESSEL_BASE64_H

#include "common/buf.h"
#include <stdbool.h>
#include <stddef.h>

void base64_add(struct buf *out, const void *data, size_t len);
bool base64_is_valid(const char *s, size_t len);

#endif
