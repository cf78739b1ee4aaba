/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See broker_key.h.
 */
#include "common/crypto/broker_key.h"
#include "common/crypto/sha256.h"
#include "common/str.h"

#include <assert.h>
#include <string.h>

#define TEXT_SIZE 128

void broker_key_of(job_id_t job, int64_t epoch, const struct uuid *token,
		   struct broker_key *ret)
{
	uint8_t digest[SHA256_SIZE];
	char text[TEXT_SIZE];
	int r = str_fmt(text, sizeof(text), "lychgate broker key:%lld:%lld:%s",
			(long long)job, (long long)epoch, token->s);

	assert(r == 0);
	sha256_of(text, strlen(text), digest);
	broker_key_write(digest, ret);
	explicit_bzero(text, sizeof(text));
	explicit_bzero(digest, sizeof(digest));
}
