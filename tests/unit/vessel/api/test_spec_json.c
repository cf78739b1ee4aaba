/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "common/mem.h"
#include "common/proto.h"
#include "vessel/api/spec.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

TestSuite(spec_json, .timeout = 10);

static int parse(const void *data, size_t len, struct spec *ret, struct err *err)
{
	struct conf conf;

	conf_defaults(&conf);
	int r = spec_parse(data, len, &conf, ret, err);
	conf_done(&conf);
	return r;
}

struct refusal {
	char json[512];
	size_t len;  /* 0: strlen */
	int id, id2; /* id2: also acceptable */
};

#define R(text, code) {.json = text, .id = ERRID_##code}
#define ARGV "\"argv\":[\"a\"]"
#define STREAM "0123456789abcdef0123456789abcdef"
#define TTY "{\"cols\":80,\"rows\":24}"
#define AT(tty) "{" ARGV ",\"stdin_stream\":\"" STREAM "\",\"tty\":" tty "}"
#define FILE_PATH(p) "{" ARGV ",\"files\":[{\"path\":\"" p "\",\"content\":\"\"}]}"

static struct refusal refusals[] = {
	/* not JSON, or not strict */
	R("", SPEC_JSON),
	R("[]", SPEC_JSON),
	R("{" ARGV, SPEC_JSON),
	R("{" ARGV "} x", SPEC_JSON),
	R("{" ARGV "," ARGV "}", SPEC_JSON),
	R("{" ARGV ",\"\\u0061rgv\":[\"b\"]}", SPEC_JSON),
	R("{'argv':['a']}", SPEC_JSON),
	R("{" ARGV ",\"priority\":NaN}", SPEC_JSON),
	R("{" ARGV ",\"priority\":01}", SPEC_JSON),
	R("{\"argv\":[\"\xff\"]}", SPEC_JSON),
	R("{\"argv\":[\"\xc0\xaf\"]}", SPEC_JSON),
	R("{\"argv\":[\"\xed\xa0\x80\"]}", SPEC_JSON),
	R("{\"argv\":[\"a\tb\"]}", SPEC_JSON),
	R("{" ARGV ",\"deps\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}", SPEC_JSON),
	{.json = "{\"argv\":[\"a\0b\"]}", .len = 16, .id = ERRID_SPEC_JSON},
	{.json = "{\"argv\":[\"a\\u0000b\"]}",
	 .id = ERRID_SPEC_JSON,
	 .id2 = ERRID_SPEC_ARGV},
	{.json = "{" ARGV ",\"env\":{\"A\":\"x\\u0000\"}}",
	 .id = ERRID_SPEC_JSON,
	 .id2 = ERRID_SPEC_TYPE},
	/* unknown, missing, mistyped */
	R("{" ARGV ",\"surprise\":1}", SPEC_KEY),
	R("{}", SPEC_MISSING),
	R("{\"argv\":null}", SPEC_TYPE),
	R("{\"argv\":\"a\"}", SPEC_TYPE),
	R("{" ARGV ",\"priority\":\"1\"}", SPEC_TYPE),
	R("{" ARGV ",\"priority\":101}", SPEC_RANGE),
	R("{" ARGV ",\"priority\":-1}", SPEC_RANGE),
	{.json = "{" ARGV ",\"priority\":99999999999999999999}",
	 .id = ERRID_SPEC_RANGE,
	 .id2 = ERRID_SPEC_JSON},
	R("{" ARGV ",\"limits\":{\"memory\":1}}", SPEC_KEY),
	R("{" ARGV ",\"files\":[{\"path\":\"x\",\"content\":\"\",\"owner\":0}]}",
	  SPEC_KEY),
	R("{" ARGV ",\"files\":[{\"content\":\"\"}]}", SPEC_MISSING),
	R("{" ARGV ",\"files\":[\"x\"]}", SPEC_TYPE),
	R("{" ARGV ",\"network\":\"host\"}", SPEC_RANGE),
	R("{" ARGV ",\"profile\":\"root\"}", SPEC_RANGE),
	R("{" ARGV ",\"retry\":\"always\"}", SPEC_RANGE),
	R("{" ARGV ",\"profile\":\"verify\"}", SPEC_RANGE),
	R("{" ARGV ",\"privacy\":\"public\"}", SPEC_UNSUPPORTED),
	R("{" ARGV ",\"explain\":1}", SPEC_TYPE),
	R("{" ARGV ",\"explain\":\"yes\"}", SPEC_TYPE),
	R("{" ARGV ",\"explain\":null}", SPEC_TYPE),
	R("{" ARGV ",\"request_id\":\"\"}", SPEC_RANGE),
	R("{" ARGV ",\"request_id\":\"-x\"}", SPEC_RANGE),
	R("{" ARGV ",\"request_id\":\"a b\"}", SPEC_RANGE),
	R("{" ARGV ",\"request_id\":\"a/b\"}", SPEC_RANGE),
	/* the command */
	R("{\"argv\":[]}", SPEC_ARGV),
	R("{\"argv\":[\"\"]}", SPEC_ARGV),
	R("{\"argv\":[1]}", SPEC_ARGV),
	R("{" ARGV ",\"script\":\"x\"}", SPEC_ARGV),
	R("{" ARGV ",\"interpreter\":\"sh\"}", SPEC_ARGV),
	R("{\"script\":\"x\",\"interpreter\":\"./sh\"}", SPEC_PATH),
	R("{\"script\":\"x\",\"interpreter\":\"-c\"}", SPEC_PATH),
	R("{\"script\":\"x\",\"interpreter\":\"\"}", SPEC_PATH),
	R("{\"script\":\"x\",\"interpreter\":\"/bin/../sh\"}", SPEC_PATH),
	R("{" ARGV ",\"stdin\":\"x\",\"stdin_base64\":\"\"}", SPEC_RANGE),
	R("{" ARGV ",\"stdin_base64\":\"AAA\"}", SPEC_RANGE),
	R("{" ARGV ",\"stdin_stream\":\"x\"}", SPEC_RANGE),
	R("{" ARGV ",\"stdin_stream\":\"0123456789ABCDEF0123456789ABCDEF\"}", SPEC_RANGE),
	R("{" ARGV ",\"stdin_stream\":\"" STREAM "\",\"stdin\":\"\"}", SPEC_RANGE),
	R("{" ARGV ",\"stdin_stream\":\"" STREAM "\",\"retry\":\"on_lost\"}", SPEC_RANGE),
	R("{" ARGV ",\"tty\":" TTY "}", SPEC_MISSING),
	R(AT("null"), SPEC_TYPE),
	R(AT("true"), SPEC_TYPE),
	R(AT("{}"), SPEC_MISSING),
	R(AT("{\"cols\":80}"), SPEC_MISSING),
	R(AT("{\"cols\":0,\"rows\":24}"), SPEC_RANGE),
	R(AT("{\"cols\":80,\"rows\":4097}"), SPEC_RANGE),
	R(AT("{\"cols\":80.5,\"rows\":24}"), SPEC_TYPE),
	R(AT("{\"cols\":80,\"rows\":24,\"raw\":true}"), SPEC_KEY),
	R(AT("{\"cols\":80,\"rows\":24,\"term\":1}"), SPEC_TYPE),
	R(AT("{\"cols\":80,\"rows\":24,\"term\":\"\"}"), SPEC_RANGE),
	R(AT("{\"cols\":80,\"rows\":24,\"term\":\"../x\"}"), SPEC_RANGE),
	R(AT("{\"cols\":80,\"rows\":24,\"term\":\"a b\"}"), SPEC_RANGE),
	R(AT("{\"cols\":80,\"rows\":24,\"term\":\"abcdefghijklmnopqrstuvwxyz1234567\"}"),
	  SPEC_RANGE),
	R("{" ARGV ",\"tty\":" TTY ",\"stdin_stream\":\"" STREAM
	  "\",\"retry\":\"on_lost\"}",
	  SPEC_RANGE),
	R("{" ARGV ",\"stdin_base64\":\"AAB=\"}", SPEC_RANGE),
	R("{" ARGV ",\"stdin_blob\":\"abc\"}", SPEC_RANGE),
	R("{" ARGV ",\"input\":\"../../etc/passwd\"}", SPEC_RANGE),
	/* paths */
	R(FILE_PATH(""), SPEC_PATH),
	R(FILE_PATH("/etc/passwd"), SPEC_PATH),
	R(FILE_PATH(".."), SPEC_PATH),
	R(FILE_PATH("../x"), SPEC_PATH),
	R(FILE_PATH("a/../x"), SPEC_PATH),
	R(FILE_PATH("a/./x"), SPEC_PATH),
	R(FILE_PATH("a//x"), SPEC_PATH),
	R(FILE_PATH("a/"), SPEC_PATH),
	R(FILE_PATH("a\\nb"), SPEC_PATH),
	R(FILE_PATH("a\\u007fb"), SPEC_PATH),
	R(FILE_PATH(".lychgate-script"), SPEC_PATH),
	R("{" ARGV ",\"artifacts\":[\"../*\"]}", SPEC_PATH),
	R("{" ARGV ",\"artifacts\":[\"/etc/*\"]}", SPEC_PATH),
	R("{" ARGV ",\"files\":[{\"path\":\"x\",\"content\":\"\"},{\"path\":\"x\","
	  "\"content\":\"\"}]}",
	  SPEC_PATH),
	R("{" ARGV ",\"files\":[{\"path\":\"x/"
	  "y\",\"content\":\"\"},{\"path\":\"x-\",\"content\":\"\"},"
	  "{\"path\":\"x\",\"content\":\"\"}]}",
	  SPEC_PATH),
	R("{" ARGV ",\"files\":[{\"path\":\"x\",\"content\":\"\",\"base64\":\"\"}]}",
	  SPEC_MISSING),
	R("{" ARGV ",\"files\":[{\"path\":\"x\"}]}", SPEC_MISSING),
	R("{" ARGV ",\"files\":[{\"path\":\"x\",\"content\":\"\",\"mode\":\"4755\"}]}",
	  SPEC_RANGE),
	/* the environment */
	R("{" ARGV ",\"env\":{\"LD_PRELOAD\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"BASH_ENV\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"PYTHONSTARTUP\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"NODE_OPTIONS\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"PATH\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"lower-\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"1A\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"A=B\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"\":\"x\"}}", SPEC_ENV),
	R("{" ARGV ",\"env\":{\"A\":1}}", SPEC_TYPE),
	/* limits and what is not there yet */
	R("{" ARGV ",\"limits\":{\"memory_bytes\":1}}", SPEC_RANGE),
	R("{" ARGV ",\"limits\":{\"memory_bytes\":9000000000000}}", SPEC_LIMIT),
	R("{" ARGV ",\"limits\":{\"cpus\":65}}", SPEC_LIMIT),
	R("{" ARGV ",\"limits\":{\"processes\":0}}", SPEC_RANGE),
	R("{" ARGV ",\"limits\":{\"timeout_ms\":0}}", SPEC_RANGE),
	R("{" ARGV ",\"limits\":{\"timeout_ms\":1.5}}", SPEC_TYPE),
	/* codex.yaml allows nothing here */
	R("{" ARGV ",\"egress\":\"brokered\"}", WARD_EMPTY),
	R("{" ARGV ",\"egress\":\"registry\"}", WARD_EMPTY),
	R("{" ARGV ",\"egress\":\"brokered\",\"network\":\"none\"}", SPEC_RANGE),
	R("{" ARGV ",\"egress\":\"brokered\",\"env\":{\"OPENAI_API_KEY\":\"x\"}}",
	  SPEC_ENV),
	R("{" ARGV ",\"egress\":\"registry\",\"env\":{\"PIP_INDEX_URL\":\"x\"}}",
	  SPEC_ENV),
	R("{" ARGV ",\"egress\":\"open\"}", SPEC_RANGE),
	R("{" ARGV ",\"deps\":[\"requests\"]}", SPEC_TYPE),
	R("{" ARGV ",\"deps\":{\"pip\":[\"six\"]}}", SPEC_KEY),
	R("{" ARGV ",\"deps\":null}", SPEC_TYPE),
	R("{" ARGV ",\"deps\":{\"pypi\":\"six\"}}", SPEC_TYPE),
	R("{" ARGV ",\"deps\":{\"pypi\":[\"six @ https://evil/six.whl\"]}}", SPEC_DEPS),
	R("{" ARGV ",\"deps\":{\"npm\":[\"--registry=https://evil/\"]}}", SPEC_DEPS),
	R("{" ARGV ",\"deps\":{\"npm\":[\"x\"],\"npm_lock\":{}}}", SPEC_DEPS),
	R("{" ARGV ",\"deps\":{\"npm_lock\":true}}", SPEC_TYPE),
	R("{" ARGV ",\"deps\":{\"npm_lock\":{\"lockfileVersion\":3,\"packages\":{\"\":{},"
	  "\"a\":{}}}}}",
	  SPEC_DEPS),
	R("{" ARGV
	  ",\"deps\":{\"npm_lock\":{\"lockfileVersion\":3,\"packages\":{\"\":{}}}}}",
	  REGISTRY_NONE),
	R("{" ARGV ",\"deps\":{\"npm\":[\"x\"]}}", REGISTRY_NONE),
	R("{" ARGV ",\"deps\":{\"pypi\":[\"x\"]}}", REGISTRY_NONE),
	R("{" ARGV ",\"deps\":{\"crates\":[\"x\"]}}", SPEC_KEY),
	R("{" ARGV ",\"deps\":{\"cargo\":[\"x@git+https://evil/x\"]}}", SPEC_DEPS),
	R("{" ARGV ",\"deps\":{\"go\":[\"example.org/x@main\"]}}", SPEC_DEPS),
	R("{" ARGV ",\"deps\":{\"cargo\":[\"x\"]}}", REGISTRY_NONE),
	R("{" ARGV ",\"deps\":{\"go\":[\"example.org/x@v1.0.0\"]}}", REGISTRY_NONE),
	R("{" ARGV ",\"grants\":{\"net\":true}}", SPEC_UNSUPPORTED),
	R("{" ARGV ",\"gates\":\"\"}", SPEC_UNSUPPORTED),
};

