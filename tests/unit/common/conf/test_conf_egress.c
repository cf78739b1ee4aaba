/* SPDX-License-Identifier: Apache-2.0 */
/* What codex.yaml says about the broker. */
#include "common/conf/conf.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <criterion/criterion.h>

TestSuite(conf_egress, .timeout = 20);

#define V "version: \"1\"\n"
#define MODELS "    models:\n      - {name: m, input: \"0\", output: \"0\"}\n"
#define PORTAL                                                                           \
	V "portals:\n  - name: main\n    kind: openai\n"                                 \
	  "    url: \"https://api.example.com/v1\"\n    secret: portal_main\n" MODELS
#define WITH_URL(url)                                                                    \
	V "portals:\n  - name: a\n    kind: openai\n    url: \"" url "\"\n" MODELS
#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10
#define A190 A60 A60 A60 A10
#define A950 A190 A190 A190 A190 A190
#define MODEL(more)                                                                      \
	V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"    \
	  "    models:\n      - {name: m, input: \"1\", output: \"1\", " more "}\n"
#define EXTRA(extra)                                                                     \
	V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"    \
	  "    models:\n      - name: m\n        input: \"1\"\n        output: \"1\"\n"  \
	  "        extras:\n          - " extra "\n"
#define RULE(rule) PORTAL "ward:\n  - " rule "\n"
#define RULE_LINE "line 10: ward, entry 1"

struct bad {
	const char *text;
	const char *part; /* of the message */
};

static const struct bad bads[] = {
	{V "portals: []\n", "line 2"},
	{V "portals:\n", "line 2"},
	{V "portals: {name: a}\n", "line 2"},
	{V "portals:\n  - {name: a, key: sk-1}\n", "line 3"},
	{V "portals:\n  - {kind: openai}\n", "line 3: portals, entry 1: name"},
	{V "portals:\n  - {name: A, kind: openai}\n", "line 3: portals, entry 1: name"},
	{V "portals:\n  - {name: 1a, kind: openai}\n", "entry 1: name"},
	{V "portals:\n  - {name: a-b, kind: openai}\n", "entry 1: name"},
	{V "portals:\n  - {name: a23456789012345678901234567890123, kind: openai}\n",
	 "entry 1: name"},
	{V "portals:\n  - {name: a}\n", "entry 1: kind"},
	{V "portals:\n  - {name: a, kind: ollama}\n", "entry 1: kind"},
	{V "portals:\n  - {name: a, kind: openai}\n", "entry 1: url: it is missing"},
	{WITH_URL("api.example.com"), "line 5: portals, entry 1: url"},
	{WITH_URL("ftp://api.example.com"), "url"},
	{WITH_URL("HTTPS://api.example.com"), "url"},
	{WITH_URL("http://api.example.com/v1"), "url: https"},
	{WITH_URL("https://user:pw@api.example.com/v1"), "url: a user"},
	{WITH_URL("https://api.example.com/v1?x=1"), "url: a path"},
	{WITH_URL("https://api.example.com?x=1"), "url: a path"},
	{WITH_URL("https://api.example.com/v1#x"), "url: a path"},
	{WITH_URL("https://api.example.com/a/../b"), "url: a path has no '.'"},
	{WITH_URL("https://api.example.com/./b"), "url: a path has no '.'"},
	{WITH_URL("https://api.example.com//b"), "url: a path has no empty"},
	{WITH_URL("https://api.example.com/%2e"), "url: a path has no escapes"},
	{WITH_URL("https://API.example.com"), "url: a host is lower-case"},
	{WITH_URL("https://api.example.com."), "url: a host is"},
	{WITH_URL("https://.example.com"), "url: a host is"},
	{WITH_URL("https://-a.example.com"), "url: a host is"},
	{WITH_URL("https://a_b.example.com"), "url: a host is"},
	{WITH_URL("https://b\xc3\xbc.example.com"), "url: a host is"},
	{WITH_URL("https://localhost"), "url: a host name of one label"},
	{WITH_URL("https://api.example.9x"), "url: a host that ends in a number"},
	{WITH_URL("https://a.xn--zz"), "url: a part of the host begins with xn--"},
	{WITH_URL("https://"), "url: a host is"},
	{WITH_URL("https:///v1"), "url: a host is"},
	{WITH_URL("https://127.1"), "url: a host that ends in a number"},
	{WITH_URL("https://0x7f.0x1"), "url: a host that ends in a number"},
	{WITH_URL("https://017700000001"), "url: a host that ends in a number"},
	{WITH_URL("https://08.8.8.8"), "url: a host that ends in a number"},
	{WITH_URL("https://api.example.com:0"), "url: the port"},
	{WITH_URL("https://api.example.com:65536"), "url: the port"},
	{WITH_URL("https://api.example.com:"), "url: the port"},
	{WITH_URL("https://api.example.com:443:80"), "url: the port"},
	{WITH_URL("https://[::1"), "url: an address in [ ]"},
	{WITH_URL("https://[api.example.com]"), "url: not an IPv6 address"},
	{WITH_URL("https://[::ffff:127.0.0.1]"), "url: not an IPv6 address"},
	{WITH_URL("https://8.8.8.8/v1"), "url: an address instead of a name"},
	{WITH_URL("http://127.0.0.1:8080/v1"), "url: an address instead of a name"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"http://8.8.8.8/v1\"\n"
	   "    addresses:\n      - 8.8.8.8\n" MODELS,
	 "line 5: portals, entry 1: url: https"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"http://a.example/v1\"\n"
	   "    addresses:\n      - 10.0.0.1\n" MODELS,
	 "line 5: portals, entry 1: url: https"},
	{V
	 "portals:\n  - name: a\n    kind: openai\n    addresses:\n      - 10.0.0.0/8\n",
	 "entry 1: addresses"},
	{V "portals:\n  - name: a\n    kind: openai\n    addresses:\n"
	   "      - \"::ffff:10.0.0.1\"\n",
	 "entry 1: addresses"},
	{V "portals:\n  - name: a\n    kind: openai\n    addresses:\n      - llama\n",
	 "entry 1: addresses"},
	{V "portals:\n  - {name: a, kind: openai, url: \"https://a.example\"}\n",
	 "entry 1: models"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    secret: sk-123\n" MODELS,
	 "line 6: portals, entry 1: secret"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    secret: portal_\n" MODELS,
	 "entry 1: secret"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    secret: lychgate_work\n" MODELS,
	 "entry 1: secret"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    models:\n      - {name: m, input: \"1\"}\n",
	 "entry 1: output"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    models:\n      - {name: m, input: \"-1\", output: \"1\"}\n",
	 "entry 1: input"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    models:\n      - {name: m, input: \"1.\", output: \"1\"}\n",
	 "entry 1: input"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    models:\n      - {name: m, input: \"1.0000001\", output: \"1\"}\n",
	 "entry 1: input"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    models:\n      - {name: m, input: \"1e3\", output: \"1\"}\n",
	 "entry 1: input"},
	{V "portals:\n  - name: a\n    kind: openai\n    url: \"https://a.example\"\n"
	   "    models:\n      - {name: \"*\", input: \"1\", output: \"1\"}\n",
	 "entry 1: models"},
	{PORTAL "      - {name: m, input: \"1\", output: \"1\"}\n",
	 "entry 1: models: one stands there twice"},
	{PORTAL "  - {name: main, kind: openai}\n",
	 "line 9: portals, entry 2: name: another"},
	{PORTAL "  - name: b\n    kind: openai\n    url: \"https://b.example\"\n" MODELS,
	 "line 12: portals, entry 2: models: another portal of this kind"},
	{PORTAL "  - name: b\n    kind: anthropic\n    url: \"https://b.example\"\n"
		"    secret: portal_main\n" MODELS,
	 "line 12: portals, entry 2: secret: another portal has it"},
	/* what a URL could never say: one grammar for the rules and the jobs */
	{WITH_URL("https://api.example.9x"), "url: a host that ends in a number"},
	{WITH_URL("https://api.example.1"), "url: a host that ends in a number"},
	{WITH_URL("https://a.xn--zz"), "url: a part of the host begins with xn--"},
	{RULE("{host: api.example.9x, action: allow}"), RULE_LINE ": host"},
	{RULE("{host: a.xn--zz, action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \"*.xn--.example\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: a.example, path: \"/v1/..;x\", action: allow}"),
	 RULE_LINE ": path"},
	{RULE("{host: a.example, path: \"/.;/x\", action: allow}"), RULE_LINE ": path"},
	{RULE("{host: \"*." A60 "." A60 "." A60 "." A60 ".abcdefgh\", action: allow}"),
	 RULE_LINE ": host: no name has room"},
	{RULE("{host: a.example, path: \"/" A950 A950 A950 A950 "\", action: allow}"),
	 RULE_LINE ": path: longer than 3800"},
	/* a wildcard where strangers have names */
	{RULE("{host: \"*.co.uk\", action: allow}"), RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.co.uk\", action: limit, limit: 1/min}"),
	 RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.com.au\", action: allow}"), RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.github.io\", action: allow}"), RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.kawasaki.jp\", action: allow}"), RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.foo.kawasaki.jp\", action: allow}"),
	 RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.amazonaws.com\", action: allow}"),
	 RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.s3.eu-west-1.amazonaws.com\", action: allow}"),
	 RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.foo.ck\", action: allow}"), RULE_LINE ": host: strangers"},
	{RULE("{host: \"*.xn--55qx5d.cn\", action: allow}"),
	 RULE_LINE ": host: strangers"},
	{MODEL("max_output: 0"), "entry 1: max_output"},
	{MODEL("max_output: lots"), "entry 1: max_output"},
	{MODEL("context: 1000000000"), "entry 1: context"},
	{MODEL("picture: -1"), "entry 1: picture"},
	{MODEL("cache_write: \"x\""), "entry 1: cache_write"},
	{MODEL("cache_read: \"-1\""), "entry 1: cache_read"},
	{MODEL("max_price: 1"), "line 7"},
	{EXTRA("{name: beta, input: \"1\", output: \"1\"}"), "entry 1: extras: each"},
	{EXTRA("{name: \"beta:\", input: \"1\", output: \"1\"}"),
	 "entry 1: extras: each"},
	{EXTRA("{name: \"beta:a,b\", input: \"1\", output: \"1\"}"),
	 "entry 1: extras: each"},
	{EXTRA("{name: \"tier:x\", input: \"1\", output: \"1\"}"),
	 "entry 1: extras: each"},
	{EXTRA("{name: \"speed:fast\", input: \"1\"}"), "entry 1: output"},
	{EXTRA("{name: \"speed:fast\", input: \"1\", output: \"1\", context: 0}"),
	 "entry 1: context"},
	{EXTRA("{name: audio, input: \"1\", output: \"1\"}\n"
	       "          - {name: audio, input: \"1\", output: \"1\"}"),
	 "entry 1: extras: one stands there twice"},
	{PORTAL "    max_output: 0\n", "entry 1: max_output"},
	{PORTAL "    output_cap: n_predict\n", "entry 1: output_cap: max_tokens or"},
	{PORTAL "    betas:\n      - a\n", "entry 1: betas: only with kind anthropic"},
	{V "portals:\n  - name: a\n    kind: anthropic\n    url: \"https://a.example\"\n"
	   "    betas:\n      - \"a b\"\n" MODELS,
	 "entry 1: betas: each is a name"},
	{V "portals:\n  - name: a\n    kind: anthropic\n    url: \"https://a.example\"\n"
	   "    output_cap: max_tokens\n" MODELS,
	 "entry 1: output_cap: only with kind openai"},
	/* registries */
	{V "registries: {gem: {url: \"https://a.example\"}}\n", "line 2"},
	{V "registries: {npm: {}}\n", "line 2"},
	{V "registries: {go: {}}\n", "line 2"},
	{V "registries: {cargo: {url: \"sparse+https://a.example\"}}\n",
	 "line 2: registries.cargo: url"},
	{V "registries:\n  go:\n    url: \"https://a.example\"\n    file_hosts:\n"
	   "      - b\n",
	 "line 5: registries.go: file_hosts"},
	{V "registries: {npm: {url: \"http://a.example\"}}\n",
	 "line 2: registries.npm: url: https"},
	{V "registries:\n  npm: {url: \"https://a.example\"}\n"
	   "  pypi: {url: \"https://x:y@a.example\"}\n",
	 "line 4: registries.pypi: url: a user"},
	{V "registries:\n  pypi:\n    url: \"https://a.example\"\n    file_hosts:\n"
	   "      - \"*.example.org\"\n",
	 "line 5: registries.pypi: file_hosts"},
	/* ward */
	{RULE("{portal: main}"), RULE_LINE ": action"},
	{RULE("{portal: main, action: approve}"), RULE_LINE ": action"},
	{RULE("{portal: main, action: ALLOW}"), RULE_LINE ": action"},
	{RULE("{portal: other, action: allow}"), RULE_LINE ": portal: no portal"},
	{RULE("{portal: other, action: deny}"), RULE_LINE ": portal: no portal"},
	{RULE("{registry: npm, action: allow}"), RULE_LINE ": registry"},
	{RULE("{registry: gem, action: deny}"), RULE_LINE ": registry"},
	{RULE("{registry: cargo, action: allow}"), RULE_LINE ": registry"},
	{RULE("{registry: go, action: allow}"), RULE_LINE ": registry"},
	{RULE("{action: allow}"), RULE_LINE ": exactly one of"},
	{RULE("{portal: main, host: a.example, action: allow}"), "exactly one of"},
	{RULE("{portal: main, colour: red, action: allow}"), "line 10"},
	{RULE("{portal: main, path: /v1, action: allow}"), "belong to a host"},
	{RULE("{portal: main, method: GET, action: deny}"), "belong to a host"},
	{RULE("{host: \"\", action: allow}"), "line 10"},
	{RULE("{host: \"*\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \"*.com\", action: allow}"),
	 RULE_LINE ": host: a host name of one"},
	/* what no URL can say */
	{RULE("{host: api.example.9x, action: allow}"),
	 RULE_LINE ": host: a host that ends in a number"},
	{RULE("{host: a.xn--zz, action: allow}"),
	 RULE_LINE ": host: a part of the host begins with xn--"},
	{RULE("{host: 0x7f, action: deny}"),
	 RULE_LINE ": host: a host that ends in a number"},
	{RULE("{host: Api, action: deny}"), RULE_LINE ": host: a host is lower-case"},
	{RULE("{host: \"::\", action: deny}"), RULE_LINE ": host"},
	{RULE("{host: \"::ffff:127.0.0.1\", action: deny}"), RULE_LINE ": host"},
	{RULE("{host: \"*.\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \"a.*.example.org\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \"*.*.example.org\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \"*example.org\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \".example.org\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \"*.10.0.0.1\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: \"a.example:443\", action: allow}"), RULE_LINE ": host"},
	{RULE("{host: a.example, port: 0, action: allow}"), RULE_LINE ": port"},
	{RULE("{host: a.example, port: any, action: allow}"), RULE_LINE ": port"},
	{RULE("{host: a.example, scheme: ftp, action: allow}"), RULE_LINE ": scheme"},
	{RULE("{host: a.example, method: TRACE, action: allow}"), RULE_LINE ": method"},
	{RULE("{host: a.example, method: get, action: allow}"), RULE_LINE ": method"},
	{RULE("{host: a.example, path: v1, action: allow}"), RULE_LINE ": path"},
	{RULE("{host: a.example, path: \"/a/../b\", action: allow}"), RULE_LINE ": path"},
	{RULE("{host: a.example, path: \"/a/..\", action: allow}"), RULE_LINE ": path"},
	{RULE("{host: a.example, path: \"/%61\", action: allow}"), RULE_LINE ": path"},
	{RULE("{host: a.example, path: \"/*\", action: allow}"), RULE_LINE ": path"},
	{RULE("{host: a.example, action: limit}"), RULE_LINE ": limit: it belongs"},
	{RULE("{host: a.example, action: allow, limit: 1/min}"), RULE_LINE ": limit"},
	{RULE("{host: a.example, action: limit, limit: 0/min}"), RULE_LINE ": limit"},
	{RULE("{host: a.example, action: limit, limit: 5/s}"), RULE_LINE ": limit"},
	{RULE("{host: a.example, action: limit, limit: 5}"), RULE_LINE ": limit"},
	{RULE("{host: a.example, action: limit, limit: /min}"), RULE_LINE ": limit"},
	/* there is nobody yet whom these could mean, or who could be asked */
	{RULE("{portal: main, identity: owner, action: allow}"), "identity"},
	{RULE("{portal: main, action: hold}"), RULE_LINE ": action"},
	{RULE("{portal: main, credential: main, action: allow}"),
	 RULE_LINE ": credential"},
	{RULE("{host: api.example.com, credential: x, action: allow}"),
	 RULE_LINE ": credential: no portal"},
	{RULE("{host: evil.example.com, credential: main, action: allow}"),
	 RULE_LINE ": credential: a portal's key goes to the portal's own host"},
	{RULE("{host: \"*.example.com\", credential: main, action: allow}"),
	 RULE_LINE ": credential: a portal's key"},
	{RULE("{host: api.example.com, port: 8443, credential: main, action: allow}"),
	 RULE_LINE ": credential: a portal's key"},
	{RULE("{host: api.example.com, scheme: http, credential: main, action: allow}"),
	 RULE_LINE ": credential: a portal's key"},
	{RULE("{host: api.example.com, path: /v2/x, credential: main, action: allow}"),
	 RULE_LINE ": credential: a portal's key goes below"},
	{RULE("{host: api.example.com, credential: main, action: deny}"),
	 RULE_LINE ": credential"},
	{RULE("{portal: main, action: allow}\n  - {portal: main, action: no}"),
	 "line 11: ward, entry 2: action"},
	{RULE("host: \"*.example.org\"\n    action: allow\n    addresses:\n"
	      "      - 10.0.0.1"),
	 "ward, entry 1: addresses"},
	/* budgets, gate, egress */
	{V "budgets: {job: {requests: -1}}\n", "line 2: budgets.job.requests"},
	{V "budgets: {job: {requests: unlimited}}\n", "line 2: budgets.job.requests"},
	{V "budgets: {day: {packages: 1.5}}\n", "line 2: budgets.day.packages"},
	{V "budgets: {day: {money: \"1,50\"}}\n", "line 2: budgets.day.money"},
	{V "budgets: {week: {money: \"1\"}}\n", "line 2"},
	{V "budgets: {job: {bytes: lots}}\n", "line 2: budgets.job.bytes"},
	{V "gate: {portal_threshold: \"1.01\"}\n", "line 2: gate.portal_threshold"},
	{V "gate: {portal_threshold: \".4\"}\n", "line 2: gate.portal_threshold"},
	{V "gate: {portal_threshold: nan}\n", "line 2: gate.portal_threshold"},
	{V "gate: {portal_threshold: \"0.70\"}\n",
	 "line 2: gate.portal_threshold: portal_threshold must be below"},
	{V "gate: {forbidden_threshold: \"0.1\"}\n", "line 2: gate.forbidden_threshold"},
	{V "gate: {off: yes}\n", "line 2"},
	{V "egress: {connect: 0}\n", "line 2: egress.connect"},
	{V "egress: {total: 25h}\n", "line 2: egress.total"},
	{V "egress: {request_max: 5MiB}\n", "line 2: egress.request_max"},
	{V "egress: {in_flight: 0}\n", "line 2: egress.in_flight"},
	{V "egress: {retries: 6}\n", "line 2: egress.retries"},
	{V "egress: {verify: no}\n", "line 2"},
	{V "egress: {authorities: ca.pem}\n", "line 2: egress.authorities"},
	{V "egress: {authorities: \"\"}\n", "line 2"},
};

