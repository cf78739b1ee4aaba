/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See planted.h.
 */
#include "common/crypto/planted.h"

#include "common/crypto/sha256.h"
#include "common/str.h"

#include <assert.h>
#include <string.h>

#define TEXT_SIZE 128

void planted_of(job_id_t job, int64_t epoch, const struct uuid *token,
		struct planted *ret)
{
	uint8_t digest[SHA256_SIZE];
	char text[TEXT_SIZE];
	int r = str_fmt(text, sizeof(text), "lychgate planted:%lld:%lld:%s",
			(long long)job, (long long)epoch, token->s);

	assert(r == 0);
	sha256_of(text, strlen(text), digest);
	hex_encode(digest, PLANTED_BYTES, ret->s);
	explicit_bzero(text, sizeof(text));
	explicit_bzero(digest, sizeof(digest));
}
