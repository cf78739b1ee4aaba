/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/spec/spec.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(tomb_spec, .timeout = 30);

static const struct broker_key key = {"lych-the-key"};

#define SHA "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static int parse(const char *json, struct tomb_spec *s)
{
	struct err err = ERR_INIT;

	*s = (struct tomb_spec){.n_argv = 0};
	return tomb_spec_parse(json, strlen(json), s, &err);
}

static const char *const not_stored[] = {
	"",
	"[]",
	"{}",
	"{\"argv\":[]}",
	"{\"argv\":[\"\"]}",
	"{\"argv\":[1]}",
	"{\"argv\":\"ls\"}",
	"{\"argv\":[\"a\\u0000b\"]}",
	"{\"argv\":[\"a\"],\"argv\":[\"b\"]}",
	"{\"argv\":[\"a\"],\"script\":\"x\"}",
	"{\"script\":\"x\",\"interpreter\":\"bin/sh\"}",
	"{\"script\":\"x\",\"interpreter\":\"\"}",
	"{\"script\":\"x\",\"interpreter\":\"-c\"}",
	"{\"script\":\"x\",\"interpreter\":\"..\"}",
	"{\"script\":\"x\",\"interpreter\":\"/\"}",
	"{\"script\":\"x\",\"interpreter\":\"/bin//sh\"}",
	"{\"script\":\"x\",\"interpreter\":\"/bin/../sh\"}",
	"{\"argv\":[\"a\"],\"interpreter\":\"/bin/sh\"}",
	"{\"argv\":[\"a\"],\"surprise\":1}",
	"{\"argv\":[\"a\"],\"stdin\":\"x\",\"stdin_base64\":\"eA==\"}",
	"{\"argv\":[\"a\"],\"stdin_base64\":\"eA\"}",
	"{\"argv\":[\"a\"],\"stdin_stream\":\"x\"}",
	"{\"argv\":[\"a\"],\"stdin\":\"x\",\"stdin_stream\":"
	"\"0123456789abcdef0123456789abcdef\"}",
	"{\"argv\":[\"a\"],\"tty\":{\"cols\":80,\"rows\":24}}",
	"{\"argv\":[\"a\"],\"tty\":{\"cols\":0,\"rows\":24},\"stdin_stream\":"
	"\"0123456789abcdef0123456789abcdef\"}",
	"{\"argv\":[\"a\"],\"stdin_blob\":\"../../etc/passwd\"}",
	"{\"argv\":[\"a\"],\"input\":\"ABC\"}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"../x\",\"content\":\"\"}]}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"/x\",\"content\":\"\"}]}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"a/./x\",\"content\":\"\"}]}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"" SCRIPT_NAME "\",\"content\":\"\"}]}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"" SCRIPT_NAME
	"/x\",\"content\":\"\"}]}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"x\"}]}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"x\",\"content\":\"\","
	"\"base64\":\"\"}]}",
	"{\"argv\":[\"a\"],\"files\":[{\"path\":\"x\",\"content\":\"\",\"mode\":"
	"\"4755\"}]}",
	"{\"argv\":[\"a\"],\"env\":{\"LD_PRELOAD\":\"x\"}}",
	"{\"argv\":[\"a\"],\"env\":{\"A=B\":\"x\"}}",
	"{\"argv\":[\"a\"],\"env\":{\"A\":1}}",
	"{\"argv\":[\"a\"],\"limits\":{\"memory_bytes\":0}}",
	"{\"argv\":[\"a\"],\"limits\":{\"memory_bytes\":1048575}}",
	"{\"argv\":[\"a\"],\"limits\":{\"disk_bytes\":65535}}",
	"{\"argv\":[\"a\"],\"limits\":{\"output_bytes\":0}}",
	"{\"argv\":[\"a\"],\"limits\":{\"timeout_ms\":0}}",
	"{\"argv\":[\"a\"],\"limits\":{\"memory_bytes\":1e9}}",
	"{\"argv\":[\"a\"],\"limits\":{\"cpus\":9999}}",
	"{\"argv\":[\"a\"],\"limits\":{\"speed\":1}}",
	"{\"argv\":[\"a\"],\"network\":\"open\"}",
	"{\"argv\":[\"a\"],\"egress\":\"open\"}",
	"{\"argv\":[\"a\"],\"egress\":\"brokered\",\"network\":\"none\"}",
	"{\"argv\":[\"a\"],\"egress\":\"brokered\",\"env\":{\"OPENAI_API_KEY\":"
	"\"sk-of-mine\"}}",
	"{\"argv\":[\"a\"],\"egress\":\"registry\",\"env\":{\"PIP_INDEX_URL\":"
	"\"x\"}}",
	"{\"argv\":[\"a\"],\"profile\":\"root\"}",
	"{\"argv\":[\"a\"],\"grants\":[\"ptrace\"]}",
	"{\"argv\":[\"a\"],\"deps\":{\"pip\":[\"x\"]}}",
	"{\"argv\":[\"a\"],\"artifacts\":[\"/etc/*\"]}",
	"{\"argv\":[\"a\"],\"artifacts\":[\"\"]}",
	"{\"argv\":[\"a\"],\"artifacts\":[\"out/../*\"]}",
	"{\"argv\":[\"a\"],\"artifacts\":[\"out//*\"]}",
};

