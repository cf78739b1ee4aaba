/* SPDX-License-Identifier: Apache-2.0 */
/* A text backwards, against the loop that says what it means, on drawn texts. */
#include "vessel/gate/text/backwards.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LEN 200

static uint32_t draw(uint32_t *s, uint32_t n)
{
	*s = *s * 1664525u + 1013904223u;
	return (*s >> 8) % n;
}

static size_t character(const unsigned char *u, size_t len)
{
	size_t n = 1;

	while (u[0] >= 0xc2 && n < 4 && n < len && u[n] >= 0x80 && u[n] < 0xc0)
		n++;
	return n;
}

Test(gate_backwards, each_character_is_whole)
{
	char *all = gate_backwards(
		"a\xc3\xa9z\xe2\x82\xac, eight letters \xf0\x9f\x98\x80", 27);

	cr_assert_arr_eq(all,
			 "\xf0\x9f\x98\x80 srettel thgie ,\xe2\x82\xacz\xc3\xa9"
			 "a",
			 27);
	free(all);
}

Test(gate_backwards, whatever_the_bytes_are)
{
	uint32_t seed = 20260104;

	for (unsigned round = 0; round < 2000; round++) {
		size_t len = draw(&seed, LEN), others = 1 + draw(&seed, 40);
		char s[LEN], want[LEN], *got;

		for (size_t i = 0; i < len; i++)
			s[i] = (char)(draw(&seed, (uint32_t)others)
					      ? draw(&seed, 128)
					      : 128 + draw(&seed, 128));
		for (size_t i = 0, n; i < len; i += n) {
			n = character((const unsigned char *)s + i, len - i);
			memcpy(want + len - i - n, s + i, n);
		}
		got = gate_backwards(s, len);
		cr_assert(memcmp(got, want, len) == 0, "round %u", round);
		free(got);
	}
}
