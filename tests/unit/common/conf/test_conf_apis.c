/* SPDX-License-Identifier: Apache-2.0 */
/* What of its kind's API a portal of codex.yaml has. */
#include "common/conf/conf.h"
#include "common/str.h"

#include <criterion/criterion.h>

TestSuite(conf_apis, .timeout = 20);

#define LACKS(kind, lacks)                                                               \
	"version: \"1\"\nportals:\n  - name: a\n    kind: " kind "\n"                    \
	"    url: \"https://a.example\"\n    models:\n"                                  \
	"      - {name: m, input: \"0\", output: \"0\"}\n    lacks:\n" lacks
#define PORTAL_OF(kind, model)                                                           \
	"version: \"1\"\nportals:\n  - name: a\n    kind: " kind "\n"                    \
	"    url: \"https://a.example\"\n    models:\n"                                  \
	"      - {name: \"" model "\", input: \"0\", output: \"0\"}\n"
#define IT(name) "      - " name "\n"

Test(conf_apis, what_no_portal_of_the_kind_could_lack_is_refused)
{
	static const struct {
		const char *text, *part;
	} bads[] = {
		{LACKS("openai", IT("messages")),
		 "line 8: portals, entry 1: lacks: chat, "},
		{LACKS("anthropic", IT("responses")), "lacks: messages, count_tokens"},
		{LACKS("openai", IT("Responses")), "lacks: chat, responses, embeddings"},
		{LACKS("openai", IT("none")), "lacks: chat, responses, embeddings"},
		{LACKS("anthropic", IT("messages") IT("count_tokens")),
		 "lacks: all that its kind has"},
		{LACKS("gemini", IT("messages")), "lacks: generate, count_tokens"},
		{LACKS("gemini", IT("generate") IT("count_tokens")),
		 "lacks: all that its kind has"},
		{LACKS("Gemini", IT("generate")), "kind: openai, anthropic or gemini"},
		{PORTAL_OF("gemini", "models/m"),
		 "of kind gemini letters, digits and ._-"},
		{PORTAL_OF("gemini", "m:generateContent"), "of kind gemini"},
	};
	struct conf c;

	for (size_t i = 0; i < ARRAY_SIZE(bads); i++) {
		struct err err = ERR_INIT;

		cr_expect(conf_parse(bads[i].text, strlen(bads[i].text), &c, &err) < 0);
		cr_expect_eq(err.id, ERRID_START_CONFIG, "%zu", i);
		cr_expect(strstr(err.msg, bads[i].part), "%zu: %s", i, err.msg);
	}
}

static void expect_apis(const char *text, const char *want)
{
	char apis[PORTAL_APIS_TEXT_SIZE];
	struct err err = ERR_INIT;
	struct conf c;

	cr_assert(conf_parse(text, strlen(text), &c, &err) == 0, "%s", err.msg);
	conf_portal_apis(&c.broker.portal[0], apis);
	cr_expect_str_eq(apis, want);
	for (unsigned a = 0; a < PORTAL_API_MAX_; a++)
		cr_expect_eq(conf_portal_has(&c.broker.portal[0], (enum portal_api)a),
			     strstr(want, portal_api_name((enum portal_api)a)) != NULL,
			     "%s: %s", want, portal_api_name((enum portal_api)a));
	conf_done(&c);
}

Test(conf_apis, a_portal_has_what_it_does_not_lack)
{
	expect_apis(LACKS("openai", IT("responses") IT("responses")), "chat, embeddings");
	expect_apis(LACKS("openai", IT("chat") IT("responses")), "embeddings");
	expect_apis(LACKS("anthropic", IT("count_tokens")), "messages");
	expect_apis(LACKS("gemini", IT("count_tokens")), "generate");
}

/* What a request with a sound may cost is bounded by the context, which no sound widens. */
Test(conf_apis, sound_is_in_the_models_context)
{
	static const char text[] =
		"version: \"1\"\nportals:\n  - name: a\n    kind: openai\n"
		"    url: \"https://a.example\"\n    models:\n"
		"      - name: m\n        input: \"0\"\n        output: \"0\"\n"
		"        context: 100000\n        extras:\n"
		"          - {name: audio, input: \"0\", output: \"0\"}\n"
		"          - {name: \"speed:fast\", input: \"0\", output: \"0\"}\n";
	const struct conf_extra *x;
	struct err err = ERR_INIT;
	struct conf c;

	cr_assert_eq(conf_parse(text, strlen(text), &c, &err), 0, "%s", err.msg);
	x = c.broker.portal[0].model[0].extra;
	cr_expect_eq(x[0].context, 100000u);
	cr_expect_eq(x[1].context, 0u, "what another speed bounds is not known");
	conf_done(&c);
}