Test(conf_egress, refuses)
{
	for (size_t i = 0; i < ARRAY_SIZE(bads); i++) {
		struct conf c;
		struct err err = ERR_INIT;

		cr_expect(conf_parse(bads[i].text, strlen(bads[i].text), &c, &err) < 0,
			  "%zu: %s", i, bads[i].text);
		cr_expect_eq(err.id, ERRID_START_CONFIG, "%zu: %s", i, bads[i].text);
		cr_expect(strstr(err.msg, bads[i].part), "%zu: %s: message is: %s", i,
			  bads[i].text, err.msg);
		cr_expect(strstr(err.msg, "line "), "%s", err.msg);
	}
}

static void read_conf(const char *text, struct conf *ret)
{
	struct err err = ERR_INIT;

	cr_assert(conf_parse(text, strlen(text), ret, &err) == 0, "%s", err.msg);
}

static void strcat_line(char *text, size_t size, const char *line)
{
	size_t n = strlen(text);

	cr_assert(str_fmt(text + n, size - n, "%s\n", line) == 0);
}

Test(conf_egress, nothing_is_allowed_unless_written)
{
	struct conf c;

	read_conf(V, &c);
	cr_expect_eq(c.broker.n_portals, 0);
	cr_expect_eq(c.broker.n_rules, 0);
	cr_expect_null(c.broker.registry[REGISTRY_NPM].url.text);
	cr_expect_null(c.broker.registry[REGISTRY_PYPI].url.text);
	for (size_t i = 0; i < BUDGET_SCOPE_MAX_; i++) {
		const struct conf_budget *b = &c.broker.budget[i];

		cr_expect(b->requests && b->tokens && b->money_micro && b->bytes);
		cr_expect(b->denials > 0);
	}
	cr_expect_eq(c.broker.gate.portal_threshold, 0.40);
	cr_expect_eq(c.broker.gate.forbidden_threshold, 0.70);
	conf_done(&c);
}

