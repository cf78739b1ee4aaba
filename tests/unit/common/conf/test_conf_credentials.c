/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for hosts, as codex.yaml has them: what is refused first. */
#include "common/conf/conf.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <criterion/criterion.h>

TestSuite(conf_credentials, .timeout = 20);

#define V "version: \"1\"\n"
#define C(rest) V "credentials:\n  - name: forge\n" rest
#define PLACE "    host: git.example.org\n    path: /team/repo\n"
#define HOW "    header: basic\n    user: git\n"
#define SECRET "    secret: host_forge\n"
#define FORGE C(PLACE HOW SECRET)
#define REGISTRY_RULE(url, key, action)                                                  \
	FORGE "registries:\n  npm: {url: \"" url "\"}\nward:\n  - {registry: npm, "      \
	      "credential: " key ", action: " action "}\n"
#define REGISTRY(url, key) REGISTRY_RULE(url, key, "allow")
#define RULE(rule) FORGE "ward:\n  - " rule "\n"

static const struct {
	const char *text, *part;
} bads[] = {
	{V "credentials:\n  - {host: git.example.org}\n",
	 "line 3: credentials, entry 1: name"},
	{V "credentials:\n  - {name: A-b}\n", "line 3: credentials, entry 1: name"},
	{C(PLACE HOW SECRET "    method: GET\n"), "line 9"},
	{C(""), "line 3: credentials, entry 1: host"},
	{C("    host: \"*.example.org\"\n"), "entry 1: host: one exact name"},
	{C("    host: \"git.example.org:443\"\n"), "entry 1: host: one exact name"},
	{C("    host: \"git.example.org/x\"\n"), "entry 1: host: one exact name"},
	{C("    host: \"a@git.example.org\"\n"), "entry 1: host: one exact name"},
	{C("    host: \"https://git.example.org\"\n"), "entry 1: host: one exact name"},
	{C("    host: GIT.example.org\n"), "entry 1: host: one exact name"},
	{C("    host: git\n    path: /x\n"), "line 4: credentials, entry 1: host"},
	{C("    host: 10.0.0.7\n    path: /x\n" HOW SECRET),
	 "line 4: credentials, entry 1: host: an address"},
	{C("    host: git.example.org\n"), "entry 1: path: it is missing"},
	{C("    host: git.example.org\n    port: 0\n    path: /x\n"),
	 "line 5: credentials, entry 1: port"},
	{C("    host: git.example.org\n    path: x\n"), "entry 1: path: a path begins"},
	{C("    host: git.example.org\n    path: \"/a/../b\"\n"), "entry 1: path"},
	{C("    host: git.example.org\n    path: \"/%61\"\n"), "entry 1: path"},
	{C("    host: git.example.org\n    path: \"/a?b\"\n"), "entry 1: path"},
	{C("    host: git.example.org\n    path: \"/a/\"\n"),
	 "line 5: credentials, entry 1: path: no slash at its end"},
	{C(PLACE), "entry 1: header: bearer, basic"},
	{C(PLACE "    header: \"\"\n"), "line 6"},
	{C(PLACE "    header: \"X Key\"\n"), "line 6: credentials, entry 1: header"},
	{C(PLACE "    header: \"X-Key:\"\n"), "entry 1: header"},
	{C(PLACE "    header: Host\n"), "entry 1: header"},
	{C(PLACE "    header: accept\n"), "entry 1: header"},
	{C(PLACE "    header: Content-Length\n"), "entry 1: header"},
	{C(PLACE "    header: Transfer-Encoding\n"), "entry 1: header"},
	{C(PLACE "    header: Proxy-Authorization\n"), "entry 1: header"},
	{C(PLACE "    header: basic\n" SECRET), "entry 1: user: with header basic"},
	{C(PLACE "    header: bearer\n    user: git\n"),
	 "line 7: credentials, entry 1: user"},
	{C(PLACE "    header: basic\n    user: \"a:b\"\n"), "entry 1: user: letters"},
	{C(PLACE HOW), "entry 1: secret: a secret's name"},
	{C(PLACE HOW "    secret: none\n"), "entry 1: secret: a secret's name"},
	{C(PLACE HOW "    secret: host_\n"), "entry 1: secret"},
	{C(PLACE HOW "    secret: ghp_0123456789abcdef\n"),
	 "line 8: credentials, entry 1: secret: a secret's name"},
	{C(PLACE HOW "    secret: portal_main\n"), "entry 1: secret"},
	{C(PLACE HOW "    secret: lychgate_work\n"), "entry 1: secret"},
	/* two of one name, or of one key */
	{FORGE "  - name: forge\n" PLACE HOW "    secret: host_other\n",
	 "line 9: credentials, entry 2: name: another"},
	{FORGE "  - name: other\n" PLACE HOW SECRET,
	 "line 14: credentials, entry 2: secret: another credential"},
	{V "portals:\n  - name: forge\n    kind: openai\n    url: "
	   "\"https://a.example.org\"\n    models:\n      - {name: m, input: \"0\", "
	   "output: \"0\"}\ncredentials:\n  - name: forge\n" PLACE HOW SECRET,
	 "line 9: credentials, entry 1: name: another"},
	/* what a rule can't give, or could give to no request */
	{RULE("{host: git.example.org, credential: forgery, action: allow}"),
	 "line 10: ward, entry 1: credential: no portal"},
	{RULE("{host: evil.example.org, credential: forge, action: allow}"),
	 "entry 1: credential: its key goes to its own host"},
	{RULE("{host: \"*.example.org\", credential: forge, action: allow}"),
	 "entry 1: credential: its key goes to its own host"},
	{RULE("{host: git.example.org, port: 8443, credential: forge, action: allow}"),
	 "entry 1: credential: its key goes to its own host"},
	{RULE("{host: git.example.org, scheme: http, credential: forge, action: allow}"),
	 "entry 1: credential: its key goes to its own host"},
	{RULE("{host: git.example.org, path: /team/repo2, credential: forge, action: "
	      "allow}"),
	 "entry 1: credential: its key goes below its own path"},
	{RULE("{host: git.example.org, path: /other, credential: forge, action: allow}"),
	 "line 10: ward, entry 1: credential: its key goes below its own path"},
	{RULE("{host: git.example.org, credential: forge, action: deny}"),
	 "entry 1: credential: only where"},
	/* of a registry: all of it is where the key may go */
	{REGISTRY("https://npm.example.org/team/repo", "forge"),
	 "credential: its key goes to its own place"},
	{REGISTRY("https://git.example.org/team", "forge"),
	 "credential: its key goes to its own place"},
	{REGISTRY("https://git.example.org/team/repo2", "forge"),
	 "credential: its key goes to its own place"},
	{REGISTRY("https://git.example.org:8443/team/repo", "forge"),
	 "credential: its key goes to its own place"},
	{REGISTRY("https://git.example.org/team/repo", "none"),
	 "credential: of a registry it is one of credentials"},
	{REGISTRY_RULE("https://git.example.org/team/repo", "forge", "deny"),
	 "credential: only where"},
};

