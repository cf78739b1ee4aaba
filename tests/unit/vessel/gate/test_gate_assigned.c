/* SPDX-License-Identifier: Apache-2.0 */
/* A keyword and its value in the spellings of an assignment that languages and tools have. */
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>

TestSuite(gate_assigned, .init = begin, .fini = end, .timeout = 60);

/* %s is the value. */
static const char *const spellings[] = {
	"API_KEY=%s",
	"api_key = \"%s\"",
	"api_key: %s",
	"{\"api_key\": \"%s\"}",
	"'api_key' => '%s',",
	":api_key => \"%s\"",
	"export API_KEY=%s",
	"apiKey := \"%s\"",
	"API_KEY ?= %s",
	"API_KEY ::= %s",
	"API_KEY :::= %s",
	"API_KEY += %s",
	"$api_key .= \"%s\";",
	"api_key ||= '%s'",
	"var apiKey string = \"%s\"",
	"const apiKey: string = \"%s\";",
	"let api_key: &str = \"%s\";",
	"api_key: str = '%s'",
	"char api_key[] = \"%s\";",
	"config[\"api_key\"] = \"%s\"",
	"$env:API_KEY = \"%s\"",
	"System.setProperty(\"API_KEY\", \"%s\");",
	"os.environ.setdefault('API_KEY', '%s')",
	"define('API_KEY','%s');",
	"db.password=%s",
	"<password>%s</password>",
	"<password>\n    %s\n  </password>",
	"<string name=\"api_key\">%s</string>",
	"<key>ApiKey</key>\n  <string>%s</string>",
	"<add key=\"ApiKey\" value=\"%s\" />",
	"<add key=\"ApiKey\"\n     value=\"%s\" />",
	"<c password=\"%s\"/>",
	"{\"name\": \"API_KEY\", \"value\": \"%s\"}",
	"- name: API_KEY\n  value: %s",
	"{\\\"api_key\\\": \\\"%s\\\"}",
	"{\"file\": \"API_KEY=%s\\nOTHER=1\\n\"}",
	"login --password %s now",
	"login --api-key=%s",
	"ENV API_KEY %s",
	"setenv API_KEY %s",
	"set -gx API_KEY %s",
};

static const char *const values[] = {"kJ8vT2mQ9xLw4Zp7", "Zr9-4Kt5_Wv8Nq2Lm",
				     "b7K2m9Qx4T1v8Lw3Zp6Rn5Yc"};
#define N(a) (sizeof(a) / sizeof((a)[0]))

static void put(struct buf *b, const char *form, const char *value)
{
	const char *at = strstr(form, "%s");

	buf_adds(b, "see\n");
	buf_add(b, form, (size_t)(at - form));
	buf_adds(b, value);
	buf_adds(b, at + 2);
	buf_adds(b, "\nthere\n");
}

Test(gate_assigned, in_each_spelling_the_value_is_found)
{
	for (size_t i = 0; i < N(spellings); i++)
		for (size_t k = 0; k < N(values); k++) {
			cleanup_buf struct buf b = new_buf();
			const char *at;
			bool is_found = false;

			put(&b, spellings[i], values[k]);
			cr_expect_geq(score_of(b.data, b.len), 0.4, "%s", b.data);
			at = strstr(buf_str(&b), values[k]);
			for (size_t f = 0; f < r.n; f++)
				is_found |=
					b.data + r.finding[f].offset <= at &&
					b.data + r.finding[f].offset + r.finding[f].len >=
						at + strlen(values[k]);
			cr_expect(is_found, "%s", b.data);
		}
}

Test(gate_assigned, what_is_no_secret_in_the_same_spellings)
{
	static const char *const harmless[] = {"changeme", "${API_KEY}",
					       "settings", "placeholder",
					       "<token>",  "{{ vault.key }}"};

	for (size_t i = 0; i < N(spellings); i++)
		for (size_t k = 0; k < N(harmless); k++) {
			cleanup_buf struct buf b = new_buf();

			put(&b, spellings[i], harmless[k]);
			cr_expect_lt(score_of(b.data, b.len), 0.4, "%s: %f %s", b.data,
				     r.score, r.n ? r.finding[0].rule : "");
		}
}

Test(gate_assigned, code_that_only_names_one)
{
	static const char *const fine[] = {
		"var token string\nfor token = range tokens {",
		"func (c *Client) SetPassword(password string) error {",
		"if password == \"\" || token != nil {",
		"f(\"password\", \"username\", \"email\")",
		"<label>Password</label><input name=\"password\"/>",
		"<th>Token</th>\n<td>description</td>",
		"login --password-stdin --username admin",
		"set tokens_per_second 100000",
		"The password is asked for; the value: see below",
		"token: Token, secret: Option<String>,",
		"password: Optional[str] = None",
	};

	for (size_t i = 0; i < N(fine); i++)
		cr_expect_lt(score_of(fine[i], strlen(fine[i])), 0.4, "%s: %f %s",
			     fine[i], r.score, r.n ? r.finding[0].rule : "");
}