Test(conf_egress, portals_and_registries_are_read)
{
	static const char text[] = PORTAL
		"      - {name: \"vendor/big-1.5:free\", input: \"2.50\", output: 10}\n"
		"  - name: local\n    kind: openai\n    secret: none\n"
		"    url: \"http://127.0.0.1:8080/v1/\"\n"
		"    addresses:\n      - 127.0.0.1\n      - \"FD00::1\"\n"
		"    models:\n      - {name: small, input: \"0\", output: \"0.000001\"}\n"
		"  - name: other\n    kind: anthropic\n    url: "
		"\"https://[fd00::1]:8443\"\n"
		"    addresses:\n      - \"fd00:0::1\"\n" MODELS
		"registries:\n  npm: {url: \"https://npm.example.org/\"}\n"
		"  cargo:\n    url: \"https://index.example.org\"\n"
		"    file_hosts:\n      - crates.example.org\n"
		"  go: {url: \"https://go.example.org/\"}\n"
		"  pypi:\n    url: \"https://pypi.example.org/simple\"\n"
		"    file_hosts:\n      - files.example.org\n"
		"    addresses:\n      - 10.1.2.3\n";
	const struct conf_model *m = NULL;
	const struct conf_portal *p;
	struct conf c;

	read_conf(text, &c);
	cr_assert_eq(c.broker.n_portals, 3);
	p = &c.broker.portal[0];
	cr_expect_str_eq(p->url.text, "https://api.example.com/v1");
	cr_expect_str_eq(p->secret, "portal_main");
	cr_expect(p->url.https && !p->url.is_address && p->url.port == 443);
	p = conf_portal_of_model(&c.broker, PORTAL_OPENAI, "vendor/big-1.5:free", &m);
	cr_expect_eq(p, &c.broker.portal[0]);
	cr_expect(m && m->input_price == 2500000 && m->output_price == 10000000);
	p = conf_portal_of_model(&c.broker, PORTAL_ANTHROPIC, "m", &m);
	cr_expect_eq(p, &c.broker.portal[2]);
	cr_expect_str_eq(p->url.host, "fd00::1");
	cr_expect_str_eq(p->url.text, "https://[fd00::1]:8443");
	cr_expect_str_eq(p->url.path, "");
	cr_expect_null(conf_portal_of_model(&c.broker, PORTAL_ANTHROPIC, "small", NULL));
	p = conf_portal_find(&c.broker, "local");
	cr_expect_eq(p, &c.broker.portal[1]);
	cr_expect_null(p->secret);
	cr_expect(!p->url.https && p->url.is_address && p->url.port == 8080);
	cr_expect_str_eq(p->url.path, "/v1");
	cr_expect_str_eq(p->addresses.v[1], "fd00::1");
	cr_expect_str_eq(c.broker.registry[REGISTRY_NPM].url.text,
			 "https://npm.example.org");
	cr_expect_str_eq(c.broker.registry[REGISTRY_CARGO].file_host[0],
			 "crates.example.org");
	cr_expect_str_eq(c.broker.registry[REGISTRY_GO].url.text,
			 "https://go.example.org");
	cr_expect_str_eq(c.broker.registry[REGISTRY_PYPI].url.path, "/simple");
	cr_expect_str_eq(c.broker.registry[REGISTRY_PYPI].file_host[0],
			 "files.example.org");
	cr_expect_str_eq(c.broker.registry[REGISTRY_PYPI].addresses.v[0], "10.1.2.3");
	conf_done(&c);
}

