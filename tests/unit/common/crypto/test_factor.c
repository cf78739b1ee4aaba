/* SPDX-License-Identifier: Apache-2.0 */
/* A proof is of one key, one question and one act. */
#include "common/crypto/factor.h"
#include "common/crypto/sha256.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

#define NONCE "000102030405060708090a0b0c0d0e0f"
#define ACT "remove entry 7 of what is private"

static uint8_t key[SHA256_SIZE], stored[SHA256_SIZE];
static char proof[FACTOR_PROOF_SIZE];

static void setup(void)
{
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7 + 3);
	sha256_of(key, sizeof(key), stored);
	factor_prove(key, NONCE, ACT, proof);
}

TestSuite(factor, .init = setup, .timeout = 5);

Test(factor, another_proof_is_refused)
{
	char other[FACTOR_PROOF_SIZE];

	for (size_t i = 0; i < FACTOR_PROOF_SIZE - 1; i++) {
		memcpy(other, proof, sizeof(other));
		other[i] = other[i] == '0' ? '1' : '0';
		cr_assert_not(factor_is_proven(stored, NONCE, ACT, other), "digit %zu",
			      i);
	}
	cr_assert_not(factor_is_proven(stored, NONCE, ACT, ""));
	cr_assert_not(factor_is_proven(stored, NONCE, ACT, "x"));
	memcpy(other, proof, sizeof(other));
	other[FACTOR_PROOF_SIZE - 2] = '\0';
	cr_assert_not(factor_is_proven(stored, NONCE, ACT, other));
}

Test(factor, it_is_of_one_question_and_one_act)
{
	cr_assert_not(
		factor_is_proven(stored, "100102030405060708090a0b0c0d0e0f", ACT, proof));
	cr_assert_not(factor_is_proven(stored, NONCE, "remove entry 8 of what is private",
				       proof));
	cr_assert_not(factor_is_proven(stored, NONCE, "", proof));
}

/* Who has what is stored has no key. */
Test(factor, what_is_stored_proves_nothing)
{
	char other[FACTOR_PROOF_SIZE];

	factor_prove(stored, NONCE, ACT, other);
	cr_assert_not(factor_is_proven(stored, NONCE, ACT, other));
	hex_encode(key, sizeof(key), other);
	cr_assert_not(factor_is_proven(stored, NONCE, ACT, other));
}

Test(factor, the_right_one_is_taken)
{
	cr_assert(factor_is_proven(stored, NONCE, ACT, proof));
}

/* docs/PROTOCOL.md, worked out by another program. */
Test(factor, it_is_what_the_document_says)
{
	cr_assert_str_eq(
		proof,
		"17a3283464476da6d082678463a29e7d27e55cdc3532d9669a96a8c5c86140a7");
}
