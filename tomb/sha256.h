/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 over OpenSSL's EVP, the only user of libcrypto in the tomb. */
#ifndef LYCH_TOMB_SHA256_H
#define LYCH_TOMB_SHA256_H

#include "common/id.h"
#include <stddef.h>

struct sha256;
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *h, const void *data, size_t len);
void sha256_hex(struct sha256 *h, char out[SHA256_HEX_SIZE]); /* ends it */
void sha256_free(struct sha256 *h);

#endif
