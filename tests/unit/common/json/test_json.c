/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json.h"

#include "common/buf.h"
#include "common/jsonw.h"
#include "common/mem.h"

#include <criterion/criterion.h>

TestSuite(json, .timeout = 20);

struct row {
	const char *name, *text;
	size_t len;
};
#define ROW(name, text) {name, text, sizeof(text) - 1}

/* First what json-c 0.16 takes in strict mode, then the rest of RFC 8259 and 7493. */
static const struct row bads[] = {
	ROW("duplicate key", "{\"a\":1,\"a\":2}"),
	ROW("duplicate key after unescaping", "{\"a\":1,\"\\u0061\":2}"),
	ROW("duplicate escaped keys", "{\"\\u00e4\":1,\"\\u00E4\":2}"),
	ROW("duplicate key: escape against UTF-8", "{\"\xc3\xa4\":1,\"\\u00e4\":2}"),
	ROW("duplicate key: surrogate pair",
	    "{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}"),
	ROW("duplicate key: escaped slash", "{\"a/b\":1,\"a\\/b\":2}"),
	ROW("duplicate key, far apart", "{\"a\":1,\"b\":{\"a\":1},\"c\":[],\"a\":2}"),
	ROW("duplicate empty key", "{\"\":1,\"\":2}"),
	ROW("duplicate key in a nested object", "{\"x\":[{\"a\":1,\"a\":1}]}"),
	ROW("single quotes", "{'a':1}"),
	ROW("single-quoted value", "{\"a\":'b'}"),
	ROW("NaN", "{\"a\":NaN}"),
	ROW("-NaN", "{\"a\":-NaN}"),
	ROW("Infinity", "{\"a\":Infinity}"),
	ROW("-Infinity", "{\"a\":-Infinity}"),
	ROW("nan", "{\"a\":nan}"),
	ROW("-012", "{\"a\":-012}"),
	ROW("012", "{\"a\":012}"),
	ROW("00", "{\"a\":00}"),
	ROW("raw newline in a string", "{\"a\":\"b\nc\"}"),
	ROW("raw tab in a string", "{\"a\":\"\t\"}"),
	ROW("raw 0x01 in a key", "{\"a\x01\":1}"),
	ROW("raw 0x1f in a string", "{\"a\":\"\x1f\"}"),
	ROW("overlong slash", "{\"a\":\"\xc0\xaf\"}"),
	ROW("overlong NUL", "{\"a\":\"\xc0\x80\"}"),
	ROW("overlong, three bytes", "{\"a\":\"\xe0\x80\xaf\"}"),
	ROW("overlong, four bytes", "{\"a\":\"\xf0\x80\x80\xaf\"}"),
	ROW("surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}"),
	ROW("above U+10FFFF", "{\"a\":\"\xf4\x90\x80\x80\"}"),
	ROW("0xff", "{\"a\":\"\xff\"}"),
	ROW("lone continuation byte", "{\"a\":\"\x80\"}"),
	ROW("cut UTF-8", "{\"a\":\"\xe2\x82\"}"),
	ROW("bytes after a NUL", "{\"a\":1}\0{\"b\":2}"),
	ROW("NUL at the end", "{\"a\":1}\0"),
	ROW("NUL in the middle", "{\"a\":\0 1}"),
	ROW("raw NUL in a string", "{\"a\":\"b\0c\"}"),
	ROW("\\u0000 in a key", "{\"a\\u0000b\":1,\"a\":2}"),
	ROW("\\u0000 in a string", "{\"a\":\"b\\u0000c\"}"),
	ROW("above 2^64-1", "{\"a\":18446744073709551616}"),
	ROW("below -2^63", "{\"a\":-9223372036854775809}"),
	ROW("forty digits", "{\"a\":1234567890123456789012345678901234567890}"),
	ROW("1e999", "{\"a\":1e999}"),
	ROW("-1e999", "{\"a\":-1e999}"),
	ROW("very long number",
	    "{\"a\":0."
	    "00000000000000000000000000000000000000000000000000000000000000001}"),
	ROW("empty", ""),
	ROW("blanks", "  \n"),
	ROW("top-level array", "[1]"),
	ROW("top-level string", "\"a\""),
	ROW("top-level number", "1"),
	ROW("top-level null", "null"),
	ROW("two objects", "{}{}"),
	ROW("rubbish behind", "{} x"),
	ROW("comma behind", "{},"),
	ROW("BOM", "\xef\xbb\xbf{}"),
	ROW("form feed as a blank", "{\f}"),
	ROW("no-break space", "{\xc2\xa0}"),
	ROW("C comment", "{/* */}"),
	ROW("line comment", "{// \n}"),
	ROW("trailing comma in an object", "{\"a\":1,}"),
	ROW("trailing comma in an array", "{\"a\":[1,]}"),
	ROW("leading comma", "{,\"a\":1}"),
	ROW("two commas", "{\"a\":1,,\"b\":2}"),
	ROW("no comma", "{\"a\":1 \"b\":2}"),
	ROW("no colon", "{\"a\" 1}"),
	ROW("two colons", "{\"a\"::1}"),
	ROW("no value", "{\"a\":}"),
	ROW("no key", "{:1}"),
	ROW("bare key", "{a:1}"),
	ROW("number as a key", "{1:1}"),
	ROW("open object", "{\"a\":1"),
	ROW("open array", "{\"a\":[1"),
	ROW("open string", "{\"a"),
	ROW("open escape", "{\"a\\"),
	ROW("mixed brackets", "{\"a\":[1}]"),
	ROW("True", "{\"a\":True}"),
	ROW("TRUE", "{\"a\":TRUE}"),
	ROW("tru", "{\"a\":tru}"),
	ROW("truex", "{\"a\":truex}"),
	ROW("nul", "{\"a\":nul"),
	ROW("+1", "{\"a\":+1}"),
	ROW(".5", "{\"a\":.5}"),
	ROW("5.", "{\"a\":5.}"),
	ROW("-", "{\"a\":-}"),
	ROW("--1", "{\"a\":--1}"),
	ROW("1e", "{\"a\":1e}"),
	ROW("1e+", "{\"a\":1e+}"),
	ROW("0x10", "{\"a\":0x10}"),
	ROW("1_000", "{\"a\":1_000}"),
	ROW("\\x41", "{\"a\":\"\\x41\"}"),
	ROW("\\'", "{\"a\":\"\\'\"}"),
	ROW("escaped newline", "{\"a\":\"\\\n\"}"),
	ROW("escaped NUL byte", "{\"a\":\"\\\0\"}"),
	ROW("short \\u", "{\"a\":\"\\u12\"}"),
	ROW("bad \\u", "{\"a\":\"\\u12g4\"}"),
	ROW("signed \\u", "{\"a\":\"\\u+123\"}"),
	ROW("lone high surrogate", "{\"a\":\"\\ud800\"}"),
	ROW("lone low surrogate", "{\"a\":\"\\udc00\"}"),
	ROW("high with high", "{\"a\":\"\\ud800\\ud800\"}"),
	ROW("high with a letter", "{\"a\":\"\\ud800x\"}"),
	ROW("high with other escape", "{\"a\":\"\\ud800\\n\"}"),
};