Test(tomb_spec, what_the_vessel_would_not_store_is_refused_here_too)
{
	for (size_t i = 0; i < sizeof(not_stored) / sizeof(not_stored[0]); i++) {
		struct tomb_spec s;

		cr_expect_lt(parse(not_stored[i], &s), 0, "%s", not_stored[i]);
		tomb_spec_done(&s);
	}
}

static int parse_interpreter(size_t len)
{
	cleanup_free char *name = xmalloc(len + 1);
	cleanup_free char *text = NULL;
	struct tomb_spec s;
	int r;

	/* components of less than 256 bytes */
	for (size_t i = 0; i < len; i++)
		name[i] = i % 200 == 0 ? '/' : 'x';
	name[len] = '\0';
	text = xasprintf("{\"script\":\"x\",\"interpreter\":\"%s\"}", name);
	r = parse(text, &s);
	tomb_spec_done(&s);
	return r;
}

Test(tomb_spec, its_bounds_are_the_vessels)
{
	struct tomb_spec s;

	cr_expect_lt(parse_interpreter(SPEC_PATH_MAX_BYTES + 1), 0);
	cr_expect_eq(parse_interpreter(SPEC_PATH_MAX_BYTES), 0);
	cr_assert_eq(parse("{\"argv\":[\"a\"],\"limits\":{\"memory_bytes\":1048576,"
			   "\"disk_bytes\":65536,\"output_bytes\":1,\"timeout_ms\":1,"
			   "\"processes\":1,\"cpus\":1}}",
			   &s),
		     0);
	cr_expect_eq(s.memory_bytes, LIMIT_MEMORY_MIN);
	cr_expect_eq(s.disk_bytes, LIMIT_DISK_MIN);
	tomb_spec_done(&s);
}

/* The block as one string, strings separated by '|'. */
static const char *block(const struct tomb_spec *s, enum tomb_spec_use use,
			 enum sbx_grade g)
{
	const struct tomb_spec_place place = {
		.grade = g, .workspace = "42.1/work", .tools = "/x/tools", .key = &key};
	static char text[4096];
	struct buf b;
	struct err err = ERR_INIT;

	buf_init(&b, sizeof(text));
	cr_assert_eq(tomb_spec_block(s, use, &place, &b, &err), 0, "%s", err.msg);
	cr_assert_lt(b.len, sizeof(text));
	cr_assert_eq(b.data[b.len - 1], '\0', "every string is terminated");
	memcpy(text, b.data, b.len);
	for (size_t i = 0; i + 1 < b.len; i++)
		if (text[i] == '\0')
			text[i] = '|';
	buf_done(&b);
	return text;
}

Test(tomb_spec, options_of_the_job_cannot_be_forged_by_its_argv)
{
	struct tomb_spec s;

	cr_assert_eq(
		parse("{\"argv\":[\"--workspace\",\"/\",\"--\"],\"env\":{\"A\":\"--ro\"},"
		      "\"limits\":{\"memory_bytes\":1048576,\"timeout_ms\":1500}}",
		      &s),
		0);
	cr_assert_str_eq(block(&s, SPEC_USE_JOB, GRADE_FULL),
			 "--grade|full|--workspace|42.1/work|--network|loopback|"
			 "--timeout|1500ms|--memory|1048576|--disk|1073741824|--file-"
			 "size|1073741824|"
			 "--processes|256|--cpus|1|--env|PATH=/usr/local/bin:/usr/bin:/"
			 "bin:/lych/bin|--env|A=--ro|--|--workspace|/|--");
	tomb_spec_done(&s);
}

