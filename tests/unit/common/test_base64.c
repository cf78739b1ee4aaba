/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base64.h"
#include "common/cleanup.h"

#include <criterion/criterion.h>
#include <string.h>

Test(base64, refuses_what_rfc_4648_does_not_write)
{
	static const char *const bad[] = {"A",	   "AA",   "AAA",  "=AAA",     "A===",
					  "AA=A",  "AB==", "AAB=", "AA==AA==", "AA A",
					  "AAA\n", "AA-_", "===="};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(base64_is_valid(bad[i], strlen(bad[i])), "took %s", bad[i]);
}

Test(base64, round_trips_every_length)
{
	unsigned char in[64];

	for (size_t n = 0; n <= sizeof(in); n++) {
		cleanup_buf struct buf b;
		cleanup_free char *out = NULL;
		struct err err = ERR_INIT;
		size_t len;

		for (size_t i = 0; i < n; i++)
			in[i] = (unsigned char)(i * 37 + n);
		buf_init(&b, 200);
		base64_add(&b, in, n);
		cr_assert_eq(base64_decode(buf_str(&b), b.len, &out, &len, &err), 0);
		cr_assert_eq(len, n);
		cr_assert_eq(memcmp(out, in, n), 0);
	}
	{
		cleanup_buf struct buf b;

		buf_init(&b, 20);
		base64_add(&b, "foobar", 5);
		cr_assert_str_eq(buf_str(&b), "Zm9vYmE=");
	}
}