static const struct row goods[] = {
	ROW("empty object", "{}"),
	ROW("blanks around", " \t\r\n{ \"a\" : [ ] , \"b\" : { } } \n "),
	ROW("all types", "{\"a\":[null,true,false,0,-1,1.5,1E+2,1e-2,\"x\",{},[]]}"),
	ROW("escapes", "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00\"}"),
	ROW("UTF-8", "{\"\xc3\xa4\":\"\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"}"),
	ROW("same key in other objects",
	    "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}"),
	ROW("keys with a common prefix", "{\"a\":1,\"ab\":2,\"abc\":3,\"\":4}"),
	ROW("extreme integers",
	    "{\"a\":18446744073709551615,\"b\":-9223372036854775808,\"c\":-0}"),
};

Test(json, refuses)
{
	for (size_t i = 0; i < ARRAY_SIZE(bads); i++) {
		/* An exact copy, so that ASan sees a read behind the end. */
		char *exact = xreallocarray(NULL, bads[i].len ? bads[i].len : 1, 1);
		struct json *j = NULL;
		struct err err = ERR_INIT;

		memcpy(exact, bads[i].text, bads[i].len);
		cr_expect(json_scan(exact, bads[i].len, 16, &err) < 0, "%s",
			  bads[i].name);
		cr_expect_eq(err.id, ERRID_SPEC_JSON, "%s", bads[i].name);
		cr_expect(json_parse(exact, bads[i].len, 16, &j, &err) < 0, "%s",
			  bads[i].name);
		cr_expect_null(j);
		free(exact);
	}
}