ParameterizedTestParameters(spec_json, refused)
{
	return cr_make_param_array(struct refusal, refusals, ARRAY_SIZE(refusals));
}

ParameterizedTest(struct refusal *r, spec_json, refused)
{
	struct spec s;
	struct err err = ERR_INIT;
	size_t len = r->len ? r->len : strlen(r->json);

	cr_assert_lt(parse(r->json, len, &s, &err), 0, "accepted: %s", r->json);
	cr_assert((int)err.id == r->id || (r->id2 && (int)err.id == r->id2),
		  "%s: %s %s (wanted %s)", r->json, err_text(&err), err.msg,
		  err_info((enum err_id)r->id)->text);
	cr_assert_null(s.root);
}

static char *repeat(const char *head, const char *item, size_t n, const char *tail)
{
	struct buf b;

	buf_init(&b, (size_t)8 << 20);
	buf_adds(&b, head);
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, "%s%s", i ? "," : "", item);
	buf_adds(&b, tail);
	return buf_take(&b, NULL);
}

static int parse_text(char *json, enum err_id *ret)
{
	struct spec s;
	struct err err = ERR_INIT;
	int r = parse(json, strlen(json), &s, &err);

	*ret = err.id;
	spec_done(&s);
	free(json);
	return r;
}

Test(spec_json, counts_are_capped)
{
	enum err_id id;

	cr_assert_eq(parse_text(repeat("{\"argv\":[", "\"a\"", 256, "]}"), &id), 0);
	cr_assert_lt(parse_text(repeat("{\"argv\":[", "\"a\"", 257, "]}"), &id), 0);
	cr_assert_eq(id, ERRID_SPEC_ARGV);
	cr_assert_eq(
		parse_text(repeat("{" ARGV ",\"artifacts\":[", "\"*\"", 64, "]}"), &id),
		0);
	cr_assert_lt(
		parse_text(repeat("{" ARGV ",\"artifacts\":[", "\"*\"", 65, "]}"), &id),
		0);
	cr_assert_lt(parse_text(repeat("{" ARGV ",\"files\":[",
				       "{\"path\":\"x\",\"content\":\"\"}", 1025, "]}"),
				&id),
		     0);
	cr_assert_lt(parse_text(repeat("{\"argv\":[\"", "xxxxxxxx", 4096, "\"]}"), &id),
		     0);
	cr_assert_eq(id, ERRID_SPEC_ARGV);
}

