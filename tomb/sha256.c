/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/sha256.h"

#include "common/mem.h"
#include "common/str.h"

#include <openssl/evp.h>
#include <stdlib.h>

struct sha256 {
	EVP_MD_CTX *ctx;
};

/* A digest that cannot be computed is as fatal as memory that cannot be had. */
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

void sha256_hex(struct sha256 *h, char out[SHA256_HEX_SIZE])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	must(EVP_DigestFinal_ex(h->ctx, raw, &n));
	must(n == SHA256_SIZE);
	hex_encode(raw, n, out);
}

void sha256_free(struct sha256 *h)
{
	if (!h)
		return;
	EVP_MD_CTX_free(h->ctx);
	free(h);
}
