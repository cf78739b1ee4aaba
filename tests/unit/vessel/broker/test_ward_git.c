/* SPDX-License-Identifier: Apache-2.0 */
/* Rules with protocol: git. */
#include "tests/unit/vessel/broker/ward_asks.h"
#include "vessel/broker/ward.h"

#define READ "service=git-upload-pack"
#define WRITE "service=git-receive-pack"

static const struct {
	const char *method, *path, *query;
	enum ward_match match;
	enum git_request git;
} rows[] = {
	{"GET", "/team/a.git/info/refs", NULL, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/info/refs", "", WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/info/refs", READ "&x=1", WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/info/refs", "service=git-upload-archive",
	 WARD_OTHER_PROTOCOL, GIT_NONE},
	{"HEAD", "/team/a.git/info/refs", READ, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"POST", "/team/a.git/info/refs", READ, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/HEAD", NULL, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/objects/info/packs", NULL, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/info%2frefs", READ, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/git-upload-pack", NULL, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"PUT", "/team/a.git/git-upload-pack", NULL, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"POST", "/team/a.git/git-upload-pack", "x", WARD_OTHER_PROTOCOL, GIT_NONE},
	{"POST", "/team/a.git/git-upload-archive", NULL, WARD_OTHER_PROTOCOL, GIT_NONE},
	{"GET", "/team/a.git/info/refs", WRITE, WARD_PUSHES, GIT_NONE},
	{"POST", "/team/a.git/git-receive-pack", NULL, WARD_PUSHES, GIT_NONE},
	{"GET", "/other/a.git/info/refs", READ, WARD_OTHER_PATH, GIT_NONE},
	{"GET", "/teams/a.git/info/refs", READ, WARD_OTHER_PATH, GIT_NONE},
	{"GET", "/team/..%2fother/info/refs", READ, WARD_OTHER_PATH, GIT_NONE},
	{"GET", "/team/a.git/info/refs", READ, WARD_MATCHES, GIT_REFS},
	{"POST", "/team/a.git/git-upload-pack", NULL, WARD_MATCHES, GIT_FETCH},
};

Test(ward, gits_protocol_is_its_own_requests_and_no_other)
{
	struct conf c = conf_with(
		"- {host: g.example, path: /team, protocol: git, action: allow}\n"
		"- {host: g.example, path: /team/no.git, action: deny}\n"
		"- {host: w.example, action: allow}\n");
	struct ward_verdict v;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ward_ask ask =
			fetch_of(rows[i].method, true, "g.example", 443, rows[i].path);
		bool ok = rows[i].match == WARD_MATCHES;

		ask.query = rows[i].query;
		cr_expect_eq(ward_match(&c.broker.rule[0], &ask), rows[i].match, "%zu",
			     i);
		cr_expect_eq(ward_decide(&c.broker, &ask, &v, &err) == 0, ok, "%zu", i);
		cr_expect_eq(v.git, rows[i].git, "%zu", i);
	}
	struct ward_ask ask =
		fetch_of("GET", true, "g.example", 443, "/team/no.git/info/refs");

	ask.query = READ;
	cr_expect_lt(ward_decide(&c.broker, &ask, &v, &err), 0, "another rule denies it");
	ask.host = "w.example";
	cr_expect_eq(ward_decide(&c.broker, &ask, &v, &err), 0);
	cr_expect_eq(v.git, GIT_NONE,
		     "by a rule that is not git's it is a fetch like any");
	cr_expect_eq(ward_could_permit(&c.broker, IDENTITY_OWNER, EGRESS_BROKERED, &err),
		     0);
	conf_done(&c);
}

Test(ward, a_push_needs_a_rule_that_says_so)
{
	struct conf c = conf_with(
		"- {host: g.example, path: /team, protocol: git, action: allow}\n"
		"- {host: g.example, path: /team/mine.git, protocol: git, push: allow, "
		"action: "
		"allow}\n");
	static const struct {
		const char *method, *path, *query;
		enum git_request git;
	} can[] = {
		{"GET", "/team/mine.git/info/refs", READ, GIT_REFS},
		{"GET", "/team/mine.git/info/refs", WRITE, GIT_PUSH_REFS},
		{"POST", "/team/mine.git/git-receive-pack", NULL, GIT_PUSH},
		{"POST", "/team/a.git/git-receive-pack", NULL, GIT_NONE},
		{"GET", "/team/a.git/info/refs", WRITE, GIT_NONE},
	};
	struct ward_verdict v;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(can); i++) {
		struct ward_ask ask =
			fetch_of(can[i].method, true, "g.example", 443, can[i].path);

		ask.query = can[i].query;
		cr_expect_eq(ward_decide(&c.broker, &ask, &v, &err) == 0,
			     can[i].git != GIT_NONE, "%zu", i);
		cr_expect_eq(v.git, can[i].git, "%zu", i);
	}
	conf_done(&c);
}

Test(ward, a_rule_of_gits_alone_is_something_that_a_job_could_ask)
{
	static const char *const rules[] = {
		"- {host: g.example, protocol: git, action: allow}\n",
		"- {host: g.example, path: /team/, protocol: git, action: allow}\n",
		"- {host: \"*.g.example\", path: /team, protocol: git, action: allow}\n"};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct conf c = conf_with(rules[i]);

		cr_expect_eq(ward_could_permit(&c.broker, IDENTITY_OWNER, EGRESS_BROKERED,
					       &err),
			     0, "%s: %s", rules[i], err.msg);
		conf_done(&c);
	}
}
