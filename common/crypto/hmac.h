/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * HMAC-SHA256 (RFC 2104) under a key of 32 bytes.
 */
#ifndef LYCH_COMMON_CRYPTO_HMAC_H
#define LYCH_COMMON_CRYPTO_HMAC_H

#include "common/id.h"
#include <stddef.h>
#include <stdint.h>

void gate_mac(const uint8_t key[SHA256_SIZE], const void *data, size_t len,
	      uint8_t out[SHA256_SIZE]);

#endif
