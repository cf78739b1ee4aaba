/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See tomb_secret.h.
 */
#include "common/crypto/tomb_secret.h"

#include "common/crypto/sha256.h"
#include "common/str.h"
#include <assert.h>
#include <string.h>

#define INPUT_SIZE 128
#define GENERATION "generation:"

static const struct {
	const char *word, *master, *prefix;
} kinds[TOMB_SECRET_MAX_] = {
	[TOMB_SECRET_DB] = {"db", "lychgate_db_tomb", TOMB_SECRET_DB_OF},
	[TOMB_SECRET_WORK] = {"work", "lychgate_work", TOMB_SECRET_WORK_OF},
};

const char *tomb_secret_master(enum tomb_secret which)
{
	return kinds[which].master;
}

const char *tomb_secret_prefix(enum tomb_secret which)
{
	return kinds[which].prefix;
}

void tomb_secret_derive(enum tomb_secret which, const char *master, const char *tomb,
			uint64_t generation, char out[TOMB_SECRET_SIZE])
{
	uint8_t mac[SHA256_SIZE];
	char input[INPUT_SIZE];
	int r;

	assert(tomb_name_is_usable(tomb) && generation > 0);
	/* a name has no '|': one input, one meaning */
	r = str_fmt(input, sizeof(input), "lychgate tomb 1|%s|%s|%llu", kinds[which].word,
		    tomb, (unsigned long long)generation);
	assert(r == 0);
	hmac_sha256(master, strlen(master), input, strlen(input), mac);
	hex_encode(mac, sizeof(mac), out);
	explicit_bzero(mac, sizeof(mac));
}

void tomb_generation_write(uint64_t generation, char out[TOMB_GENERATION_SIZE])
{
	int r = str_fmt(out, TOMB_GENERATION_SIZE, GENERATION "%llu",
			(unsigned long long)generation);

	assert(r == 0);
}

int tomb_generation_parse(const char *text, uint64_t *ret, struct err *err)
{
	if (!str_starts(text, GENERATION) ||
	    parse_u64(text + strlen(GENERATION), 1, INT64_MAX, ret, NULL) < 0)
		return err_set_id(err, ERRID_SECRET_VALUE,
				  "a tomb's generation is '" GENERATION "N'");
	return 0;
}

uint64_t tomb_generation_next(uint64_t generation, uint64_t now_sec)
{
	return generation + 1 > now_sec ? generation + 1 : now_sec;
}
