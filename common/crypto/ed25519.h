/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * Ed25519 (RFC 8032) over OpenSSL's EVP. A signature that cannot be made aborts, as a digest
 * does that cannot be computed (sha256.h).
 */
#ifndef LYCH_COMMON_CRYPTO_ED25519_H
#define LYCH_COMMON_CRYPTO_ED25519_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ED25519_SEED_SIZE 32 /* the private key, as RFC 8032 has it */
#define ED25519_PUBLIC_SIZE 32
#define ED25519_SIGNATURE_SIZE 64

/* The seed is the caller's, who wipes it; what libcrypto makes of it is wiped before these
 * return. */
void ed25519_public(const uint8_t seed[ED25519_SEED_SIZE],
		    uint8_t ret[ED25519_PUBLIC_SIZE]);
void ed25519_sign(const uint8_t seed[ED25519_SEED_SIZE], const void *data, size_t len,
		  uint8_t ret[ED25519_SIGNATURE_SIZE]);
MUST_CHECK bool ed25519_verify(const uint8_t public[ED25519_PUBLIC_SIZE],
			       const void *data, size_t len,
			       const uint8_t signature[ED25519_SIGNATURE_SIZE]);

#endif