Test(json, accepts)
{
	for (size_t i = 0; i < ARRAY_SIZE(goods); i++) {
		struct json *j = NULL;
		struct err err = ERR_INIT;

		cr_expect(json_parse(goods[i].text, goods[i].len, 16, &j, &err) == 0,
			  "%s: %s", goods[i].name, err.msg);
		json_free(j);
	}
}

Test(json, every_cut_of_a_good_text_is_refused)
{
	static const char text[] =
		"{\"a\":[1,{\"b\":\"\\u00e4\xc3\xa4\"},true],\"c\":-1.5e3}";

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		char *exact = xmalloc(n ? n : 1);
		struct err err = ERR_INIT;

		memcpy(exact, text, n);
		cr_expect(json_scan(exact, n, 16, &err) < 0, "%zu", n);
		free(exact);
	}
}

Test(json, depth_and_members_are_limited)
{
	struct buf b;
	struct err err = ERR_INIT;
	struct json *j = NULL;

	for (unsigned depth = 15; depth <= 17; depth++) {
		buf_init(&b, 1 << 20);
		buf_adds(&b, "{\"a\":");
		for (unsigned i = 1; i < depth; i++)
			buf_addc(&b, '[');
		for (unsigned i = 1; i < depth; i++)
			buf_addc(&b, ']');
		buf_addc(&b, '}');
		j = NULL;
		cr_expect_eq(json_parse(b.data, b.len, 16, &j, &err),
			     depth <= 16 ? 0 : -1, "%u: %s", depth, err.msg);
		json_free(j);
		buf_done(&b);
	}
	for (unsigned n = JSON_MEMBERS_MAX; n <= JSON_MEMBERS_MAX + 1; n++) {
		buf_init(&b, 1 << 20);
		buf_adds(&b, "{");
		for (unsigned i = 0; i < n; i++)
			buf_addf(&b, "%s\"%u\":1", i ? "," : "", i);
		buf_addc(&b, '}');
		cr_expect_eq(json_scan(b.data, b.len, 16, &err),
			     n <= JSON_MEMBERS_MAX ? 0 : -1);
		buf_done(&b);
	}
	/* The object and the array are two of them. */
	for (unsigned n = JSON_VALUES_MAX - 2; n <= JSON_VALUES_MAX - 1; n++) {
		buf_init(&b, 1 << 20);
		buf_adds(&b, "{\"a\":[0");
		for (unsigned i = 1; i < n; i++)
			buf_adds(&b, ",0");
		buf_adds(&b, "]}");
		cr_expect_eq(json_scan(b.data, b.len, 16, &err),
			     n <= JSON_VALUES_MAX - 2 ? 0 : -1);
		buf_done(&b);
	}
}