Test(tomb_spec, a_script_runs_by_its_interpreter)
{
	struct tomb_spec s;

	cr_assert_eq(
		parse("{\"script\":\"echo\",\"network\":\"none\",\"profile\":\"read\"}",
		      &s),
		0);
	cr_assert(str_ends(block(&s, SPEC_USE_JOB, GRADE_FLOOR),
			   "|--env|PATH=/usr/local/bin:/usr/bin:/bin:/x/tools|--|"
			   "/bin/sh|./.lychgate-script"));
	cr_assert(str_starts(block(&s, SPEC_USE_JOB, GRADE_FLOOR),
			     "--grade|floor|--workspace-ro|42.1/work|--network|none|"));
	tomb_spec_done(&s);
}

Test(tomb_spec, unpacking_gets_the_same_limits_and_nothing_of_the_job)
{
	struct tomb_spec s;

	cr_assert_eq(
		parse("{\"argv\":[\"rm\"],\"env\":{\"A\":\"b\"},\"profile\":\"read\","
		      "\"input\":\"" SHA "\",\"limits\":{\"disk_bytes\":65536}}",
		      &s),
		0);
	cr_assert_str_eq(block(&s, SPEC_USE_UNPACK, GRADE_FULL),
			 "--grade|full|--workspace|42.1/work|--network|none|--timeout|"
			 "600000ms|--memory|536870912|--disk|65536|--file-size|65536|--"
			 "processes|256|--cpus|1|"
			 "--|tar|-x|-f|-|--no-same-owner|--no-overwrite-dir");
	tomb_spec_done(&s);
}

Test(tomb_spec, canonical_defaults_are_accepted)
{
	struct tomb_spec s;

	cr_assert_eq(
		parse("{\"request_id\":\"r\",\"argv\":[\"a\"],\"stdin\":\"\",\"files\":[]"
		      ","
		      "\"input\":null,\"env\":{},\"deps\":[],\"limits\":{},\"network\":"
		      "\"loopback\",\"egress\":\"none\",\"grants\":[],\"profile\":"
		      "\"candidate\",\"gates\":{},\"artifacts\":[],"
		      "\"priority\":50,\"retry\":\"on_lost\"}",
		      &s),
		0);
	cr_assert_null(s.stdin_data);
	tomb_spec_done(&s);
}

Test(tomb_spec, explain_is_for_the_job_not_for_the_unpacking)
{
	struct tomb_spec s;

	cr_assert_lt(parse("{\"argv\":[\"a\"],\"explain\":\"1\"}", &s), 0);
	cr_assert_eq(parse("{\"argv\":[\"a\"],\"explain\":true}", &s), 0);
	cr_assert_not_null(
		strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), "|--explain|--env|PATH="));
	cr_assert_null(strstr(block(&s, SPEC_USE_UNPACK, GRADE_FULL), "explain"));
	tomb_spec_done(&s);
	cr_assert_eq(parse("{\"argv\":[\"a\"]}", &s), 0);
	cr_assert_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), "explain"));
	tomb_spec_done(&s);
}

Test(tomb_spec, a_terminal_says_what_it_is_and_the_job_may_know_better)
{
#define AT_TERMINAL                                                                      \
	"{\"argv\":[\"a\"],\"stdin_stream\":\"0123456789abcdef0123456789abcdef\","       \
	"\"tty\":{\"cols\":97,\"rows\":31,\"term\":\"vt100\"}"
	struct tomb_spec s;

	cr_assert_eq(parse(AT_TERMINAL "}", &s), 0);
	cr_assert_eq(s.tty.cols, 97);
	cr_assert_eq(s.tty.rows, 31);
	cr_assert_not_null(
		strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), "|--env|TERM=vt100|--|a"));
	cr_assert_null(strstr(block(&s, SPEC_USE_UNPACK, GRADE_FULL), "TERM="));
	tomb_spec_done(&s);
	cr_assert_eq(parse(AT_TERMINAL ",\"env\":{\"TERM\":\"ansi\"}}", &s), 0);
	cr_assert_not_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), "|TERM=ansi|"));
	cr_assert_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), "vt100"));
	tomb_spec_done(&s);
}

