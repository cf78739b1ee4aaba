/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/tomb_secret.h"

#include "common/crypto/sha256.h"
#include "common/str.h"
#include "tests/support/vectors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(tomb_secret, .timeout = 30);

/* RFC 4231, cases 2 and 6. */
Test(tomb_secret, hmac_is_the_one_of_the_rfc)
{
	uint8_t key[131], mac[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];
	static const char *const data[] = {
		"what do ya want for nothing?",
		"Test Using Larger Than Block-Size Key - Hash Key First"};

	hmac_sha256("Jefe", 4, data[0], strlen(data[0]), mac);
	hex_encode(mac, sizeof(mac), hex);
	cr_assert_str_eq(
		hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	hmac_sha256(key, sizeof(key), data[1], strlen(data[1]), mac);
	hex_encode(mac, sizeof(mac), hex);
	cr_assert_str_eq(
		hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

Test(tomb_secret, known_answers_of_the_document)
{
	cleanup_free char *master = vector("tomb_master");
	cleanup_free char *name = vector("tomb_name");
	cleanup_free char *generation = vector("tomb_generation");
	cleanup_free char *db = vector("tomb_db");
	cleanup_free char *work = vector("tomb_work");
	char out[TOMB_SECRET_SIZE];
	uint64_t n = 0;

	cr_assert_eq(parse_u64(generation, 1, INT64_MAX, &n, NULL), 0);
	tomb_secret_derive(TOMB_SECRET_DB, master, name, n, out);
	cr_assert_str_eq(out, db);
	tomb_secret_derive(TOMB_SECRET_WORK, master, name, n, out);
	cr_assert_str_eq(out, work);
}

/* Nothing of what goes in can be moved from one part to the next. */
Test(tomb_secret, each_is_another)
{
	static const struct {
		enum tomb_secret which;
		const char *name;
		uint64_t generation;
	} of[] = {
		{TOMB_SECRET_DB, "tomb_1", 1},	   {TOMB_SECRET_WORK, "tomb_1", 1},
		{TOMB_SECRET_WORK, "tomb_1", 2},   {TOMB_SECRET_WORK, "tomb_1", 11},
		{TOMB_SECRET_WORK, "tomb_11", 1},  {TOMB_SECRET_WORK, "tomb_", 11},
		{TOMB_SECRET_WORK, "tomb_111", 1}, {TOMB_SECRET_DB, "tomb_11", 1},
	};
	char out[ARRAY_SIZE(of)][TOMB_SECRET_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		tomb_secret_derive(of[i].which, "a master", of[i].name, of[i].generation,
				   out[i]);
		cr_assert_eq(strlen(out[i]), TOMB_SECRET_SIZE - 1);
		for (size_t k = 0; k < i; k++)
			cr_assert_str_neq(out[i], out[k], "%zu %zu", i, k);
	}
}

Test(tomb_secret, names_that_could_be_confused_are_none)
{
	static const char *const bad[] = {"",
					  "Tomb",
					  "1tomb",
					  "_tomb",
					  "tomb|1",
					  "tomb 1",
					  "tomb-1",
					  "tomb/1",
					  "tomb_1\n",
					  "t\xc3\xb6mb",
					  "a23456789012345678901234567890123"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_not(tomb_name_is_usable(bad[i]), "%s", bad[i]);
	cr_assert(tomb_name_is_usable("tomb_1"));
	cr_assert(tomb_name_is_usable("a2345678901234567890123456789012"));
}

Test(tomb_secret, a_generation_only_grows)
{
	static const char *const bad[] = {"",
					  "1",
					  "generation:",
					  "generation:0",
					  "generation:01",
					  "generation:-1",
					  "generation:1 ",
					  "generation:9223372036854775808",
					  "Generation:1"};
	char text[TOMB_GENERATION_SIZE];
	struct err err = ERR_INIT;
	uint64_t n = 0;

	cr_assert_eq(tomb_generation_next(0, 1764000000), 1764000000);
	cr_assert_eq(tomb_generation_next(7, 1764000000), 1764000000);
	cr_assert_eq(tomb_generation_next(1764000000, 1764000000), 1764000001);
	/* a clock that was set back takes nothing back */
	cr_assert_eq(tomb_generation_next(1764000000, 5), 1764000001);
	tomb_generation_write(1764000000, text);
	cr_assert_eq(tomb_generation_parse(text, &n, &err), 0);
	cr_assert_eq(n, 1764000000);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_lt(tomb_generation_parse(bad[i], &n, &err), 0, "%s", bad[i]);
}