Test(conf_egress, a_wildcard_of_one_owner_is_allowed_and_of_any_denied)
{
	static const char *const goods[] = {
		RULE("{host: \"*.example.co.uk\", action: allow}"),
		RULE("{host: \"*.example.com\", action: allow}"),
		RULE("{host: \"*.me.github.io\", action: allow}"),
		RULE("{host: \"*.city.kawasaki.jp\", action: allow}"),
		RULE("{host: \"*.www.ck\", action: allow}"),
		RULE("{host: \"*.internal.home\", action: allow}"),
		RULE("{host: \"*.co.uk\", action: deny}"),
		RULE("{host: \"*.github.io\", action: deny}"),
		RULE("{host: raw.githubusercontent.com, action: allow}"),
		RULE("{host: co.uk, action: allow}"),
		RULE("{host: a.xn--bcher-kva.example, action: allow}"),
		RULE("{host: build-host, action: allow}"),
		RULE("{host: xn--bcher-kva, action: deny}"),
		RULE("{host: \"*.com\", action: deny}"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(goods); i++) {
		struct conf c;

		read_conf(goods[i], &c);
		cr_expect_eq(c.broker.n_rules, 1);
		conf_done(&c);
	}
}

Test(conf_egress, prices_and_bounds_of_a_model_are_read)
{
	static const char text[] = PORTAL
		"    max_output: 32000\n    output_cap: max_completion_tokens\n"
		"  - name: other\n    kind: anthropic\n"
		"    url: \"https://b.example\"\n"
		"    betas:\n      - new-2027-01-01\n    models:\n"
		"      - name: big\n        input: \"3\"\n        output: \"15\"\n"
		"        cache_read: \"0.30\"\n        cache_write: \"3.75\"\n"
		"        max_output: 64000\n        context: 200000\n"
		"        picture: 1600\n        extras:\n"
		"          - {name: \"beta:context-1m-2025-08-07\", input: \"6\", "
		"output: \"22.50\", context: 1000000}\n"
		"          - {name: \"speed:fast\", input: \"30\", output: \"150\"}\n"
		"      - {name: plain, input: \"1\", output: \"5\"}\n";
	const struct conf_model *m = NULL;
	const struct conf_portal *p;
	struct conf c;

	read_conf(text, &c);
	p = &c.broker.portal[0];
	cr_expect_eq(p->output_cap, CAP_MAX_COMPLETION_TOKENS);
	cr_expect(p->model[0].max_output == 32000 && p->model[0].picture == 50000 &&
		  p->model[0].context == 0);
	p = conf_portal_of_model(&c.broker, PORTAL_ANTHROPIC, "big", &m);
	cr_assert(p && m && p->n_betas == 1 && m->n_extras == 2);
	cr_expect_str_eq(p->beta[0], "new-2027-01-01");
	cr_expect(m->cache_read_price == 300000 && m->cache_write_price == 3750000 &&
		  m->has_cache_write);
	cr_expect(m->max_output == 64000 && m->context == 200000 && m->picture == 1600);
	cr_expect_str_eq(m->extra[0].name, "beta:context-1m-2025-08-07");
	cr_expect(m->extra[0].input_price == 6000000 &&
		  m->extra[0].output_price == 22500000 &&
		  m->extra[0].context == 1000000 && m->extra[1].context == 0);
	m = &p->model[1];
	cr_expect(m->cache_read_price == 1000000 && m->cache_write_price == 1250000 &&
		  !m->has_cache_write && m->max_output == 0 && m->picture == 5000);
	conf_done(&c);
}

Test(conf_egress, what_an_allow_leaves_out_is_narrow_and_a_deny_wide)
{
	static const char text[] = PORTAL
		"registries: {npm: {url: \"https://npm.example.org\"}}\n"
		"ward:\n"
		"- {portal: main, action: limit, limit: 60/min}\n"
		"# a comment between\n"
		"- {registry: npm, action: allow}\n"
		"- {host: a.example.org, action: allow}\n"
		"- {host: \"*.example.org\", scheme: http, action: deny, reason: \"ask, "
		"first\"}\n"
		"- {host: a.example.org, action: deny}\n"
		"- host: api.example.com\n"
		"  method: POST\n"
		"  path: /v1/files\n"
		"  action: limit\n"
		"  limit: 5/day\n"
		"  credential: main\n"
		"- {host: a.example.org, scheme: http, action: allow}\n";
	const struct conf_rule *r;
	struct conf c;

	read_conf(text, &c);
	cr_assert_eq(c.broker.n_rules, 7);
	r = c.broker.rule;
	cr_expect(r[0].target == WARD_PORTAL && r[0].action == WARD_LIMIT);
	cr_expect(r[0].limit_count == 60 && r[0].limit_window_usec == 60 * USEC_PER_SEC);
	cr_expect_eq(r[0].line, 11);
	cr_expect(r[1].target == WARD_REGISTRY && r[1].line == 13);
	cr_expect(r[2].scheme == WARD_HTTPS && r[2].port == 443);
	cr_expect_str_eq(r[2].method, "GET");
	cr_expect_null(r[2].path);
	cr_expect(r[3].is_suffix && r[3].scheme == WARD_HTTP && r[3].port == 0);
	cr_expect_str_eq(r[3].name, "example.org");
	cr_expect_str_eq(r[3].reason, "ask, first");
	cr_expect(r[4].scheme == WARD_ANY_SCHEME && r[4].port == 0 && !r[4].method);
	cr_expect_str_eq(r[5].credential, "main");
	cr_expect_eq(r[5].line, 17);
	cr_expect(r[6].scheme == WARD_HTTP && r[6].port == 80);
	conf_done(&c);
}

Test(conf_egress, budgets_gate_and_caps_are_read)
{
	static const char text[] = V
		"budgets:\n  job: {requests: 10, tokens: 0, money: \"0.5\", bytes: 1MiB, "
		"denials: 3, packages: 4}\n  day: {money: 7}\n"
		"gate: {portal_threshold: \"0\", forbidden_threshold: \"1\"}\n"
		"egress: {connect: 1s, first_byte: 2s, idle: 3s, total: 4s, request_max: "
		"1KiB, response_max: 2GiB, package_max: 3MiB, in_flight: 2, retries: "
		"0, authorities: \"/home/a b/ca.pem\"}\n";
	struct conf c;
	const struct conf_budget *b = c.broker.budget;
	const struct conf_egress *e = &c.broker.egress;

	read_conf(text, &c);
	cr_expect(b[BUDGET_JOB].requests == 10 && b[BUDGET_JOB].tokens == 0);
	cr_expect(b[BUDGET_JOB].bytes == 1 << 20 && b[BUDGET_JOB].denials == 3);
	cr_expect(b[BUDGET_JOB].packages == 4 && b[BUDGET_DAY].packages == 40000);
	cr_expect(b[BUDGET_JOB].money_micro == 500000 &&
		  b[BUDGET_DAY].money_micro == 7000000);
	cr_expect_eq(c.broker.gate.portal_threshold, 0.0);
	cr_expect_eq(c.broker.gate.forbidden_threshold, 1.0);
	cr_expect(e->connect_usec == USEC_PER_SEC && e->total_usec == 4 * USEC_PER_SEC);
	cr_expect(e->first_byte_usec == 2 * USEC_PER_SEC &&
		  e->idle_usec == 3 * USEC_PER_SEC);
	cr_expect(e->request_max_bytes == 1024 && e->response_max_bytes == (uint64_t)2
										   << 30);
	cr_expect(e->package_max_bytes == 3 << 20 && e->in_flight == 2);
	cr_expect_eq(e->retries, 0);
	cr_expect_str_eq(e->authorities, "/home/a b/ca.pem");
	conf_done(&c);
}

/* The example in the template is commented out; it must be right all the same. */
Test(conf_egress, template_is_the_defaults_and_its_example_is_valid)
{
	char text[16384] = "";
	struct conf c, d;
	bool example = false;
	char *save = NULL;
	cleanup_free char *copy = strdup(conf_template());

	conf_defaults(&d);
	read_conf(conf_template(), &c);
	cr_expect_eq(c.broker.n_portals + c.broker.n_rules, 0);
	for (size_t i = 0; i < BUDGET_SCOPE_MAX_; i++)
		cr_expect_arr_eq(&c.broker.budget[i], &d.broker.budget[i],
				 sizeof(c.broker.budget[i]));
	cr_expect_arr_eq(&c.broker.egress, &d.broker.egress, sizeof(d.broker.egress));
	cr_expect_eq(c.broker.gate.portal_threshold, d.broker.gate.portal_threshold);
	cr_expect_eq(c.broker.gate.forbidden_threshold,
		     d.broker.gate.forbidden_threshold);
	conf_done(&c);

	strcat_line(text, sizeof(text), "version: \"1\"");
	for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		if (str_starts(l, "# portals:"))
			example = true;
		if (str_starts(l, "# What may be used up"))
			break;
		if (example && str_starts(l, "# ") && !str_starts(l, "# The strictest") &&
		    !str_starts(l, "# denied"))
			strcat_line(text, sizeof(text), l + 2);
	}
	read_conf(text, &c);
	cr_expect_eq(c.broker.n_portals, 2);
	cr_expect_eq(c.broker.n_rules, 5);
	cr_expect_not_null(c.broker.registry[REGISTRY_PYPI].url.text);
	conf_done(&c);
	conf_done(&d);
}
