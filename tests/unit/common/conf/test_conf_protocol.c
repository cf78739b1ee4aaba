/* SPDX-License-Identifier: Apache-2.0 */
/* The key protocol of a rule of the ward. */
#include "common/conf/conf.h"
#include "tests/unit/common/conf/ward_rule.h"

Test(conf_protocol, refuses)
{
	static const struct {
		const char *rule, *says;
	} bad[] = {
		{"{host: a.example, protocol: svn, action: allow}", ": protocol: git"},
		{"{host: a.example, protocol: git, action: deny}",
		 ": protocol: only where a host is allowed"},
		{"{host: a.example, protocol: git, method: POST, action: allow}",
		 ": method: not beside protocol"},
		{"{host: a.example, protocol: git, replies: binary, action: allow}",
		 ": replies: not beside protocol"},
		{"{host: a.example, push: allow, action: allow}",
		 ": push: allow, beside protocol: git"},
		{"{host: a.example, protocol: git, push: deny, action: allow}",
		 ": push: allow, beside protocol: git"},
		{"{portal: main, push: allow, action: allow}",
		 ": scheme, port, method, path, protocol"},
		{"{portal: main, protocol: git, action: allow}",
		 ": scheme, port, method, path, protocol"},
		{"{registry: npm, protocol: git, action: allow}",
		 ": scheme, port, method, path, protocol"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(bad[i].rule, "", bad[i].says);
}

Test(conf_protocol, a_rule_of_gits_has_no_method)
{
	static const char text[] =
		MAIN "  - {host: a.example, action: allow}\n"
		     "  - {host: a.example, protocol: git, action: allow}\n"
		     "  - {host: a.example, protocol: git, action: limit, limit: 9/min, "
		     "push: allow}\n";
	struct err err = ERR_INIT;
	struct conf c;

	cr_assert_eq(conf_parse(text, strlen(text), &c, &err), 0, "%s", err.msg);
	cr_assert_eq(c.broker.n_rules, 3);
	cr_expect_eq(c.broker.rule[0].protocol, WARD_HTTP_ANY);
	for (size_t i = 1; i < 3; i++) {
		cr_expect_eq(c.broker.rule[i].protocol, WARD_GIT);
		cr_expect_eq(c.broker.rule[i].push, i == 2);
		cr_expect_null(c.broker.rule[i].method);
		cr_expect_eq(c.broker.rule[i].port, 443);
	}
	cr_expect_str_eq(ward_protocol_name(WARD_GIT), "git");
	cr_expect_null(ward_protocol_name(WARD_HTTP_ANY));
	conf_done(&c);
}
