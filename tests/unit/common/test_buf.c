/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "common/jsonw.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(buf, refuses_to_pass_its_ceiling_and_stays_failed)
{
	cleanup_buf struct buf b;

	buf_init(&b, 8);
	buf_adds(&b, "12345678");
	cr_assert(buf_ok(&b));
	buf_addc(&b, '9');
	cr_assert_not(buf_ok(&b));
	cr_assert_eq(b.len, 8u);
	buf_consume(&b, 4);
	buf_adds(&b, "x");
	cr_assert_not(buf_ok(&b), "failure must be sticky");
	cr_assert_str_eq(buf_str(&b), "5678");
	cr_assert_null(buf_take(&b, NULL));
	buf_reset(&b);
	buf_adds(&b, "ok");
	cr_assert(buf_ok(&b));
}

Test(buf, take_hands_over_a_terminated_string)
{
	struct buf b;
	size_t len;
	char *s;

	buf_init(&b, 100);
	s = buf_take(&b, &len);
	cr_assert_str_eq(s, "");
	free(s);
	buf_addf(&b, "%s-%d", "a", 7);
	s = buf_take(&b, &len);
	cr_assert_eq(len, 3u);
	cr_assert_str_eq(s, "a-7");
	free(s);
	buf_done(&b);
}

static void check(const char *in, size_t len, const char *want)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, 1000);
	jsonw_init(&w, &b);
	jsonw_strn(&w, in, len);
	cr_assert_str_eq(buf_str(&b), want);
}

Test(jsonw, hostile_text_stays_one_harmless_string)
{
	check("a\"b\\c\n\x1b[2J", 10, "\"a\\\"b\\\\c\\n\\u001b[2J\"");
	check("\0x", 2, "\"\\u0000x\"");
	check("\xe2\x80\xa8\xe2\x80\xae\x7f", 7, "\"\\u2028\\u202e\\u007f\"");
	check("\xc2\x9b", 2, "\"\\u009b\"");
	check("\xff\xc0\xaf", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	check("\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	check("\xc3\xa9", 2, "\"\xc3\xa9\"");
}

Test(jsonw, commas_and_nesting)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, 1000);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "a", 1);
	jsonw_key(&w, "b");
	jsonw_arr(&w);
	jsonw_str(&w, NULL);
	jsonw_obj(&w);
	jsonw_obj_end(&w);
	jsonw_bool(&w, false);
	jsonw_arr_end(&w);
	jsonw_ki64(&w, "c", -5);
	jsonw_obj_end(&w);
	cr_assert_str_eq(buf_str(&b), "{\"a\":1,\"b\":[null,{},false],\"c\":-5}");
}