Test(spec_json, size_is_capped)
{
	enum err_id id;
	struct spec s;
	struct err err = ERR_INIT;
	char *huge =
		repeat("{\"script\":\"", "xxxxxxxxxxxxxxx", (1 << 20) / 16 + 1, "\"}");

	cr_assert_lt(parse(huge, strlen(huge), &s, &err), 0);
	cr_assert_eq(err.id, ERRID_SPEC_SIZE);
	free(huge);
	/* fits as sent, but not as stored: each DEL becomes six bytes */
	char *grows =
		repeat("{\"script\":\"", "\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 100000, "\"}");
	err = (struct err)ERR_INIT;
	cr_assert_eq(parse(grows, strlen(grows), &s, &err), 0, "%s", err.msg);
	struct buf b;
	buf_init(&b, SPEC_MAX_BYTES);
	cr_assert_lt(spec_write(&s, &b, &err), 0);
	cr_assert_eq(err.id, ERRID_SPEC_SIZE);
	buf_done(&b);
	spec_done(&s);
	free(grows);
	(void)id;
}

static char *canonical(const char *json)
{
	struct spec s;
	struct err err = ERR_INIT;
	struct buf b;

	cr_assert_eq(parse(json, strlen(json), &s, &err), 0, "%s: %s", json, err.msg);
	if (!*s.request_id)
		cr_assert_eq(spec_set_request_id(&s, "made-up", &err), 0);
	buf_init(&b, SPEC_MAX_BYTES);
	cr_assert_eq(spec_write(&s, &b, &err), 0);
	spec_done(&s);
	return buf_take(&b, NULL);
}

