/* SPDX-License-Identifier: Apache-2.0 */
/* Which other rules ask for the passphrase. */
#include "tests/unit/vessel/broker/ward_asks.h"
#include "vessel/broker/ward.h"

#define ALLOW "  - {host: a.example, action: allow}\n"
#define DENY "  - {host: a.example, path: /x, action: deny}\n"
#define LIMIT "  - {host: b.example, action: limit, limit: 5/min}\n"

static bool is_wider(const char *rules, const char *next)
{
	struct conf a = conf_with(rules), b = conf_with(next);
	bool is = ward_may_be_wider(&a.broker, &b.broker);

	conf_done(&a);
	conf_done(&b);
	return is;
}

Test(ward, more_rules_that_permit_are_wider)
{
	static const char *const more[] = {
		"  - {host: c.example, action: allow}\n",
		"  - {host: a.example, method: POST, action: allow}\n",
		"  - {host: \"*.a.example\", action: allow}\n",
		"  - {host: a.example, port: 8443, action: allow}\n",
		"  - host: a.example\n    action: allow\n    addresses:\n      - "
		"10.0.0.1\n",
		"  - {host: a.example, action: allow, replies: binary}\n",
		"  - {host: a.example, action: allow, protocol: git}\n",
		"  - {host: a.example, action: allow, protocol: git, push: allow}\n",
		"  - {host: b.example, action: limit, limit: 6/min}\n",
		"  - {host: b.example, action: limit, limit: 5/hour}\n",
		"  - {portal: main, action: allow}\n",
		"  - {registry: npm, action: allow}\n",
		"  - {host: api.example.com, action: allow, credential: main}\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		cleanup_free char *next =
			xasprintf("%s%s%s%s", ALLOW, DENY, LIMIT, more[i]);

		cr_assert(is_wider(ALLOW DENY LIMIT, next), "%s", more[i]);
	}
}

Test(ward, fewer_rules_that_deny_or_limit_are_wider)
{
	cr_assert(is_wider(ALLOW DENY, ALLOW));
	cr_assert(is_wider(ALLOW DENY,
			   ALLOW "  - {host: a.example, path: /x/y, action: deny}\n"));
	cr_assert(is_wider(ALLOW LIMIT, ALLOW));
}

Test(ward, the_same_and_less_are_not_wider)
{
	cr_assert_not(is_wider("", ""));
	cr_assert_not(is_wider(ALLOW DENY LIMIT, LIMIT DENY ALLOW));
	cr_assert_not(is_wider(ALLOW DENY, DENY));
	cr_assert_not(is_wider(ALLOW, ALLOW DENY));
	cr_assert_not(
		is_wider(ALLOW, "  - {host: a.example, action: allow, reason: why}\n"));
}

static bool is_wider_file(const char *text, const char *next)
{
	struct conf a, b;
	struct err err = ERR_INIT;
	bool is;

	cr_assert_eq(conf_parse(text, strlen(text), &a, &err), 0, "%s", err.msg);
	cr_assert_eq(conf_parse(next, strlen(next), &b, &err), 0, "%s", err.msg);
	is = ward_may_be_wider(&a.broker, &b.broker);
	conf_done(&a);
	conf_done(&b);
	return is;
}

#define KEY(name, host, path, how)                                                       \
	"  - {name: " name ", host: " host ", path: " path ", secret: host_" name        \
	", " how "}\n"
#define FORGE KEY("forge", "git.example.com", "/team", "header: bearer")
#define HEAD "version: \"1\"\ncredentials:\n"

Test(ward, a_key_that_is_new_or_goes_elsewhere_is_wider)
{
	static const char *const others[] = {
		FORGE KEY("more", "git.example.com", "/team", "header: bearer"),
		KEY("forge", "git.example.net", "/team", "header: bearer"),
		KEY("forge", "git.example.com", "/", "header: bearer"),
		KEY("forge", "git.example.com", "/team/x", "header: bearer"),
		KEY("forge", "git.example.com", "/team", "header: X-Api-Key"),
		KEY("forge", "git.example.com", "/team", "header: basic, user: git"),
		KEY("forge", "git.example.com", "/team",
		    "header: bearer, port: \"8443\""),
		"  - name: forge\n    host: git.example.com\n    path: /team\n"
		"    header: bearer\n    secret: host_forge\n    addresses:\n"
		"      - 10.0.0.1\n",
		"  - {name: forge, host: git.example.com, path: /team, header: bearer, "
		"secret: host_other}\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		cleanup_free char *next = xasprintf("%s%s", HEAD, others[i]);

		cr_assert(is_wider_file(HEAD FORGE, next), "%s", others[i]);
	}
	cr_assert(is_wider_file("version: \"1\"\n", HEAD FORGE));
	cr_assert_not(is_wider_file(HEAD FORGE, HEAD FORGE));
	cr_assert_not(is_wider_file(HEAD FORGE, "version: \"1\"\n"));
}
