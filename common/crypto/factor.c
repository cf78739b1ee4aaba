/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * See factor.h.
 */
#include "common/crypto/factor.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/str.h"

#include <string.h>

static void sign(const uint8_t stored[SHA256_SIZE], const char *nonce, const char *act,
		 uint8_t out[SHA256_SIZE])
{
	cleanup_buf struct buf text = {.max = 1024};

	buf_addf(&text, "lychgate-passphrase-1\n%s\n%s", nonce, act);
	hmac_sha256(stored, SHA256_SIZE, buf_str(&text), text.len, out);
}

void factor_prove(const uint8_t key[SHA256_SIZE], const char *nonce, const char *act,
		  char ret_proof[FACTOR_PROOF_SIZE])
{
	uint8_t stored[SHA256_SIZE], mask[SHA256_SIZE];

	sha256_of(key, SHA256_SIZE, stored);
	sign(stored, nonce, act, mask);
	for (size_t i = 0; i < sizeof(mask); i++)
		mask[i] ^= key[i];
	hex_encode(mask, sizeof(mask), ret_proof);
}

bool factor_is_proven(const uint8_t stored[SHA256_SIZE], const char *nonce,
		      const char *act, const char *proof)
{
	uint8_t key[SHA256_SIZE], mask[SHA256_SIZE], hash[SHA256_SIZE];
	unsigned differs = 0;

	if (hex_decode(proof, key, sizeof(key)) < 0)
		return false;
	sign(stored, nonce, act, mask);
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] ^= mask[i];
	sha256_of(key, sizeof(key), hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		differs |= (unsigned)(hash[i] ^ stored[i]);
	explicit_bzero(key, sizeof(key));
	return differs == 0;
}
