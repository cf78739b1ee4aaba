/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * SHA-256 over OpenSSL's EVP; with sha1.c and ed25519.c the only user of libcrypto here. A digest that cannot be
 * computed aborts, as memory that cannot be had does.
 */
#ifndef LYCH_COMMON_CRYPTO_SHA256_H
#define LYCH_COMMON_CRYPTO_SHA256_H

#include "common/id.h"
#include <stddef.h>
#include <stdint.h>

struct sha256;
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *h, const void *data, size_t len);
/* Each of these ends it; then only sha256_free() may follow. */
void sha256_final(struct sha256 *h, uint8_t out[SHA256_SIZE]);
void sha256_hex(struct sha256 *h, char out[SHA256_HEX_SIZE]);
void sha256_free(struct sha256 *h);
static inline void sha256_free_p(struct sha256 **h)
{
	sha256_free(*h);
}
#define cleanup_sha256 __attribute__((cleanup(sha256_free_p)))
/* HMAC-SHA256 with a key of any length. */
void hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
		 uint8_t out[SHA256_SIZE]);
/* In one go. */
void sha256_of(const void *data, size_t len, uint8_t out[SHA256_SIZE]);

#endif
