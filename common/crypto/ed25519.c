/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe and lych-audit.
 * See ed25519.h.
 */
#include "common/crypto/ed25519.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* EVP_PKEY_free() wipes the private part. */
static EVP_PKEY *private_key(const uint8_t seed[ED25519_SEED_SIZE])
{
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed,
						     ED25519_SEED_SIZE);

	must(key != NULL);
	return key;
}

void ed25519_public(const uint8_t seed[ED25519_SEED_SIZE],
		    uint8_t ret[ED25519_PUBLIC_SIZE])
{
	EVP_PKEY *key = private_key(seed);
	size_t n = ED25519_PUBLIC_SIZE;

	must(EVP_PKEY_get_raw_public_key(key, ret, &n) == 1 && n == ED25519_PUBLIC_SIZE);
	EVP_PKEY_free(key);
}

void ed25519_sign(const uint8_t seed[ED25519_SEED_SIZE], const void *data, size_t len,
		  uint8_t ret[ED25519_SIGNATURE_SIZE])
{
	EVP_PKEY *key = private_key(seed);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t n = ED25519_SIGNATURE_SIZE;

	must(ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
	     EVP_DigestSign(ctx, ret, &n, data, len) == 1 && n == ED25519_SIGNATURE_SIZE);
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
}

bool ed25519_verify(const uint8_t public[ED25519_PUBLIC_SIZE], const void *data,
		    size_t len, const uint8_t signature[ED25519_SIGNATURE_SIZE])
{
	EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public,
						    ED25519_PUBLIC_SIZE);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok;

	must(ctx != NULL);
	ok = key && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
	     EVP_DigestVerify(ctx, signature, ED25519_SIGNATURE_SIZE, data, len) == 1;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	if (!ok) /* why not is of no use to anybody, and would gather */
		ERR_clear_error();
	return ok;
}