Test(conf_credentials, refuses)
{
	for (size_t i = 0; i < ARRAY_SIZE(bads); i++) {
		struct conf c;
		struct err err = ERR_INIT;

		cr_expect(conf_parse(bads[i].text, strlen(bads[i].text), &c, &err) < 0,
			  "%zu: %s", i, bads[i].text);
		cr_expect_eq(err.id, ERRID_START_CONFIG, "%zu", i);
		cr_expect(strstr(err.msg, bads[i].part) && strstr(err.msg, "line "),
			  "%zu: %s: message is: %s", i, bads[i].text, err.msg);
	}
}

Test(conf_credentials, are_read)
{
	static const char text[] = FORGE
		"  - name: api\n    host: 10.0.0.7\n    port: 8443\n    path: /\n"
		"    header: X-Api-Key\n    secret: host_api\n    addresses:\n"
		"      - 10.0.0.7\n"
		"  - {name: tok, host: api.example.org, path: /v1, header: bearer, "
		"secret: host_tok}\n"
		"ward:\n"
		"  - {host: git.example.org, path: /team, credential: forge, action: "
		"allow}\n"
		"  - {host: 10.0.0.7, port: 8443, method: DELETE, credential: api, "
		"action: allow}\n"
		"  - {host: api.example.org, path: /v1/x, credential: tok, action: "
		"allow}\n";
	const struct conf_credential *k;
	const struct conf_url *place;
	struct err err = ERR_INIT;
	struct conf c;

	cr_assert(conf_parse(text, strlen(text), &c, &err) == 0, "%s", err.msg);
	cr_assert_eq(c.broker.n_credentials, 3);
	k = conf_credential_find(&c.broker, "forge");
	cr_assert(k && k->form == CREDENTIAL_BASIC && !k->field);
	cr_expect_str_eq(k->user, "git");
	cr_expect_str_eq(k->url.path, "/team/repo");
	cr_expect_str_eq(k->origin, "https://git.example.org");
	k = conf_credential_find(&c.broker, "api");
	cr_assert(k && k->form == CREDENTIAL_FIELD && k->url.is_address);
	cr_expect_str_eq(k->field, "X-Api-Key");
	cr_expect_str_eq(k->url.path, "");
	cr_expect_str_eq(k->origin, "https://10.0.0.7:8443");
	cr_expect_eq(conf_credential_find(&c.broker, "tok")->form, CREDENTIAL_BEARER);
	cr_expect_str_eq(conf_key_place(&c.broker, "tok", &place), "tok");
	cr_expect_str_eq(place->text, "https://api.example.org/v1");
	cr_expect_null(conf_key_place(&c.broker, "none", &place));
	cr_expect_null(conf_key_place(&c.broker, NULL, &place));
	/* what 'lych up' looks for before anything starts */
	cr_expect_str_eq(conf_broker_secret(&c.broker, 0), "host_forge");
	cr_expect_str_eq(conf_broker_secret(&c.broker, 2), "host_tok");
	cr_expect_null(conf_broker_secret(&c.broker, 3));
	cr_expect_str_eq(c.broker.rule[0].credential, "forge");
	cr_expect_str_eq(c.broker.rule[1].method, "DELETE");
	conf_done(&c);
}

Test(conf_credentials, a_registry_has_one_by_its_rule)
{
	static const char *const texts[] = {
		REGISTRY("https://git.example.org/team/repo", "forge"),
		REGISTRY("https://git.example.org/team/repo/npm", "forge"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct err err = ERR_INIT;
		struct conf c;

		cr_assert(conf_parse(texts[i], strlen(texts[i]), &c, &err) == 0, "%s",
			  err.msg);
		cr_expect_str_eq(c.broker.rule[0].credential, "forge");
		conf_done(&c);
	}
}