Test(json, typed_getters)
{
	static const char text[] =
		"{\"s\":\"abc\",\"n\":5,\"neg\":-5,\"big\":18446744073709551615,\"f\":1."
		"0,"
		"\"t\":true,\"o\":{},\"a\":[1,2],\"z\":null,\"ns\":\"7\"}";
	struct json *j = NULL;
	const struct json *v = NULL;
	struct err err = ERR_INIT;
	const char *s = "default";
	uint64_t u = 1;
	int64_t i = 1;
	bool t = false;

	cr_assert(json_parse(text, sizeof(text) - 1, 16, &j, &err) == 0);
	cr_expect(json_get_str(j, "s", true, 2, &s, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	cr_expect(json_get_str(j, "n", true, 9, &s, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_TYPE);
	cr_expect(json_get_str(j, "z", false, 9, &s, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_TYPE);
	cr_expect(json_get_str(j, "missing", true, 9, &s, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_MISSING);
	cr_expect(json_get_u64(j, "neg", true, 0, 9, &u, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	cr_expect(json_get_u64(j, "ns", true, 0, 9, &u, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_TYPE);
	cr_expect(json_get_u64(j, "f", true, 0, 9, &u, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_TYPE);
	cr_expect(json_get_u64(j, "t", true, 0, 9, &u, &err) < 0);
	cr_expect(json_get_u64(j, "n", true, 6, 9, &u, &err) < 0);
	cr_expect(json_get_i64(j, "big", true, 0, INT64_MAX, &i, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	cr_expect(json_get_bool(j, "n", true, &t, &err) < 0);
	cr_expect(json_get_obj(j, "a", true, &v, &err) < 0);
	cr_expect(json_get_arr(j, "a", true, 1, &v, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_RANGE);
	cr_expect(json_get_arr(j, "o", true, 1, &v, &err) < 0);
	cr_expect(json_check_keys(j, (const char *const[]){"s", "n"}, 2, &err) < 0);
	cr_expect_eq(err.id, ERRID_SPEC_KEY);
	cr_expect_eq(u, 1);
	cr_expect_str_eq(s, "default");

	cr_expect(json_get_str(j, "missing", false, 9, &s, &err) == 0);
	cr_expect_str_eq(s, "default");
	cr_expect(json_get_str(j, "s", true, 3, &s, &err) == 0);
	cr_expect_str_eq(s, "abc");
	cr_expect(json_get_u64(j, "big", true, 0, UINT64_MAX, &u, &err) == 0);
	cr_expect_eq(u, UINT64_MAX);
	cr_expect(json_get_i64(j, "neg", true, -5, -5, &i, &err) == 0);
	cr_expect_eq(i, -5);
	cr_expect(json_get_bool(j, "t", true, &t, &err) == 0 && t);
	cr_expect(json_get_arr(j, "a", true, 2, &v, &err) == 0);
	cr_expect_eq(json_arr_len(v), 2);
	cr_expect_null(json_arr_at(v, 2));
	cr_expect(json_as_str(json_arr_at(v, 0), 9, &s, &err) < 0);
	cr_expect(json_as_str(NULL, 9, &s, &err) < 0);
	cr_expect(json_as_obj(v, &err) < 0);
	cr_expect(json_is_null(j, "z") && json_has(j, "z") && !json_is_null(j, "s"));
	json_free(j);
}

/* Every function of json.h on every kind of value: what came from outside may be any. */
Test(json, a_value_of_any_kind_may_be_looked_into)
{
	static const char text[] = "{\"values\":[null,true,7,1.5,\"s\",[1],{\"k\":1}]}";
	static const char *const keys[] = {"k"};
	const struct json *list = NULL, *child;
	struct json *j = NULL;
	struct err err = ERR_INIT;

	cr_assert(json_parse(text, sizeof(text) - 1, 16, &j, &err) == 0);
	cr_assert(json_get_arr(j, "values", true, 16, &list, &err) == 0);
	for (size_t i = 0; i < json_arr_len(list); i++) {
		const struct json *v = json_arr_at(list, i), *val;
		bool is_object = json_kind_of(v) == JSON_OBJECT, b = false;
		const char *s = NULL, *name;
		uint64_t u = 0;
		int64_t n = 0;
		double d = 0;

		for (int required = 0; required < 2; required++) {
			child = NULL;
			err = (struct err)ERR_INIT;
			cr_expect(json_get_str(v, "k", required, 8, &s, &err) < 0);
			cr_expect_eq(err.id, ERRID_SPEC_TYPE, "%zu: %s", i, err.msg);
			cr_expect(json_get_bool(v, "k", required, &b, &err) < 0);
			cr_expect(json_get_obj(v, "k", required, &child, &err) < 0);
			cr_expect(json_get_arr(v, "k", required, 8, &child, &err) < 0);
			cr_expect_eq(err.id, ERRID_SPEC_TYPE, "%zu: %s", i, err.msg);
			cr_expect_eq(json_get_u64(v, "k", required, 0, 9, &u, &err) == 0,
				     is_object);
			cr_expect_eq(json_get_i64(v, "k", required, 0, 9, &n, &err) == 0,
				     is_object);
			cr_expect_eq(json_get_number(v, "k", required, 0, 9, &d, &err) ==
					     0,
				     is_object);
		}
		cr_expect_eq(json_check_keys(v, keys, 1, &err) == 0, is_object);
		cr_expect_eq(json_as_obj(v, &err) == 0, is_object);
		cr_expect_eq(json_has(v, "k"), is_object);
		cr_expect_not(json_is_null(v, "k"));
		cr_expect_eq(json_obj_at(v, 0, &name, &val), is_object);
		cr_expect_eq(json_arr_len(v), json_kind_of(v) == JSON_ARRAY ? 1u : 0u);
		cr_expect_eq(json_as_str(v, 8, &s, &err) == 0,
			     json_kind_of(v) == JSON_STRING);
	}
	json_free(j);
}

Test(json, too_deep_a_value_fails_the_buffer_it_is_written_to)
{
	cleanup_buf struct buf out;
	struct jsonw w;

	buf_init(&out, 4096);
	jsonw_init(&w, &out);
	for (unsigned i = 0; i < JSONW_DEPTH_MAX + 8; i++)
		jsonw_arr(&w);
	for (unsigned i = 0; i < JSONW_DEPTH_MAX + 8; i++)
		jsonw_arr_end(&w);
	cr_expect_not(buf_ok(&out));
	cr_expect_eq(w.depth, 0u);
}

Test(json, writes_again)
{
	static const char text[] =
		"{\"s\":\"a\\n\",\"n\":18446744073709551615,\"i\":-9223372036854775808,"
		"\"f\":1.50e3,\"t\":true,\"z\":null,\"a\":[[],{}]}";
	struct json *j = NULL;
	struct err err = ERR_INIT;
	const char *key;
	const struct json *val;
	struct jsonw w;
	struct buf b;

	cr_assert(json_parse(text, sizeof(text) - 1, 16, &j, &err) == 0);
	buf_init(&b, 4096);
	jsonw_init(&w, &b);
	json_write(j, &w);
	cr_expect_str_eq(buf_str(&b), text);
	cr_expect(json_obj_at(j, 2, &key, &val));
	cr_expect_str_eq(key, "i");
	cr_expect_not(json_obj_at(j, 7, &key, &val));
	const void *at = NULL;
	size_t n = 0;

	while (json_obj_next(j, &at, &key, &val)) {
		const char *same = NULL;
		const struct json *other = NULL;

		cr_expect(json_obj_at(j, n++, &same, &other));
		cr_expect(same == key && other == val);
	}
	cr_expect_not(json_obj_at(j, n, &key, &val));
	at = NULL;
	cr_expect_not(json_obj_next(NULL, &at, &key, &val));
	buf_done(&b);
	json_free(j);
}
