/* SPDX-License-Identifier: Apache-2.0 */
/* The ward decides: what is refused first, then what is permitted, then rates. */
#include "tests/unit/vessel/broker/ward_asks.h"
#include "vessel/broker/ward.h"

/* ---- fetches ---- */

struct row {
	const char *rules;
	const char *method;
	bool https;
	const char *host;
	unsigned port;
	const char *path;
	const char *verdict; /* "allow", or the word that the refusal begins with */
};

#define ALLOW_A_PUT                                                                      \
	"- {host: api.allowed.example, method: PUT, path: /x, action: allow}\n"
#define POST_DENIED                                                                      \
	ALLOW_API                                                                        \
	"- {host: api.allowed.example, method: POST, action: allow}\n"                   \
	"- {host: api.allowed.example, method: POST, path: /x, action: deny}\n"

static const struct row rows[] = {
	/* nothing is allowed by itself */
	{"", "GET", true, "api.allowed.example", 443, "/", "not_allowed"},
	{"- {portal: main, action: allow}\n", "GET", true, "api.example.com", 443,
	 "/v1/models", "not_allowed"},
	{"- {registry: npm, action: allow}\n", "GET", true, "npm.example.org", 443, "/",
	 "not_allowed"},
	/* of the table of bypass cases, what the ward answers for */
	{ALLOW_API, "GET", true, "metadata.google.internal", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "100.100.100.200", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "8.8.8.8", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "2606:4700:4700::1111", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "api.allowed.example.", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "API.allowed.example", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "127.1", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "0x7f000001", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "::ffff:127.0.0.1", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "[::1]", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "::", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "api", 443, "/", "not_allowed"},
	{"- {host: \"*.api\", action: deny}\n- {host: a.api, action: allow}\n", "GET",
	 true, "a.api", 443, "/", "denied"},
	{"- {host: a.api, action: allow}\n", "GET", true, "api", 443, "/", "not_allowed"},
	{"- {host: api, action: allow}\n", "GET", true, "a.api", 443, "/", "not_allowed"},
	{"- {host: api, action: allow}\n- {host: api, action: deny}\n", "GET", true,
	 "api", 443, "/", "denied"},
	{"- {host: api, action: allow}\n", "GET", true, "api", 443, "/", "allow"},
	{ALLOW_API, "GET", true, "", 443, "/", "host_grammar"},
	{ALLOW_API, "GET", true, "api.allowed.example.evil.test", 443, "/",
	 "not_allowed"},
	{ALLOW_API, "GET", true, "evilapi.allowed.example", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "allowed.example", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "a.api.allowed.example", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "xn--pi-7kc.allowed.example", 443, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "api.allowed.example", 22, "/", "not_allowed"},
	{ALLOW_API, "GET", true, "api.allowed.example", 6379, "/", "not_allowed"},
	{ALLOW_API, "GET", false, "api.allowed.example", 80, "/", "not_allowed"},
	{ALLOW_API, "GET", false, "api.allowed.example", 443, "/", "not_allowed"},
	{ALLOW_API, "TRACE", true, "api.allowed.example", 443, "/", "method"},
	{ALLOW_API, "CONNECT", true, "api.allowed.example", 443, "/", "method"},
	/* what changes something at a server needs a rule that names it */
	{ALLOW_API, "DELETE", true, "api.allowed.example", 443, "/", "not_allowed"},
	{ALLOW_API, "PUT", true, "api.allowed.example", 443, "/", "not_allowed"},
	{ALLOW_API, "PATCH", true, "api.allowed.example", 443, "/", "not_allowed"},
	{ALLOW_A_PUT, "POST", true, "api.allowed.example", 443, "/x", "not_allowed"},
	{ALLOW_A_PUT, "PATCH", true, "api.allowed.example", 443, "/x", "not_allowed"},
	{ALLOW_A_PUT, "GET", true, "api.allowed.example", 443, "/x", "not_allowed"},
	{ALLOW_A_PUT, "PUT", true, "api.allowed.example", 443, "/y", "not_allowed"},
	{ALLOW_A_PUT, "PUT", true, "api.allowed.example", 443, "/x/1", "allow"},
	/* a deny without a method is about all, one with a method about that one */
	{ALLOW_A_PUT "- {host: api.allowed.example, action: deny}\n", "PUT", true,
	 "api.allowed.example", 443, "/x", "denied"},
	{POST_DENIED, "POST", true, "api.allowed.example", 443, "/x/1", "denied"},
	{POST_DENIED, "POST", true, "api.allowed.example", 443, "/X/1", "denied"},
	{POST_DENIED, "GET", true, "api.allowed.example", 443, "/x/1", "allow"},
	{POST_DENIED, "HEAD", true, "api.allowed.example", 443, "/x/1", "allow"},
	{POST_DENIED, "POST", true, "api.allowed.example", 443, "/y", "allow"},
	{ALLOW_API, "get", true, "api.allowed.example", 443, "/", "method"},
	{ALLOW_API, "GET", true, "api.allowed.example", 443, "", "dot_segment"},
	{ALLOW_API, "GET", true, "api.allowed.example", 443, "x", "dot_segment"},
	{ALLOW_API, "GET", true, "api.allowed.example", 443, "/?a=/../", "dot_segment"},
	{ALLOW_API, "GET", true, "api.allowed.example", 443, "/", "allow"},
	{ALLOW_API, "HEAD", true, "api.allowed.example", 443, "/a/b", "allow"},
	{ALLOW_API, "POST", true, "api.allowed.example", 443, "/a", "allow"},
	/* methods */
	{"- {host: a.example, action: allow}\n", "POST", true, "a.example", 443, "/",
	 "not_allowed"},
	{"- {host: a.example, method: HEAD, action: allow}\n", "GET", true, "a.example",
	 443, "/", "not_allowed"},
	{"- {host: a.example, method: POST, action: allow}\n", "GET", true, "a.example",
	 443, "/", "not_allowed"},
	/* wildcards: at a dot, never the name itself */
	{"- {host: \"*.a.example\", action: allow}\n", "GET", true, "a.example", 443, "/",
	 "not_allowed"},
	{"- {host: \"*.a.example\", action: allow}\n", "GET", true, "xa.example", 443,
	 "/", "not_allowed"},
	{"- {host: \"*.a.example\", action: allow}\n", "GET", true,
	 "b.a.example.evil.test", 443, "/", "not_allowed"},
	{"- {host: \"*.a.example\", action: allow}\n", "GET", true, "b.a.example", 443,
	 "/", "allow"},
	{"- {host: \"*.a.example\", action: allow}\n", "GET", true, "c.b.a.example", 443,
	 "/", "allow"},
	/* paths: whole segments; dots and escapes lead nowhere */
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/../admin", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/%2e%2E/admin", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/..%2fadmin", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/..;x/admin", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/..%5cadmin", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/a%00", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/%zz", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/%2", "dot_segment"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/%76%31/x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "//v1/x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1;x", "not_allowed"},
	{"- {host: a.example, path: /v1/, action: allow}\n", "GET", true, "a.example",
	 443, "/v1", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1", "allow"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/%252e%252e/x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/..%20/x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/%c0%ae%c0%ae/x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/%e2%80%a5/x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/a/..+/x", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/..%c0%afx", "not_allowed"},
	{"- {host: a.example, path: /v1, action: allow}\n", "GET", true, "a.example", 443,
	 "/v1/compare/main...dev/a..b/.x/%c3%a9", "allow"},
	{"- {host: a.example, path: /v1/, action: allow}\n", "GET", true, "a.example",
	 443, "/v1/x", "allow"},
	/* what a deny leaves out is any; its path holds in every spelling */
	{ALLOW_API "- {host: api.allowed.example, action: deny, reason: \"not now\"}\n",
	 "POST", true, "api.allowed.example", 443, "/",
	 "denied: rule 3 of the ward: not now"},
	{ALLOW_API "- {host: \"*.allowed.example\", action: deny}\n", "GET", true,
	 "api.allowed.example", 443, "/", "denied: rule 3"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin/x", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/%61dmin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "//admin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin;x=y", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin%2fx", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin;x", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/;a/admin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin%3bx", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/%3b/admin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin%3Bx/y", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/ADMIN", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin%20", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/admin.", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/%2fadmin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "//;//admin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/%61dmin%3f", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/%2561dmin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/x/%252e%252e/admin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/%c1%a1dmin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/%ef%bd%81dmin", "denied"},
	{ALLOW_API "- {host: api.allowed.example, method: GET, action: deny}\n", "HEAD",
	 true, "api.allowed.example", 443, "/", "denied"},
	{ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/administration", "allow"},
	{ALLOW_API "- {host: api.allowed.example, port: 8443, action: deny}\n", "GET",
	 true, "api.allowed.example", 443, "/", "allow"},
	/* deny is stricter than allow, wherever they stand */
	{"- {host: a.example, action: deny}\n- {host: a.example, action: allow}\n", "GET",
	 true, "a.example", 443, "/", "denied: rule 1"},
	{"- {host: a.example, action: allow}\n- {host: a.example, action: deny}\n", "GET",
	 true, "a.example", 443, "/", "denied: rule 2"},
	/* an address and http are allowed by who names them */
	{"- {host: 10.0.0.1, action: allow}\n", "GET", true, "10.0.0.1", 443, "/",
	 "allow"},
	{"- {host: 10.0.0.1, action: allow}\n", "GET", true, "10.0.0.2", 443, "/",
	 "not_allowed"},
	{"- {host: \"fd00::1\", scheme: http, port: 8080, action: allow}\n", "GET", false,
	 "fd00::1", 8080, "/", "allow"},
	{"- {host: a.example, scheme: http, action: allow}\n", "GET", false, "a.example",
	 80, "/", "allow"},
	{"- {host: a.example, scheme: http, action: allow}\n", "GET", true, "a.example",
	 443, "/", "not_allowed"},
};

Test(ward, judges_fetches)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		struct conf c = conf_with(r->rules);
		struct ward_ask ask =
			fetch_of(r->method, r->https, r->host, r->port, r->path);
		struct ward_verdict v;
		struct err err = ERR_INIT;
		int got = ward_decide(&c.broker, &ask, &v, &err);

		if (str_eq(r->verdict, "allow"))
			cr_expect(got == 0 && v.action == WARD_ALLOW && v.rule, "%zu: %s",
				  i, err.msg);
		else
			cr_expect(got < 0 && str_starts(err.msg, r->verdict),
				  "%zu: %s%s %s: %s, not %s", i, r->rules, r->host,
				  r->path, err.msg, r->verdict);
		conf_done(&c);
	}
}

