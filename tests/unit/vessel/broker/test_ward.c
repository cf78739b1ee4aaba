/* SPDX-License-Identifier: Apache-2.0 */
/* The ward decides: what is refused first, then what is permitted, then laws. */
#include "vessel/broker/intents/fetch_ward.h"
#include "vessel/broker/ward.h"
#include "vessel/egress/url.h"

#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/mem.h"
#include "common/str.h"

#include <criterion/criterion.h>

TestSuite(ward, .timeout = 60);

#define BASE                                                                             \
	"version: \"1\"\n"                                                               \
	"portals:\n"                                                                     \
	"  - name: main\n    kind: openai\n    url: \"https://api.example.com/v1\"\n"    \
	"    secret: portal_main\n"                                                      \
	"    models:\n      - {name: m, input: \"1\", output: \"1\"}\n"                  \
	"  - name: local\n    kind: openai\n    url: \"http://127.0.0.1:8080/v1\"\n"     \
	"    addresses:\n      - 127.0.0.1\n"                                            \
	"    models:\n      - {name: s, input: \"0\", output: \"0\"}\n"                  \
	"registries: {npm: {url: \"https://npm.example.org\"}}\n"

static struct conf conf_with(const char *rules)
{
	cleanup_free char *text =
		xasprintf("%s%s%s", BASE, *rules ? "ward:\n" : "", rules);
	struct conf c;
	struct err err = ERR_INIT;

	cr_assert(conf_parse(text, strlen(text), &c, &err) == 0, "%s\n%s", err.msg, text);
	return c;
}

static struct ward_ask fetch_of(const char *method, bool https, const char *host,
				unsigned port, const char *path)
{
	return (struct ward_ask){.identity = "owner",
				 .target = WARD_HOST,
				 .https = https,
				 .host = host,
				 .port = port,
				 .method = method,
				 .path = path};
}

/* ---- fetches ---- */

#define ALLOW_API                                                                        \
	"- {host: api.allowed.example, action: allow}\n"                                 \
	"- {host: api.allowed.example, method: POST, action: allow}\n"

