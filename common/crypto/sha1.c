/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See sha1.h.
 */
#include "common/crypto/sha1.h"

#include <openssl/evp.h>
#include <stdlib.h>

static void must(int ok)
{
	if (!ok)
		abort();
}

void sha1_of(const void *head, size_t head_len, const void *data, size_t len,
	     uint8_t out[SHA1_SIZE])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned n = 0;

	must(ctx != NULL);
	must(EVP_DigestInit_ex(ctx, EVP_sha1(), NULL));
	must(EVP_DigestUpdate(ctx, head, head_len));
	must(EVP_DigestUpdate(ctx, data, len));
	must(EVP_DigestFinal_ex(ctx, out, &n));
	must(n == SHA1_SIZE);
	EVP_MD_CTX_free(ctx);
}