Test(spec_json, defaults_are_written_out)
{
	char *c = canonical("{\"argv\":[\"true\"]}");

	cr_assert_str_eq(
		c,
		"{\"request_id\":\"made-up\",\"argv\":[\"true\"],\"stdin\":\"\","
		"\"files\":[],"
		"\"env\":{},\"limits\":{\"memory_bytes\":536870912,\"disk_bytes\":"
		"1073741824,"
		"\"output_bytes\":67108864,\"timeout_ms\":600000,\"processes\":256,"
		"\"cpus\":1},"
		"\"network\":\"loopback\",\"egress\":\"none\",\"profile\":\"candidate\","
		"\"artifacts\":[],\"priority\":50,"
		"\"retry\":\"on_lost\"}");
	free(c);
}

Test(spec_json, explain_is_written_only_when_asked_for)
{
	char *with = canonical("{\"argv\":[\"true\"],\"explain\":true}");
	char *without = canonical("{\"argv\":[\"true\"],\"explain\":false}");
	char *plain = canonical("{\"argv\":[\"true\"]}");

	cr_assert_not_null(strstr(with, ",\"explain\":true}"));
	cr_assert_str_eq(without, plain);
	free(with);
	free(without);
	free(plain);
}

Test(spec_json, a_streamed_stdin_is_never_given_twice)
{
	char *c = canonical("{" ARGV ",\"stdin_stream\":\"" STREAM "\"}");

	cr_assert_not_null(strstr(c, ",\"stdin_stream\":\"" STREAM "\","));
	cr_assert_null(strstr(c, "\"stdin\":"));
	cr_assert_not_null(strstr(c, "\"retry\":\"never\""));
	free(c);
}