/* ---- portals and registries ---- */

static int ask_portal(const struct conf *c, const char *name, const char *identity,
		      struct err *err)
{
	struct ward_verdict v;
	struct ward_ask ask;

	ward_ask_portal(conf_portal_find(&c->broker, name), identity, &ask);
	return ward_decide(&c->broker, &ask, &v, err);
}

Test(ward, judges_portals)
{
	static const struct {
		const char *rules, *name, *verdict;
	} table[] = {
		{"", "main", "not_allowed"},
		{"- {portal: local, action: allow}\n", "main", "not_allowed"},
		{"- {registry: npm, action: allow}\n", "main", "not_allowed"},
		{"- {host: api.example.com, method: POST, action: allow}\n", "main",
		 "not_allowed"},
		{"- {portal: main, action: allow}\n- {portal: main, action: deny}\n",
		 "main", "denied: rule 2"},
		{"- {portal: main, action: allow}\n- {host: api.example.com, action: "
		 "deny}\n",
		 "main", "denied: rule 2"},
		{"- {portal: main, action: allow}\n- {host: \"*.example.com\", action: "
		 "deny}\n",
		 "main", "denied: rule 2"},
		{"- {portal: local, action: allow}\n- {host: 127.0.0.1, port: 8080, "
		 "action: deny}\n",
		 "local", "denied"},
		{"- {portal: local, action: allow}\n- {host: 127.0.0.1, port: 8081, "
		 "action: deny}\n",
		 "local", "allow"},
		{"- {portal: main, action: allow}\n", "main", "allow"},
		{"- {portal: main, action: limit, limit: 1/min}\n", "main", "allow"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct conf c = conf_with(table[i].rules);
		struct err err = ERR_INIT;
		int got = ask_portal(&c, table[i].name, IDENTITY_OWNER, &err);

		if (str_eq(table[i].verdict, "allow"))
			cr_expect(got == 0, "%zu: %s", i, err.msg);
		else
			cr_expect(got < 0 && str_starts(err.msg, table[i].verdict),
				  "%zu: %s", i, err.msg);
		conf_done(&c);
	}
}

Test(ward, a_job_that_could_ask_nothing_is_known_before)
{
	static const struct {
		const char *rules;
		bool brokered, registry;
	} table[] = {
		{"", false, false},
		{"- {portal: main, action: deny}\n", false, false},
		{"- {registry: npm, action: allow}\n", false, true},
		{"- {registry: npm, action: allow}\n- {host: npm.example.org, action: "
		 "deny}\n",
		 false, false},
		{"- {portal: main, action: allow}\n", true, false},
		{"- {portal: main, action: allow}\n- {portal: main, action: deny}\n",
		 false, false},
		{"- {host: a.example, action: allow}\n", true, false},
		{"- {host: a.example, action: allow}\n- {host: a.example, action: "
		 "deny}\n",
		 false, false},
		{"- {host: a.example, path: /x/y, action: allow}\n- {host: a.example, "
		 "path: /x, action: deny}\n",
		 false, false},
		{"- {host: \"*.a.example\", action: allow}\n- {host: b.a.example, "
		 "action: "
		 "deny}\n",
		 true, false},
		{"- {host: \"*.a.example\", action: allow}\n- {host: \"*.a.example\", "
		 "action: deny}\n",
		 false, false},
		{"- {host: \"2001:db8::1\", action: allow}\n", true, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct conf c = conf_with(table[i].rules);
		struct err err = ERR_INIT;

		cr_expect_eq(ward_could_permit(&c.broker, IDENTITY_OWNER, EGRESS_BROKERED,
					       &err) == 0,
			     table[i].brokered, "%zu", i);
		cr_expect_eq(ward_could_permit(&c.broker, IDENTITY_OWNER, EGRESS_REGISTRY,
					       &err) == 0,
			     table[i].registry, "%zu", i);
		cr_expect(table[i].brokered || err.id == ERRID_WARD_EMPTY);
		conf_done(&c);
	}
}

Test(ward, a_key_goes_along_only_where_a_deciding_rule_says_so)
{
	struct conf c = conf_with(
		"- {host: api.example.com, path: /v1/files, credential: main, action: "
		"allow}\n"
		"- {host: api.example.com, action: allow}\n"
		"- {host: api.example.com, path: /v1/files/slow, action: limit, limit: "
		"1/min}\n"
		"- host: in.example.org\n  action: allow\n  addresses:\n    - 10.0.0.1\n"
		"- {host: 10.0.0.9, action: allow}\n");
	struct ward_ask ask = fetch_of("GET", true, "api.example.com", 443, "/v1/models");
	struct ward_verdict v;
	struct err err = ERR_INIT;

	cr_expect(ward_decide(&c.broker, &ask, &v, &err) == 0);
	cr_expect_null(v.credential);
	ask.path = "/v1/files/7";
	cr_expect(ward_decide(&c.broker, &ask, &v, &err) == 0);
	cr_expect_str_eq(v.credential, "main");
	ask.path = "/v1/files/slow";
	cr_expect(ward_decide(&c.broker, &ask, &v, &err) == 0);
	cr_expect(v.action == WARD_LIMIT && v.number == 3);
	cr_expect_null(v.credential, "the limiting rule gives none");
	ask = fetch_of("GET", true, "in.example.org", 443, "/");
	cr_expect(ward_decide(&c.broker, &ask, &v, &err) == 0);
	cr_expect(v.addresses && v.addresses->n == 1 && !v.address_named);
	ask = fetch_of("GET", true, "10.0.0.9", 443, "/");
	cr_expect(ward_decide(&c.broker, &ask, &v, &err) == 0);
	cr_expect(!v.addresses && v.address_named);
	conf_done(&c);
}

Test(ward, any_bytes_come_back_only_where_a_deciding_rule_says_so)
{
	struct conf c = conf_with(
		"- {host: a.example, action: allow}\n"
		"- {host: a.example, path: /files, action: allow, replies: binary}\n"
		"- {host: a.example, path: /files/text, action: limit, limit: 9/min, "
		"replies: text}\n");
	static const struct {
		const char *path;
		enum ward_replies replies;
	} rows[] = {
		{"/", WARD_TEXT},
		{"/filesystem", WARD_TEXT},
		{"/files/%252e%252e/x", WARD_TEXT},
		{"/files/text", WARD_TEXT},
		{"/files", WARD_BINARY},
		{"/files/a.zip", WARD_BINARY},
	};
	struct ward_verdict v;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ward_ask ask =
			fetch_of("GET", true, "a.example", 443, rows[i].path);

		cr_assert_eq(ward_decide(&c.broker, &ask, &v, &err), 0, "%s",
			     rows[i].path);
		cr_expect_eq(v.replies, rows[i].replies, "%s", rows[i].path);
	}
	struct ward_ask ask = fetch_of("POST", true, "a.example", 443, "/files");

	cr_expect_lt(ward_decide(&c.broker, &ask, &v, &err), 0);
	cr_expect_eq(v.replies, WARD_TEXT);
	conf_done(&c);
}

/* ---- rates ---- */

static int take(struct ward_rates *r, const struct conf *c, const char *identity,
		const char *path, usec_t now, unsigned *retry)
{
	struct ward_ask ask = fetch_of("GET", true, "a.example", 443, path);
	struct ward_verdict v;
	struct err err = ERR_INIT;

	ask.identity = identity;
	if (ward_take(r, &c->broker, &ask, now, &v, retry, &err) == 0)
		return 0;
	cr_expect_eq(err.id, ERRID_WARD_RATE, "%s", err.msg);
	return -1;
}

Test(ward, a_limit_lets_so_many_through_and_then_one_at_a_time)
{
	struct conf c = conf_with("- {host: a.example, action: limit, limit: 3/min}\n"
				  "- {host: a.example, action: allow}\n");
	struct ward_rates *r = ward_rates_new();
	const usec_t now = 5000 * USEC_PER_SEC;
	unsigned retry = 99;

	for (int i = 0; i < 3; i++)
		cr_expect(take(r, &c, "owner", "/", now, &retry) == 0 && retry == 0);
	cr_expect(take(r, &c, "owner", "/", now, &retry) < 0);
	cr_expect_eq(retry, 20);
	cr_expect(take(r, &c, "guest", "/", now, NULL) == 0, "each has its own");
	cr_expect(take(r, &c, "owner", "/", now + 19 * USEC_PER_SEC, &retry) < 0);
	cr_expect_eq(retry, 1);
	cr_expect(take(r, &c, "owner", "/", now + 20 * USEC_PER_SEC, NULL) == 0);
	cr_expect(take(r, &c, "owner", "/", now + 20 * USEC_PER_SEC, NULL) < 0);
	for (int i = 0; i < 3; i++)
		cr_expect(take(r, &c, "owner", "/", now + 600 * USEC_PER_SEC, NULL) == 0);
	cr_expect(take(r, &c, "owner", "/", now + 600 * USEC_PER_SEC, NULL) < 0);
	ward_rates_free(r);
	conf_done(&c);
}

Test(ward, of_two_limits_a_refused_request_takes_from_none)
{
	struct conf c = conf_with(
		"- {host: a.example, action: limit, limit: 4/min}\n"
		"- {host: a.example, path: /x, action: limit, limit: 1/hour}\n");
	struct ward_rates *r = ward_rates_new();

	cr_expect(take(r, &c, "owner", "/x", 0, NULL) == 0);
	for (int i = 0; i < 10; i++)
		cr_expect(take(r, &c, "owner", "/x", 0, NULL) < 0);
	for (int i = 0; i < 3; i++)
		cr_expect(take(r, &c, "owner", "/", 0, NULL) == 0);
	cr_expect(take(r, &c, "owner", "/", 0, NULL) < 0);
	ward_rates_free(r);
	conf_done(&c);
}

Test(ward, ever_new_identities_find_an_end)
{
	struct conf c = conf_with("- {host: a.example, action: limit, limit: 1/min}\n");
	struct ward_rates *r = ward_rates_new();
	char who[32];

	for (int i = 0; i < WARD_RATES_MAX; i++) {
		cr_assert(str_fmt(who, sizeof(who), "i%d", i) == 0);
		cr_assert(take(r, &c, who, "/", 0, NULL) == 0);
	}
	cr_expect(take(r, &c, "one-more", "/", 0, NULL) < 0, "fails closed");
	cr_expect(take(r, &c, "i0", "/", 0, NULL) < 0, "and forgets nobody");
	cr_expect(take(r, &c, "one-more", "/", 61 * USEC_PER_SEC, NULL) == 0);
	ward_rates_free(r);
	conf_done(&c);
}

/* Other rules: what was taken of the limits that are still there stays taken. */
static void replace(struct ward_rates *r, struct conf *c, const char *rules, usec_t now)
{
	struct conf next = conf_with(rules);

	ward_rates_replace(r, &c->broker, &next.broker, now);
	conf_done(c);
	*c = next;
}

Test(ward, a_limit_that_is_in_other_rules_too_goes_on)
{
	const usec_t now = 9000 * USEC_PER_SEC;
	struct conf c = conf_with(
		"- {host: a.example, path: /a, action: limit, limit: 2/min}\n"
		"- {host: a.example, path: /b, action: limit, limit: 1/hour}\n");
	struct ward_rates *r = ward_rates_new();

	cr_expect(take(r, &c, "owner", "/a", now, NULL) == 0);
	cr_expect(take(r, &c, "owner", "/a", now, NULL) == 0);
	cr_expect(take(r, &c, "owner", "/b", now, NULL) == 0);
	/* at another place, with another reason, among others */
	replace(r, &c,
		"- {host: a.example, path: /b, action: limit, limit: 1/hour, reason: x}\n"
		"- {host: a.example, path: /c, action: limit, limit: 1/min}\n"
		"- {host: a.example, path: /a, action: limit, limit: 2/min}\n",
		now);
	cr_expect(take(r, &c, "owner", "/a", now, NULL) < 0);
	cr_expect(take(r, &c, "owner", "/b", now, NULL) < 0);
	cr_expect(take(r, &c, "owner", "/c", now, NULL) == 0);
	cr_expect(take(r, &c, "owner", "/a", now + 30 * USEC_PER_SEC, NULL) == 0);
	/* one that is gone is forgotten, and begins anew */
	replace(r, &c, "- {host: a.example, path: /a, action: limit, limit: 2/min}\n",
		now);
	replace(r, &c, "- {host: a.example, path: /b, action: limit, limit: 1/hour}\n",
		now);
	cr_expect(take(r, &c, "owner", "/b", now, NULL) == 0);
	ward_rates_free(r);
	conf_done(&c);
}

Test(ward, a_limit_of_another_number_has_what_was_taken)
{
	const usec_t now = 9000 * USEC_PER_SEC;
	struct conf c = conf_with("- {host: a.example, action: limit, limit: 3/min}\n");
	struct ward_rates *r = ward_rates_new();
	unsigned retry = 0;

	for (int i = 0; i < 3; i++)
		cr_expect(take(r, &c, "owner", "/", now, NULL) == 0);
	replace(r, &c, "- {host: a.example, action: limit, limit: 4/hour}\n", now);
	cr_expect(take(r, &c, "owner", "/", now, NULL) == 0);
	cr_expect(take(r, &c, "owner", "/", now, NULL) < 0);
	/* never more than there is, so that the wait has an end */
	replace(r, &c, "- {host: a.example, action: limit, limit: 1/min}\n", now);
	cr_expect(take(r, &c, "owner", "/", now, &retry) < 0);
	cr_expect_eq(retry, 60);
	ward_rates_free(r);
	conf_done(&c);
}
