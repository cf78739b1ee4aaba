/* SPDX-License-Identifier: Apache-2.0 */
/* Ed25519: the vectors of RFC 8032, 7.1, and that nothing else verifies. */
#include "common/crypto/ed25519.h"
#include "common/str.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(ed25519, .timeout = 30);

static const struct {
	const char *seed, *public, *message, *signature;
} vectors[] = {
	{"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
	 "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
	 "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
	 "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
	{"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
	 "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
	 "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
	 "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
	{"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
	 "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
	 "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
	 "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
};

static size_t bytes(const char *hex, uint8_t *ret)
{
	cr_assert(hex_decode(hex, ret, strlen(hex) / 2) == 0);
	return strlen(hex) / 2;
}

Test(ed25519, signatures_are_those_of_rfc_8032)
{
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		uint8_t seed[32], want_public[32], message[8], want[64], public[32],
			got[64];
		size_t len = bytes(vectors[i].message, message);

		bytes(vectors[i].seed, seed);
		bytes(vectors[i].public, want_public);
		bytes(vectors[i].signature, want);
		ed25519_public(seed, public);
		cr_expect_arr_eq(public, want_public, 32);
		ed25519_sign(seed, message, len, got);
		cr_expect_arr_eq(got, want, 64);
		cr_expect(ed25519_verify(public, message, len, got));
	}
}

Test(ed25519, nothing_else_verifies)
{
	uint8_t seed[32] = {1}, public[32], other[32], signature[64], none[64] = {0};
	const char text[] = "checkpoint";

	ed25519_public(seed, public);
	ed25519_sign(seed, text, sizeof(text), signature);
	for (size_t i = 0; i < 64 * 8; i++) {
		signature[i / 8] ^= (uint8_t)(1 << i % 8);
		cr_expect_not(ed25519_verify(public, text, sizeof(text), signature));
		signature[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	cr_expect_not(ed25519_verify(public, text, sizeof(text) - 1, signature));
	cr_expect_not(ed25519_verify(public, text, sizeof(text), none));
	seed[0] = 2;
	ed25519_public(seed, other);
	cr_expect_not(ed25519_verify(other, text, sizeof(text), signature));
	memset(other, 0xff, sizeof(other)); /* no point of the curve */
	cr_expect_not(ed25519_verify(other, text, sizeof(text), signature));
	cr_expect(ed25519_verify(public, text, sizeof(text), signature));
}