struct row {
	const char *rules;
	const char *method;
	bool https;
	const char *host;
	unsigned port;
	const char *path;
	const char *verdict; /* "allow", or the word that the refusal begins with */
};

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
	{ALLOW_API, "DELETE", true, "api.allowed.example", 443, "/", "method"},
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
	{ALLOW_API "- {host: \"*.allowed.example\", action: hold}\n", "GET", true,
	 "api.allowed.example", 443, "/", "held: rule 3"},
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
	/* another's rule is not ours; another's deny neither */
	{"- {host: a.example, identity: guest, action: allow}\n", "GET", true,
	 "a.example", 443, "/", "not_allowed"},
	{"- {host: a.example, action: allow}\n"
	 "- {host: a.example, identity: guest, action: deny}\n",
	 "GET", true, "a.example", 443, "/", "allow"},
	/* deny is stricter than hold, wherever they stand */
	{"- {host: a.example, action: deny}\n- {host: a.example, action: hold}\n", "GET",
	 true, "a.example", 443, "/", "denied: rule 1"},
	{"- {host: a.example, action: hold}\n- {host: a.example, action: deny}\n", "GET",
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

/* ---- a deny holds however the path is spelled ---- */

static unsigned seed = 20261122;

static unsigned pick(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

static void spell_char(struct buf *b, char c)
{
	unsigned u = (unsigned char)c;

	switch (pick(12)) {
	case 0:
		buf_addf(b, pick(2) ? "%%%02x" : "%%%02X", u);
		break;
	case 1:
		buf_addf(b, "%%25%02x", u);
		break;
	case 2:
		buf_addf(b, "%%2525%02x", u);
		break;
	case 3:
		buf_addc(b, c >= 'a' && c <= 'z' ? (char)(c & ~0x20) : c);
		break;
	case 4: /* full width */
		buf_addf(b, "%%ef%%%02x%%%02x", c >= 0x60 ? 0xbdu : 0xbcu,
			 c >= 0x60 ? u + 0x20 : u + 0x60);
		break;
	case 5: /* overlong */
		buf_addf(b, "%%c%x%%%02x", u >> 6, 0x80 | (u & 0x3f));
		break;
	case 6: /* with nothing in between */
		buf_addf(b, "%%e2%%80%%8b%c", c);
		break;
	case 7: /* escapes that begin in another way */
		buf_addf(b, pick(2) ? "%%c0%%a5%02x" : "%%ef%%bc%%85%02X", u);
		break;
	case 8:
		buf_addf(b, "%%25u%04x", u);
		break;
	case 9: /* overlong, six bytes */
		buf_addf(b, "%%fc%%80%%80%%80%%%02x%%%02x", 0x80 | u >> 6,
			 0x80 | (u & 0x3f));
		break;
	default:
		buf_addc(b, c);
		break;
	}
}

static void spell_segment(struct buf *b, const char *s, size_t n)
{
	static const char *const before[] = {"/",
					     "//",
					     "/;a/",
					     "/%3b/",
					     "/;%2f",
					     "%2f",
					     "/%5c",
					     "%255c",
					     "/%2F",
					     "/%20/",
					     "/%252e/",
					     "/b/%252e%252e/",
					     "/%3fx/",
					     "/;a=b;c/",
					     "/%e2%80%8b/",
					     "/%ef%bc%8f",
					     "/b/..%20/",
					     "/b/%e2%80%a5/",
					     "/b/..%c2%a0;/",
					     "/+/"};
	static const char *const after[] = {"",	       ";x",	 "%3bx",   "%3By", ";",
					    ".",       "%2e%2e", "%20",	   "%3fq", "%23f",
					    "%2500",   "%253b",	 ";x=%2f", "+",	   "%80",
					    "::$DATA", "%cd%bex"};

	buf_adds(b, before[pick(ARRAY_SIZE(before))]);
	for (size_t i = 0; i < n; i++)
		spell_char(b, s[i]);
	buf_adds(b, after[pick(ARRAY_SIZE(after))]);
}

Test(ward, a_deny_of_a_path_holds_in_every_spelling_of_it)
{
	static const char *const prefixes[] = {"/admin", "/a/admin", "/admin/",
					       "/v1/users/all"};
	unsigned n_said = 0;

	for (size_t p = 0; p < ARRAY_SIZE(prefixes); p++) {
		cleanup_free char *rules =
			xasprintf(ALLOW_API "- {host: api.allowed.example, path: %s, "
					    "action: deny}\n",
				  prefixes[p]);
		struct conf c = conf_with(rules);

		for (unsigned round = 0; round < 20000; round++) {
			cleanup_buf struct buf path;
			enum reason why;
			struct url u;
			struct err err = ERR_INIT;
			struct ward_verdict v;
			struct ward_ask ask;

			buf_init(&path, 4000);
			buf_adds(&path, "https://api.allowed.example");
			for (const char *s = prefixes[p]; *s; s += strcspn(s, "/"))
				if (*++s)
					spell_segment(&path, s, strcspn(s, "/"));
			buf_adds(&path, pick(2) ? "" : "/rest");
			/* what no job can say needs no denial */
			if (url_parse(path.data, path.len, &u, &why, NULL) < 0)
				continue;
			u.target[u.path_len] = '\0';
			ask = fetch_of("GET", true, u.host, 443, u.target);
			if (ward_decide(&c.broker, &ask, &v, &err) == 0 ||
			    err.id == ERRID_WARD_DENIED)
				n_said++;
			cr_assert(err.id == ERRID_WARD_DENIED ||
					  err.id == ERRID_WARD_SPELLING,
				  "%s is allowed: %s", u.target, err.msg);
		}
		conf_done(&c);
	}
	cr_expect_gt(n_said, 20000u, "%u", n_said);
}

Test(ward, a_deny_of_a_path_leaves_the_others_alone)
{
	static const char *const paths[] = {
		"/",	     "/administration", "/adm",		"/x/admin",
		"/a;admin",  "/a%3badmin",	"/adm%6fn",	"/badmin",
		"/%25admin", "/ad/min",		"/%c3%a9admin", "/v1/x?",
		"/admin2;x",
	};
	struct conf c = conf_with(
		ALLOW_API "- {host: api.allowed.example, path: /admin, action: deny}\n");

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		cleanup_free char *path = xstrndup(paths[i], strcspn(paths[i], "?"));
		struct ward_ask ask =
			fetch_of("GET", true, "api.allowed.example", 443, path);
		struct ward_verdict v;
		struct err err = ERR_INIT;

		cr_expect(ward_decide(&c.broker, &ask, &v, &err) == 0, "%s: %s", paths[i],
			  err.msg);
	}
	conf_done(&c);
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
		{"- {portal: main, identity: guest, action: allow}\n", "main",
		 "not_allowed"},
		{"- {portal: main, action: allow}\n- {portal: main, action: hold}\n",
		 "main", "held"},
		{"- {portal: main, action: allow}\n- {host: api.example.com, action: "
		 "deny}\n",
		 "main", "denied: rule 2"},
		{"- {portal: main, action: allow}\n- {host: \"*.example.com\", action: "
		 "hold}\n",
		 "main", "held"},
		{"- {portal: local, action: allow}\n- {host: 127.0.0.1, port: 8080, "
		 "action: deny}\n",
		 "local", "denied"},
		{"- {portal: local, action: allow}\n- {host: 127.0.0.1, port: 8081, "
		 "action: deny}\n",
		 "local", "allow"},
		{"- {portal: main, action: allow}\n", "main", "allow"},
		{"- {portal: main, identity: owner, action: limit, limit: 1/min}\n",
		 "main", "allow"},
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
		{"- {portal: main, identity: guest, action: allow}\n", false, false},
		{"- {registry: npm, action: allow}\n", false, true},
		{"- {registry: npm, action: allow}\n- {host: npm.example.org, action: "
		 "deny}\n",
		 false, false},
		{"- {portal: main, action: allow}\n", true, false},
		{"- {portal: main, action: allow}\n- {portal: main, action: hold}\n",
		 false, false},
		{"- {host: a.example, action: allow}\n", true, false},
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

/* ---- laws, over many random lists of rules ---- */

static void random_rule(char *out, size_t size, const char *action)
{
	static const char *const targets[] = {
		"portal: main",
		"portal: local",
		"registry: npm",
		"host: api.example.com",
		"host: a.example",
		"host: \"*.a.example\"",
		"host: b.a.example, path: /v1",
		"host: b.a.example, path: /v1/x, method: POST",
		"host: 127.0.0.1, scheme: http, port: 8080",
		"host: a.example, port: 8443",
	};
	static const char *const identities[] = {"", "identity: owner, ",
						 "identity: guest, "};

	cr_assert(str_fmt(out, size, "- {%s%s, action: %s}\n", identities[pick(3)],
			  targets[pick(ARRAY_SIZE(targets))], action) == 0);
}

static struct ward_ask random_ask(const struct conf *c)
{
	static const char *const hosts[] = {"api.example.com", "a.example", "b.a.example",
					    "127.0.0.1", "evil.test"};
	static const char *const paths[] = {"/",    "/v1",     "/v1/x",
					    "/v1x", "/%761/x", "/v1/../x"};
	static const char *const methods[] = {"GET", "HEAD", "POST"};
	static const unsigned ports[] = {443, 8443, 8080, 80};
	struct ward_ask ask;

	if (pick(4) == 0)
		ward_ask_portal(&c->broker.portal[pick(2)], "owner", &ask);
	else if (pick(4) == 0)
		ward_ask_registry(&c->broker, REGISTRY_NPM, "owner", &ask);
	else
		ask = fetch_of(methods[pick(3)], pick(2) != 0, hosts[pick(5)],
			       ports[pick(4)], paths[pick(6)]);
	return ask;
}

Test(ward, a_stricter_rule_more_never_permits_more)
{
	static const char *const actions[] = {"allow", "limit, limit: 9/min", "hold",
					      "deny"};

	for (int round = 0; round < 3000; round++) {
		char rules[2048] = "", more[160];
		unsigned strict = 2 + pick(2);

		for (unsigned i = pick(6); i > 0; i--) {
			size_t n = strlen(rules);

			random_rule(rules + n, sizeof(rules) - n, actions[pick(4)]);
		}
		random_rule(more, sizeof(more), actions[strict]);
		cleanup_free char *both = pick(2) ? xasprintf("%s%s", rules, more)
						  : xasprintf("%s%s", more, rules);
		struct conf before = conf_with(rules), after = conf_with(both);

		for (int i = 0; i < 12; i++) {
			struct ward_ask ask = random_ask(&before);
			struct ward_verdict v, w;
			int was = ward_decide(&before.broker, &ask, &v, NULL);
			int is = ward_decide(&after.broker, &ask, &w, NULL);

			cr_assert(was == 0 || is < 0, "%s+ %s%s %s", rules, more,
				  ask.host, ask.path);
			cr_assert(w.action >= v.action || !v.rule);
			/* nothing is permitted that no permitting rule names */
			cr_assert(is < 0 || (w.rule && w.action <= WARD_LIMIT &&
					     ward_match(w.rule, &ask) == WARD_MATCHES));
		}
		conf_done(&before);
		conf_done(&after);
	}
}

Test(ward, a_key_goes_along_below_its_portals_url_only)
{
	static const struct {
		const char *url, *target; /* NULL: no key */
	} table[] = {
		{"https://api.example.com/v1/files?a=b", "/files?a=b"},
		{"https://api.example.com/v1/", "/"},
		{"https://api.example.com/v1", NULL},
		{"https://api.example.com/v1?a=/", NULL},
		{"https://api.example.com/v10/files", NULL},
		{"https://api.example.com/V1/files", NULL},
		{"https://api.example.com/", NULL},
		{"https://api.example.com:8443/v1/files", NULL},
		{"https://b.example.com/v1/files", NULL},
		{"http://api.example.com/v1/files", NULL},
	};
	struct conf c = conf_with("- {host: api.example.com, action: allow}\n");
	struct ward_verdict v = {.credential = "main"};
	struct fetch f = {.method = FETCH_GET};
	struct err err = ERR_INIT;
	enum reason why;
	const char *target;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *url = table[i].url;

		cr_assert_eq(url_parse(url, strlen(url), &f.url, &why, &err), 0, "%s",
			     url);
		target = NULL;
		if (!fetch_ward_portal(&f, &c.broker, &v, &target))
			cr_expect_null(table[i].target, "%s", url);
		else
			cr_expect_str_eq(target, table[i].target ? table[i].target : "",
					 "%s", url);
	}
	cr_assert_eq(url_parse(table[0].url, strlen(table[0].url), &f.url, &why, &err),
		     0);
	f.left_origin = true;
	cr_expect_null(fetch_ward_portal(&f, &c.broker, &v, &target));
	f.left_origin = false;
	v.credential = NULL;
	cr_expect_null(fetch_ward_portal(&f, &c.broker, &v, &target));
	conf_done(&c);
}