Test(spec_json, a_terminal_is_stored_whole_and_only_where_one_is_wished)
{
	char *c = canonical(AT("{\"rows\":24,\"cols\":80}"));

	cr_assert_not_null(strstr(c, ",\"tty\":{\"cols\":80,\"rows\":24,\"term\":"
				     "\"xterm-256color\"}}"));
	free(c);
	c = canonical(AT("{\"cols\":1,\"rows\":4096,\"term\":\"vt100\"}"));
	cr_assert_not_null(strstr(c, "\"rows\":4096,\"term\":\"vt100\""));
	free(c);
	c = canonical("{" ARGV ",\"stdin_stream\":\"" STREAM "\"}");
	cr_assert_null(strstr(c, "tty"));
	free(c);
}

Test(spec_json, canonical_form_is_stable)
{
	static const char *const same[] = {
		"{\"request_id\":\"r\",\"env\":{\"B\":\"2\",\"A\":\"1\"},\"argv\":[\"a\","
		"\"\"],"
		"\"priority\":50,\"files\":[{\"mode\":\"0644\",\"content\":\"x\","
		"\"path\":\"p\"}]}",
		" {\"argv\" : [\"\\u0061\",\"\"] , "
		"\"files\":[{\"path\":\"p\",\"content\":\"x\"}],"
		"\"env\":{\"A\":\"1\",\"B\":\"2\"},\"request_id\":\"r\",\"deps\":[],"
		"\"gates\":{}}\n",
	};
	char *a = canonical(same[0]), *b = canonical(same[1]);
	char *again = canonical(a);

	cr_assert_str_eq(a, b);
	cr_assert_str_eq(a, again);
	free(a);
	free(b);
	free(again);
}

