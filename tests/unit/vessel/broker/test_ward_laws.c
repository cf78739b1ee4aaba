/* SPDX-License-Identifier: Apache-2.0 */
/* Laws of the ward, over many spellings of a path and many lists of rules. */
#include "tests/unit/vessel/broker/ward_asks.h"
#include "vessel/broker/intents/fetch_keys.h"
#include "vessel/broker/ward.h"
#include "vessel/egress/url.h"

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

	cr_assert(str_fmt(out, size, "- {%s, action: %s}\n",
			  targets[pick(ARRAY_SIZE(targets))], action) == 0);
}

static struct ward_ask random_ask(const struct conf *c)
{
	static const char *const hosts[] = {"api.example.com", "a.example", "b.a.example",
					    "127.0.0.1", "evil.test"};
	static const char *const paths[] = {"/",    "/v1",     "/v1/x",
					    "/v1x", "/%761/x", "/v1/../x"};
	static const char *const methods[] = {"GET", "HEAD",  "POST",
					      "PUT", "PATCH", "DELETE"};
	static const unsigned ports[] = {443, 8443, 8080, 80};
	struct ward_ask ask;

	if (pick(4) == 0)
		ward_ask_portal(&c->broker.portal[pick(2)], "owner", &ask);
	else if (pick(4) == 0)
		ward_ask_registry(&c->broker, REGISTRY_NPM, "owner", &ask);
	else
		ask = fetch_of(methods[pick(6)], pick(2) != 0, hosts[pick(5)],
			       ports[pick(4)], paths[pick(6)]);
	return ask;
}

Test(ward, a_stricter_rule_more_never_permits_more)
{
	static const char *const actions[] = {"allow", "limit, limit: 9/min", "deny"};

	for (int round = 0; round < 3000; round++) {
		char rules[2048] = "", more[160];

		for (unsigned i = pick(6); i > 0; i--) {
			size_t n = strlen(rules);

			random_rule(rules + n, sizeof(rules) - n, actions[pick(3)]);
		}
		random_rule(more, sizeof(more), actions[2]);
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
		{"https://api.example.com/v1/%252e%252e/y", NULL},
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
		if (!fetch_key(&f, &c.broker, &v, &target))
			cr_expect_null(table[i].target, "%s", url);
		else
			cr_expect_str_eq(target, table[i].target ? table[i].target : "",
					 "%s", url);
	}
	cr_assert_eq(url_parse(table[0].url, strlen(table[0].url), &f.url, &why, &err),
		     0);
	f.left_origin = true;
	cr_expect_null(fetch_key(&f, &c.broker, &v, &target));
	f.left_origin = false;
	v.credential = NULL;
	cr_expect_null(fetch_key(&f, &c.broker, &v, &target));
	conf_done(&c);
}

/* A host's key goes to its path and below, and the whole path is what its worker is told. */
Test(ward, the_key_of_a_host_goes_to_its_own_place_only)
{
	static const struct {
		const char *url, *target; /* NULL: no key */
	} table[] = {
		{"https://b.example.com/team/repo/x", NULL},
		{"http://git.example.com/team/repo", NULL},
		{"https://git.example.com:8443/team/repo", NULL},
		{"https://git.example.com/", NULL},
		{"https://git.example.com/team", NULL},
		{"https://git.example.com/team/repository", NULL},
		{"https://git.example.com/team/repo%2fx", NULL},
		{"https://git.example.com/team//repo", NULL},
		{"https://git.example.com/Team/repo", NULL},
		{"https://git.example.com/%74eam/repo", NULL},
		{"https://git.example.com/team/repo/..%2fother", NULL},
		{"https://git.example.com/team/repo/%252e%252e/other", NULL},
		{"https://git.example.com/team/repo/..;/other", NULL},
		{"https://git.example.com/x?/team/repo", NULL},
		{"https://git.example.com/team/repo", "/team/repo"},
		{"https://git.example.com/team/repo?a=/b", "/team/repo?a=/b"},
		{"https://git.example.com/team/repo/x", "/team/repo/x"},
	};
	struct conf c =
		conf_with("- {host: git.example.com, credential: forge, action: allow}\n"
			  "credentials:\n  - {name: forge, host: git.example.com, path: "
			  "/team/repo, header: bearer, secret: host_forge}\n");
	struct ward_verdict v = {.credential = "forge"};
	struct fetch f = {.method = FETCH_GET};
	struct egress_portal worker[EGRESS_PORTALS_MAX];
	struct err err = ERR_INIT;
	enum reason why;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *url = table[i].url, *target = NULL, *key = NULL;

		/* some of these are no URL at all here */
		if (url_parse(url, strlen(url), &f.url, &why, &err) == 0)
			key = fetch_key(&f, &c.broker, &v, &target);
		cr_expect_eq(key != NULL, table[i].target != NULL, "%s", url);
		if (key && table[i].target)
			cr_expect_str_eq(target, table[i].target);
	}
	f.left_origin = true;
	cr_expect_null(fetch_key(&f, &c.broker, &v, &(const char *){NULL}));
	cr_assert_eq(fetch_keys_portals(&c.broker, worker), 2);
	cr_expect(!worker[1].is_host);
	cr_assert_eq(fetch_keys_hosts(&c.broker, worker), 1);
	cr_expect(worker[0].is_host && !worker[0].user);
	cr_expect_str_eq(worker[0].path, "/team/repo");
	cr_expect_str_eq(worker[0].url, "https://git.example.com");
	conf_done(&c);
}
