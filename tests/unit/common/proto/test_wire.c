/* SPDX-License-Identifier: Apache-2.0 */
#include "common/proto/wire.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(wire, .timeout = 20);

static const char bytes[] = {1, 2, 3, 4, 5, 6, 7, (char)0x88};

static struct wire reader(size_t len)
{
	return (struct wire){.at = bytes, .left = len};
}

Test(wire, what_is_not_there_is_not_taken_and_fails_for_good)
{
	struct wire w = reader(3);
	char out[4] = "xxx";
	size_t len = 9;

	cr_expect_eq(wire_uint(&w, 4), 0u);
	cr_expect(w.failed && w.left == 3 && w.at == bytes);
	cr_expect_eq(wire_uint(&w, 1), 0u, "not even what would be there");
	cr_expect_eq(wire_uint_be(&w, 1), 0u);
	cr_expect_null(wire_bytes(&w, 0));
	cr_expect_not(wire_take(&w, out, 1));
	cr_expect_eq(out[0], 'x');
	cr_expect_str_eq(wire_sized(&w, 1, 9, &len), "");
	cr_expect_eq(len, 0u);
	cr_expect_not(wire_is_done(&w));
	w = reader(2);
	cr_expect_not(wire_take(&w, out, 3));
	cr_expect(w.failed && w.left == 2);
	w = reader(2);
	cr_expect_null(wire_bytes(&w, SIZE_MAX));
	cr_expect(w.failed);
}

Test(wire, a_length_is_believed_only_when_its_bytes_are_there)
{
	static const struct {
		char in[6];
		size_t len, max;
		unsigned len_bytes;
	} bad[] = {
		{{2, 'a'}, 2, 9, 1},
		{{2, 'a', 'b'}, 3, 1, 1},
		{{0}, 1, 9, 2},
		{{1, 0, 0}, 3, 9, 4},
		{{(char)0xff, (char)0xff, (char)0xff, (char)0xff, 'a'}, 5, SIZE_MAX, 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct wire w = {.at = bad[i].in, .left = bad[i].len};
		size_t len = 9;

		cr_expect_str_eq(wire_sized(&w, bad[i].len_bytes, bad[i].max, &len), "");
		cr_expect(w.failed && len == 0, "case %zu", i);
	}
}

Test(wire, numbers_in_both_orders)
{
	struct wire w = reader(8);

	cr_expect_eq(wire_uint(&w, 8), 0x8807060504030201u);
	cr_expect(wire_is_done(&w));
	w = reader(8);
	cr_expect_eq(wire_uint_be(&w, 8), 0x0102030405060788u);
	w = reader(8);
	cr_expect_eq(wire_uint(&w, 2), 0x0201u);
	cr_expect_eq(wire_uint_be(&w, 2), 0x0304u);
	cr_expect_eq(wire_uint(&w, 3), 0x070605u);
	cr_expect_not(wire_is_done(&w), "a byte is left");
	cr_expect_eq(wire_uint(&w, 1), 0x88u);
	cr_expect(wire_is_done(&w));
}

Test(wire, what_does_not_fit_makes_the_buffer_fail)
{
	static const char text[300] = "";
	struct buf b;

	buf_init(&b, 1024);
	wire_put_uint(&b, 0x100, 1);
	cr_expect(!buf_ok(&b) && b.len == 0);
	buf_reset(&b);
	wire_put_sized(&b, 1, text, 256);
	cr_expect(!buf_ok(&b) && b.len == 0);
	buf_done(&b);
	buf_init(&b, 3);
	wire_put_uint(&b, 1, 4);
	cr_expect(!buf_ok(&b) && b.len == 0);
	buf_done(&b);
}

Test(wire, what_is_put_is_taken)
{
	struct buf b;
	struct wire w;
	size_t len = 0;

	buf_init(&b, 1024);
	wire_put_uint(&b, UINT64_MAX, 8);
	wire_put_uint(&b, 0xff, 1);
	wire_put_sized(&b, 2, "a\0b", 3);
	wire_put_sized(&b, 4, "", 0);
	cr_assert(buf_ok(&b));
	w = (struct wire){.at = b.data, .left = b.len};
	cr_expect_eq(wire_uint(&w, 8), UINT64_MAX);
	cr_expect_eq(wire_uint(&w, 1), 0xffu);
	cr_expect_eq(memcmp(wire_sized(&w, 2, 3, &len), "a\0b", 3), 0);
	cr_expect_eq(len, 3u);
	cr_expect_not_null(wire_sized(&w, 4, 0, &len));
	cr_expect(len == 0 && wire_is_done(&w));
	buf_done(&b);
}