Test(spec_json, neighbours_of_a_file_are_not_below_it)
{
	enum err_id id;

	cr_assert_eq(parse_text(xstrdup("{" ARGV ",\"files\":["
					"{\"path\":\"a\",\"content\":\"\"},"
					"{\"path\":\"a-\",\"content\":\"\"},"
					"{\"path\":\"a.b/c\",\"content\":\"\"},"
					"{\"path\":\"ab\",\"content\":\"\"}]}"),
				&id),
		     0);
}

Test(spec_json, blobs_are_listed)
{
	static const char json[] =
		"{" ARGV ",\"input\":"
		"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
		"\"stdin_blob\":"
		"\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\","
		"\"files\":[{\"path\":\"x\",\"content\":\"\"},{\"path\":\"y\",\"blob\":"
		"\"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc\"}]}";
	struct spec s;
	struct err err = ERR_INIT;

	cr_assert_eq(parse(json, sizeof(json) - 1, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(spec_blobs(&s), 3);
	cr_assert_eq(spec_blob(&s, 0)[0], 'a');
	cr_assert_eq(spec_blob(&s, 1)[0], 'b');
	cr_assert_eq(spec_blob(&s, 2)[0], 'c');
	cr_assert_null(spec_blob(&s, 3));
	spec_done(&s);
}

/* With a rule that permits something it is kept, and travels to the tomb. */
Test(spec_json, egress_is_taken_where_the_ward_could_permit_something)
{
	static const char text[] =
		"version: \"1\"\n"
		"registries: {npm: {url: \"https://npm.example.org\"}}\n"
		"ward:\n- {host: a.example, action: allow}\n"
		"- {registry: npm, action: deny}\n";
	static const char brokered[] = "{" ARGV ",\"egress\":\"brokered\"}";
	static const char registry[] = "{" ARGV ",\"egress\":\"registry\"}";
	cleanup_spec struct spec s = {0};
	cleanup_buf struct buf out = {0};
	struct err err = ERR_INIT;
	struct conf conf;

	buf_init(&out, SPEC_MAX_BYTES);
	cr_assert(conf_parse(text, strlen(text), &conf, &err) == 0, "%s", err.msg);
	cr_expect(spec_parse(registry, strlen(registry), &conf, &s, &err) < 0);
	cr_expect_eq(err.id, ERRID_WARD_EMPTY, "its only rule denies");
	cr_assert(spec_parse(brokered, strlen(brokered), &conf, &s, &err) == 0, "%s",
		  err.msg);
	cr_expect_eq(s.egress, EGRESS_BROKERED);
	cr_assert(spec_set_request_id(&s, "a", &err) == 0 &&
		  spec_write(&s, &out, &err) == 0);
	cr_expect(strstr(buf_str(&out), "\"egress\":\"brokered\"") != NULL);
	conf_done(&conf);
}
