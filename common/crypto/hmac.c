/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See hmac.h.
 */
#include "common/crypto/hmac.h"
#include "common/crypto/sha256.h"

void gate_mac(const uint8_t key[SHA256_SIZE], const void *data, size_t len,
	      uint8_t out[SHA256_SIZE])
{
	hmac_sha256(key, SHA256_SIZE, data, len, out);
}
