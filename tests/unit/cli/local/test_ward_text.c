/* SPDX-License-Identifier: Apache-2.0 */
/* One more rule in the text of a codex.yaml, and nothing else. */
#include "cli/local/ward_text.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(ward_text, .timeout = 10);

#define V "version: \"1\"\n"
#define RULE "{host: a.example, method: GET, path: \"/x\", action: allow}"
#define OLD "{host: b.example, action: deny}"

static void refused(const char *text)
{
	cleanup_buf struct buf out = {.max = CONF_FILE_MAX_BYTES};
	struct err err = ERR_INIT;

	cr_assert_lt(ward_text_add(text, RULE, &out, &err), 0, "%s", text);
}

static void becomes(const char *text, const char *want)
{
	cleanup_buf struct buf out = {.max = CONF_FILE_MAX_BYTES};
	struct err err = ERR_INIT;

	cr_assert_eq(ward_text_add(text, RULE, &out, &err), 0, "%s: %s", text, err.msg);
	cr_assert_str_eq(buf_str(&out), want);
}

Test(ward_text, what_only_a_person_changes)
{
	refused(V "ward: []\n");
	refused(V "ward: [" OLD "]\n");
	refused(V "\"ward\":\n  - " OLD "\n");
}

Test(ward_text, it_is_the_last_of_the_list)
{
	becomes(V, V "\nward:\n  - " RULE "\n");
	becomes(V "ward:\n  - " OLD "\n", V "ward:\n  - " OLD "\n  - " RULE "\n");
	becomes(V "ward:\n- " OLD "\n", V "ward:\n- " OLD "\n- " RULE "\n");
	becomes(V "ward:\n  - " OLD, V "ward:\n  - " OLD "\n  - " RULE "\n");
	becomes(V "ward: # mine\n\n  # why\n  - host: b.example\n    action: deny\n\n# "
		  "next\ntomb: {slots: 2}\n",
		V "ward: # mine\n\n  # why\n  - host: b.example\n    action: deny\n  "
		  "- " RULE "\n\n# next\ntomb: {slots: 2}\n");
}

static int write_rule(const char *path, const char *reason, struct buf *out)
{
	const struct ward_rule_text r = {
		.host = "a.example", .method = "GET", .path = path, .reason = reason};
	struct err err = ERR_INIT;

	return ward_rule_write(&r, out, &err);
}

Test(ward_text, a_rule_that_the_file_cannot_say)
{
	static const char *const bad[] = {"/\"'", "/a\\b", "/a\nb", "/a\tb", "/\x7f"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cleanup_buf struct buf out = {.max = 4096};

		cr_assert_lt(write_rule(bad[i], NULL, &out), 0, "%zu", i);
	}
	cleanup_buf struct buf a = {.max = 4096}, b = {.max = 4096}, c = {.max = 4096};

	cr_assert_lt(write_rule("/x", "say \"it's\"", &a), 0);
	cr_assert_eq(write_rule("/x", NULL, &b), 0);
	cr_assert_str_eq(buf_str(&b), RULE);
	cr_assert_eq(write_rule("/x", "say \"so\"", &c), 0);
	cr_assert(strstr(buf_str(&c), "reason: 'say \"so\"'"));
}
