/* SPDX-License-Identifier: Apache-2.0 */
/* The key replies of a rule of the ward. */
#include "common/conf/conf.h"
#include "tests/unit/common/conf/ward_rule.h"

Test(conf_replies, refuses)
{
	static const struct {
		const char *rule, *says;
	} bad[] = {
		{"{host: a.example, replies: any, action: allow}", "text or binary"},
		{"{host: a.example, replies: Binary, action: allow}", "text or binary"},
		{"{host: a.example, replies: yes, action: allow}", "text or binary"},
		{"{host: a.example, replies: binary, action: deny}",
		 "only where a host is allowed"},
		{"{host: a.example, replies: text, action: deny}",
		 "only where a host is allowed"},
		{"{portal: main, replies: binary, action: allow}",
		 "only where a host is allowed"},
		{"{registry: npm, replies: binary, action: allow}",
		 "only where a host is allowed"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(bad[i].rule, ": replies: ", bad[i].says);
}

Test(conf_replies, text_unless_it_says_binary)
{
	static const char text[] =
		MAIN "  - {host: a.example, action: allow}\n"
		     "  - {host: a.example, action: allow, replies: text}\n"
		     "  - {host: \"*.a.example\", action: limit, limit: 1/min, replies: "
		     "binary}\n"
		     "  - {host: a.example, action: deny}\n";
	static const enum ward_replies want[] = {WARD_TEXT, WARD_TEXT, WARD_BINARY,
						 WARD_TEXT};
	struct err err = ERR_INIT;
	struct conf c;

	cr_assert_eq(conf_parse(text, strlen(text), &c, &err), 0, "%s", err.msg);
	cr_assert_eq(c.broker.n_rules, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect_eq(c.broker.rule[i].replies, want[i], "%zu", i);
	cr_expect_str_eq(ward_replies_name(WARD_BINARY), "binary");
	conf_done(&c);
}