Test(tomb_spec, who_may_ask_has_the_variables_of_its_broker_and_nobody_else)
{
	static const char *const sdk = "|--env|OPENAI_API_KEY=lych-the-key|";
	struct tomb_spec s;

	cr_assert_eq(parse("{\"argv\":[\"a\"]}", &s), 0);
	cr_assert_eq(s.egress, EGRESS_NONE);
	cr_assert_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), "lych-the-key"));
	tomb_spec_done(&s);

	cr_assert_eq(parse("{\"argv\":[\"a\"],\"egress\":\"brokered\"}", &s), 0);
	cr_assert_eq(s.egress, EGRESS_BROKERED);
	cr_assert_not_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), sdk));
	cr_assert_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), "PIP_INDEX_URL"));
	/* An SDK could not use its variables there. */
	cr_assert_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FLOOR), "OPENAI"));
	cr_assert_not_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FLOOR),
				  "|--env|LYCHGATE_BROKER=fd:3|--env|LYCHGATE_BROKER_KEY="
				  "lych-the-key|--|a"));
	cr_assert_null(strstr(block(&s, SPEC_USE_UNPACK, GRADE_FULL), "lych-the-key"));
	tomb_spec_done(&s);

	cr_assert_eq(parse("{\"argv\":[\"a\"],\"egress\":\"registry\"}", &s), 0);
	cr_assert_not_null(strstr(block(&s, SPEC_USE_JOB, GRADE_FULL), sdk));
	cr_assert_not_null(
		strstr(block(&s, SPEC_USE_JOB, GRADE_FULL),
		       "|PIP_INDEX_URL=http://127.0.0.1:8787/registry/pypi/simple/|"));
	tomb_spec_done(&s);
}

Test(tomb_spec, something_is_planted_in_who_may_ask)
{
	static const char planted[] = "|--env|DEPLOY_TOKEN=7d3eb8b6";
	struct tomb_spec_place place = {.grade = GRADE_FULL,
					.workspace = "42.1/work",
					.tools = "/x",
					.key = &key};
	static const struct {
		const char *spec;
		bool has;
	} rows[] = {
		{"{\"argv\":[\"a\"]}", false},
		{"{\"argv\":[\"a\"],\"egress\":\"brokered\"}", true},
		{"{\"argv\":[\"a\"],\"egress\":\"registry\"}", true},
		/* what it was given under that name it finds */
		{"{\"argv\":[\"a\"],\"egress\":\"brokered\",\"env\":{\"DEPLOY_TOKEN\":"
		 "\"mine\"}}",
		 false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_buf struct buf out = {.max = 1 << 20};
		struct tomb_spec s;
		struct err err = ERR_INIT;

		place.planted_as = "DEPLOY_TOKEN";
		place.planted = "7d3eb8b6";
		cr_assert_eq(parse(rows[i].spec, &s), 0);
		for (unsigned use = SPEC_USE_UNPACK; use <= SPEC_USE_JOB; use++) {
			cr_assert_eq(tomb_spec_block(&s, (enum tomb_spec_use)use, &place,
						     &out, &err),
				     0);
			for (size_t k = 0; k < out.len; k++)
				out.data[k] = out.data[k] ? out.data[k] : '|';
			cr_expect_eq(memmem(out.data, out.len, planted,
					    sizeof(planted) - 1) != NULL,
				     rows[i].has && use == SPEC_USE_JOB, "%zu %u", i,
				     use);
		}
		tomb_spec_done(&s);
	}
}

Test(tomb_spec, bytes_of_files_and_stdin)
{
	struct tomb_spec s;

	cr_assert_eq(
		parse("{\"argv\":[\"a\"],\"stdin_base64\":\"AAH/\",\"files\":[{\"path\":"
		      "\"a/b\",\"base64\":\"AA==\",\"mode\":\"0755\"},{\"path\":\"c\","
		      "\"blob\":\"" SHA "\"}]}",
		      &s),
		0);
	cr_assert_eq(s.stdin_len, 3);
	cr_assert_eq(memcmp(s.stdin_data, "\0\1\377", 3), 0);
	cr_assert_eq(s.n_files, 2);
	cr_assert_eq(s.files[0].mode, 0755);
	cr_assert_eq(s.files[0].len, 1);
	cr_assert_null(s.files[1].data);
	cr_assert_str_eq(s.files[1].blob, SHA);
	tomb_spec_done(&s);
}
