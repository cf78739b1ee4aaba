/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/broker_key.h"
#include "common/proto/broker_proto.h"

#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(broker_proto, .timeout = 30);

Test(broker_proto, a_key_is_43_characters_that_need_no_escape)
{
	uint8_t raw[BROKER_KEY_BYTES];
	struct broker_key k;

	memset(raw, 0xff, sizeof(raw));
	broker_key_write(raw, &k);
	cr_assert_str_eq(k.s, "lych-__________________________________________8");
	memset(raw, 0xfb, sizeof(raw));
	broker_key_write(raw, &k);
	cr_assert_eq(strlen(k.s), BROKER_KEY_SIZE - 1);
	cr_assert_eq(strspn(k.s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789-_"),
		     BROKER_KEY_SIZE - 1);
}

Test(broker_proto, each_attempt_has_a_key_of_its_own_that_both_sides_know)
{
	const struct uuid one = {"11111111-2222-4333-8444-555555555555"},
			  two = {"11111111-2222-4333-8444-555555555556"};
	struct broker_key k, other;

	broker_key_of(7, 1, &one, &k);
	cr_assert_str_eq(k.s, "lych-lC41QaONJHtgK4yjw7IQx7IdP7gSdYzyjv1RheyZO-g");
	broker_key_of(7, 1, &one, &other);
	cr_assert_str_eq(k.s, other.s);
	broker_key_of(7, 1, &two, &other);
	cr_assert_str_neq(k.s, other.s);
	broker_key_of(7, 2, &one, &other);
	cr_assert_str_neq(k.s, other.s);
	broker_key_of(71, 1, &one, &other);
	cr_assert_str_neq(k.s, other.s);
}

struct seen {
	enum egress_mode egress;
	unsigned n;
	char text[4096];
};

static void see(const char *name, const char *value, void *arg)
{
	struct seen *s = arg;
	size_t at = strlen(s->text);

	s->n++;
	(void)snprintf(s->text + at, sizeof(s->text) - at, "%s=%s\n", name, value);
	/* Set by us, so nobody else may: here, or because of its prefix or lower case. */
	cr_expect(broker_env_is_reserved(s->egress, name) ||
			  !env_name_is_allowed(name, strlen(name)),
		  "%s", name);
	cr_expect(!broker_env_is_reserved(EGRESS_NONE, name), "%s", name);
}

Test(broker_proto, every_variable_that_the_tomb_sets_is_closed_to_the_spec)
{
	static const struct broker_key key = {"lych-k"};

	for (int grade = 0; grade < GRADE_MAX_; grade++)
		for (int egress = 0; egress < EGRESS_MAX_; egress++) {
			struct seen s = {.egress = (enum egress_mode)egress};

			broker_env((enum sbx_grade)grade, s.egress, &key, see, &s);
			cr_expect_eq(s.n == 0, egress == EGRESS_NONE);
			cr_expect_eq(strstr(s.text, "NPM_CONFIG_REGISTRY=") != NULL,
				     egress == EGRESS_REGISTRY && grade == GRADE_FULL);
			cr_expect(grade == GRADE_FULL || s.n <= 2);
			cr_expect_eq(strstr(s.text, "HTTPS_PROXY=" BROKER_URL "\n") !=
					     NULL,
				     egress != EGRESS_NONE && grade == GRADE_FULL);
		}
}

Test(broker_proto, what_would_lead_the_same_programs_elsewhere_is_closed_too)
{
	cr_assert(broker_env_is_reserved(EGRESS_BROKERED, "ANTHROPIC_AUTH_TOKEN"));
	cr_assert(broker_env_is_reserved(EGRESS_BROKERED, "GOOGLE_API_KEY"));
	cr_assert(broker_env_is_reserved(EGRESS_BROKERED, "GOOGLE_GENAI_USE_VERTEXAI"));
	cr_assert(!broker_env_is_reserved(EGRESS_BROKERED, "GEMINI_MODEL"));
	cr_assert(!broker_env_is_reserved(EGRESS_BROKERED, "PIP_EXTRA_INDEX_URL"));
	cr_assert(broker_env_is_reserved(EGRESS_REGISTRY, "PIP_EXTRA_INDEX_URL"));
	cr_assert(broker_env_is_reserved(EGRESS_REGISTRY, "GOPRIVATE"));
	cr_assert(!broker_env_is_reserved(EGRESS_BROKERED, "GOPRIVATE"));
	cr_assert(!broker_env_is_reserved(EGRESS_REGISTRY, "GONOSUMDB"));
	cr_assert(broker_env_is_reserved(EGRESS_REGISTRY, "CARGO_HOME"));
	cr_assert(!broker_env_is_reserved(EGRESS_REGISTRY, "OPENAI_MODEL"));
	cr_assert(broker_env_is_reserved(EGRESS_REGISTRY, "npm_config_registry"));
	cr_assert(broker_env_is_reserved(EGRESS_BROKERED, "No_Proxy"));
}

Test(broker_proto, version_is_a_date)
{
	static const char *const bad[] = {
		"",	  "2023-6-1",  "2023-06-01 ", " 2023-06-01", "2023-06-011",
		"latest", "2023-06-0", "2023/06/01"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect(!broker_version_is_valid(bad[i]), "%s", bad[i]);
	cr_expect(broker_version_is_valid("2023-06-01"));
}

Test(broker_proto, betas_are_a_short_list_of_names)
{
	static const char *const bad[] = {"",	 " ",	 ",",	     "a,",
					  ",a",	 "a,,b", "a b",	     "a\tb",
					  "a;b", "a\"b", "\xc3\xa4", "a\r\nx: y"};
	static const char *const good[][2] = {
		{"a", "a"},
		{" a-1 , b_2.c  ,D", "a-1,b_2.c,D"},
		{"context-1m-2025-08-07,files-api-2025-04-14",
		 "context-1m-2025-08-07,files-api-2025-04-14"}};
	char out[BROKER_BETAS_SIZE], text[BROKER_BETAS_SIZE + 64];
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect(!broker_betas(bad[i], out), "%s", bad[i]);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cr_expect(broker_betas(good[i][0], out));
		cr_expect_str_eq(out, good[i][1]);
	}
	for (unsigned i = 0; i < BROKER_BETAS_MAX; i++) {
		memset(text + at, 'x', BROKER_BETA_MAX_BYTES);
		at += BROKER_BETA_MAX_BYTES;
		text[at++] = ',';
	}
	text[at - 1] = '\0';
	cr_expect(broker_betas(text, out), "as many and as long as may be");
	cr_expect_str_eq(out, text);
	text[at - 1] = 'x';
	text[at] = '\0';
	cr_expect(!broker_betas(text, out), "a letter more");
	text[at - 1] = ',';
	text[at] = 'x';
	text[at + 1] = '\0';
	cr_expect(!broker_betas(text, out), "a name more");
}

/* What clients send: nothing, browsers' and curl's words, pip before and since PEP 691, uv. */
Test(broker_proto, the_form_of_a_simple_index_is_the_clients_choice)
{
	static const struct {
		const char *accept;
		enum broker_simple want;
	} rows[] = {
		{"", SIMPLE_NEITHER},
		{"image/png", SIMPLE_NEITHER},
		{"application/json", SIMPLE_NEITHER},
		{"text/html;q=0", SIMPLE_NEITHER},
		{"text/html;q=2", SIMPLE_NEITHER},
		{"text/html;q=0.5000", SIMPLE_NEITHER},
		{"text/html;q=-1, application/vnd.pypi.simple.v1+json;q=x",
		 SIMPLE_NEITHER},
		{"application/vnd.pypi.simple.v2+json", SIMPLE_NEITHER},
		{"*/*;q=0", SIMPLE_NEITHER},
		{"text/html; q=0, */*", SIMPLE_JSON},
		{"application/vnd.pypi.simple.v1+json", SIMPLE_JSON},
		{"Application/Vnd.PyPI.Simple.latest+JSON ; a=b ; Q=0.001", SIMPLE_JSON},
		{"text/html", SIMPLE_HTML},
		{"text/*", SIMPLE_HTML},
		{"application/vnd.pypi.simple.v1+html", SIMPLE_HTML},
		{"application/vnd.pypi.simple.v1+json;q=0, text/html;q=0.1", SIMPLE_HTML},
		{NULL, SIMPLE_HTML_JSON},
		{"*/*", SIMPLE_HTML_JSON},
		{"text/html, */*; q=0.8", SIMPLE_HTML_JSON},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		 SIMPLE_HTML_JSON},
		{"application/vnd.pypi.simple.v1+json, "
		 "application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01",
		 SIMPLE_JSON_HTML},
		{"application/vnd.pypi.simple.v1+json, "
		 "application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01",
		 SIMPLE_JSON_HTML},
		{"text/html,application/vnd.pypi.simple.v1+json", SIMPLE_JSON_HTML},
		{" ,, text/html;q=1.000 ,application/vnd.pypi.simple.v1+json;q=0.999,",
		 SIMPLE_HTML_JSON},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_str_eq(broker_simple_name(broker_simple_of(rows[i].accept)),
				 broker_simple_name(rows[i].want), "%s",
				 rows[i].accept ? rows[i].accept : "(none)");
	for (unsigned i = 0; i < SIMPLE_MAX_; i++) {
		enum broker_simple s = SIMPLE_MAX_;

		cr_expect(broker_simple_from_name(
				  broker_simple_name((enum broker_simple)i), &s) &&
			  s == (enum broker_simple)i);
	}
	cr_expect(!broker_simple_from_name("xml", &(enum broker_simple){0}));
	cr_expect(!broker_simple_from_name("", &(enum broker_simple){0}));
}

Test(broker_proto, names_of_egress)
{
	enum egress_mode m = EGRESS_NONE;

	cr_assert(!egress_mode_from_name("open", &m));
	cr_assert(!egress_mode_from_name(NULL, &m));
	cr_assert(egress_mode_from_name("registry", &m));
	cr_assert_eq(m, EGRESS_REGISTRY);
	cr_assert_str_eq(egress_mode_name(EGRESS_BROKERED), "brokered");
	cr_assert_null(egress_mode_name(EGRESS_MAX_));
}
