/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See sha256.h.
 */
#include "common/crypto/sha256.h"

#include "common/mem.h"
#include "common/str.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define HMAC_BLOCK 64

struct sha256 {
	EVP_MD_CTX *ctx;
};

static void must(int ok)
{
	if (!ok)
		abort();
}

struct sha256 *sha256_new(void)
{
	struct sha256 *h = xnew(struct sha256);

	h->ctx = EVP_MD_CTX_new();
	must(h->ctx != NULL);
	must(EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL));
	return h;
}

void sha256_add(struct sha256 *h, const void *data, size_t len)
{
	must(EVP_DigestUpdate(h->ctx, data, len));
}

void sha256_final(struct sha256 *h, uint8_t out[SHA256_SIZE])
{
	unsigned n = 0;

	must(EVP_DigestFinal_ex(h->ctx, out, &n));
	must(n == SHA256_SIZE);
}

void sha256_hex(struct sha256 *h, char out[SHA256_HEX_SIZE])
{
	uint8_t raw[SHA256_SIZE];

	sha256_final(h, raw);
	hex_encode(raw, sizeof(raw), out);
}

void sha256_of(const void *data, size_t len, uint8_t out[SHA256_SIZE])
{
	cleanup_sha256 struct sha256 *h = sha256_new();

	sha256_add(h, data, len);
	sha256_final(h, out);
}

void hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
		 uint8_t out[SHA256_SIZE])
{
	uint8_t block[HMAC_BLOCK] = {0}, pad[HMAC_BLOCK];

	if (key_len > sizeof(block))
		sha256_of(key, key_len, block);
	else if (key_len)
		memcpy(block, key, key_len);
	for (unsigned pass = 0; pass < 2; pass++) {
		cleanup_sha256 struct sha256 *h = sha256_new();

		for (size_t i = 0; i < sizeof(pad); i++)
			pad[i] = (uint8_t)(block[i] ^ (pass ? 0x5c : 0x36));
		sha256_add(h, pad, sizeof(pad));
		sha256_add(h, pass ? out : data, pass ? SHA256_SIZE : len);
		sha256_final(h, out);
	}
	explicit_bzero(block, sizeof(block));
	explicit_bzero(pad, sizeof(pad));
}

void sha256_free(struct sha256 *h)
{
	if (!h)
		return;
	EVP_MD_CTX_free(h->ctx);
	free(h);
}
