/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648), strict: no blanks, exact padding. */
#ifndef LYCH_CLI_B64_H
#define LYCH_CLI_B64_H

#include "common/attr.h"
#include "common/buf.h"
#include <stddef.h>

void b64_encode(struct buf *out, const void *data, size_t len);
MUST_CHECK int b64_decode(struct buf *out, const char *text, size_t len);

#endif
