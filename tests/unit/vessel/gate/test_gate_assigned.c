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

/* Compared, between signs that assign nothing, or with a blank between: a value that only then is
 * taken for one when it looks drawn by lot. */
static const char *const loose[] = {
	"password\t%s",
	"password -> \"%s\"",
	"password <- \"%s\"",
	"#define PASSWORD \"%s\"",
	"password = b\"%s\"",
	"password=r\"%s\"",
	"password = f\"%s\"",
	"password = u'%s'",
	"@Value(\"${password:%s}\")",
	"password==%s",
	"password !== \"%s\"",
	"(setq password \"%s\")",
	"(def password \"%s\")",
	":password \"%s\"",
	"password eq \"%s\"",
	"Kennwort: %s",
	"Passwort: %s",
	"contrase\xc3\xb1"
	"a: %s",
	"mot de passe: %s",
	"password is %s",
	"the password is: %s",
	"password\n%s",
	"password:\n  %s",
	"password: >-\n  %s",
	"password: |\n  %s",
	"password = \"\"\"%s\"\"\"",
	"curl -u admin:%s https://x.org",
	"mysql -p%s -u root",
	"sshpass -p %s ssh x",
	"machine h login u password %s",
	"net use z: \\\\h\\s %s /user:u",
	"<password><![CDATA[%s]]></password>",
	"password(%s)",
	"password[\"%s\"]",
	"password,%s",
	"\"password\";\"%s\"",
	"| password | %s |",
	"wachtwoord: %s",
	"senha=%s",
	"the password was %s.",
	"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c: %s",
	"\xe5\xaf\x86\xe7\xa0\x81: %s",
	"if (token === \"%s\") {",
	"password => b'%s'",
	"docker login -u me -p %s registry",
	"mongosh -u root -p %s",
	"redis-cli -h x -a %s ping",
	"let secret = @\"%s\";",
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

static void expect_found(const char *spelling, const char *value)
{
	cleanup_buf struct buf b = new_buf();
	const char *at;
	bool is_found = false;

	put(&b, spelling, value);
	cr_expect_geq(score_of(b.data, b.len), 0.4, "%s", b.data);
	at = strstr(buf_str(&b), value);
	for (size_t f = 0; f < r.n; f++)
		is_found |= b.data + r.finding[f].offset <= at &&
			    b.data + r.finding[f].offset + r.finding[f].len >=
				    at + strlen(value);
	cr_expect(is_found, "%s", b.data);
}

Test(gate_assigned, in_each_spelling_the_value_is_found)
{
	for (size_t k = 0; k < N(values); k++)
		for (size_t i = 0; i < N(spellings); i++)
			expect_found(spellings[i], values[k]);
}

Test(gate_assigned, in_looser_spellings_what_looks_drawn_is_found)
{
	static const char *const drawn[] = {"Tr4vel7Qx9zKm2", "hR7$kq9Zw2Lx",
					    "kJ8vT2mQ9xLw4Zp7"};

	for (size_t k = 0; k < N(drawn); k++)
		for (size_t i = 0; i < N(loose); i++)
			expect_found(loose[i], drawn[k]);
}

Test(gate_assigned, in_looser_spellings_words_are_none)
{
	static const char *const harmless[] = {
		"changeme",	"${API_KEY}", "settings_v2", "Sha256WithRsa",
		"getUserName2", "isRequired", "x-amz-date"};

	for (size_t i = 0; i < N(loose); i++)
		for (size_t k = 0; k < N(harmless); k++) {
			cleanup_buf struct buf b = new_buf();

			/* a colon or a sign of assignment behind the word is no loose one */
			if (strstr(loose[i], ": %s") || strchr(loose[i], '='))
				continue;
			put(&b, loose[i], harmless[k]);
			cr_expect_lt(score_of(b.data, b.len), 0.4, "%s: %f %s", b.data,
				     r.score, r.n ? r.finding[0].rule : "");
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
		"the token is an identifier of the parser",
		"a secret of the Treasury Department2",
		"case TOKEN_STRING: return parseStringLiteral(p);",
		"| token | description |\n|---|---|",
		"throw new Error(\"Invalid token \" + tokenType);",
		"password, username, emailAddress2, createdAt",
		"mysql -p -u root\ncurl -u user:group https://x.org",
		"pip/_vendor/pygments/"
		"token.py,sha256=vA2yNHGJBHfq4jNQSah7C9DmIOp34MmYHPA8P-cYAHI,6184",
		"usr/share/man/man3/HTML::TokeParser::Simple::Token::EndTag2.3pm.gz",
		"zip -p archive.zip README-2.0.txt",
		"docker run -u 1000:1000 -p 8080:80 nginx:1.25.3-alpine",
	};

	for (size_t i = 0; i < N(fine); i++)
		cr_expect_lt(score_of(fine[i], strlen(fine[i])), 0.4, "%s: %f %s",
			     fine[i], r.score, r.n ? r.finding[0].rule : "");
}

/* ---- what is refused ---------------------------------------------------------------------- */

/* As issuers draw them: hexadecimal, base 36, base 62, with signs, a UUID. */
static const char *const drawn[] = {
	"0849fdec0bb3158f755f5532cc59c41d",
	"9b8m2p7kx4tq1v6z",
	"q7w2Kd9fPz4XnB8s",
	"8agatr7vwr08p5e0t3327td-ah9awjidb4mgmy_m",
	"b7727178-2606-459c-9c13-94da301878d2",
	"Zr9-4Kt5_Wv8.Nq2Lm~7",
};

Test(gate_assigned, what_looks_drawn_is_refused_in_each_spelling)
{
	for (size_t k = 0; k < N(drawn); k++)
		for (size_t i = 0; i < N(spellings); i++) {
			cleanup_buf struct buf b = new_buf();

			put(&b, spellings[i], drawn[k]);
			(void)score_of(b.data, b.len);
			cr_expect_eq(r.verdict, GATE_REFUSE, "%s: %f", b.data, r.score);
		}
}

Test(gate_assigned, a_block_of_yaml_is_an_assignment)
{
	for (size_t k = 0; k < N(drawn); k++) {
		cleanup_buf struct buf b = new_buf();

		buf_addf(&b, "api_token: |\n  %s\nother: >-\n  text\n", drawn[k]);
		(void)score_of(b.data, b.len);
		cr_expect_eq(r.verdict, GATE_REFUSE, "%s: %f", b.data, r.score);
	}
}

/* What is short, can be read, counts on, or is a time, a place or code, is replaced at most. */
Test(gate_assigned, what_looks_made_by_people_is_not_refused)
{
	static const char *const others[] = {
		"kJ8vT2mQ9xLw4Z",
		"projects/123456789012/secrets/my-db/versions/2",
		"2026-11-29T12:00:00.123456Z",
		"abcdefghijklmnopqrstuvwxyz0123456789",
		"getUserTokenFromVaultV2Beta3",
		"correct-horse-battery-staple-1998-2001",
		"tokenizer-20210930.json.gz",
		"https://auth.corp.io/v2/token?x=20210930",
		"${TOKEN_20210930_FOR_V2}",
		"sha256WithRSAEncryption4096",
		"meta-llama/Llama-2-7b-chat-hf",
		"BAAI/bge-small-en-v1.5",
		"0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2",
	};

	for (size_t k = 0; k < N(others); k++)
		for (size_t i = 0; i < N(spellings); i++) {
			cleanup_buf struct buf b = new_buf();

			put(&b, spellings[i], others[k]);
			(void)score_of(b.data, b.len);
			cr_expect_neq(r.verdict, GATE_REFUSE, "%s: %f", b.data, r.score);
		}
}

/* Pages of lists, forms, digests, and which of them it is. */
Test(gate_assigned, what_is_named_otherwise_is_not_refused)
{
	static const char *const names[] = {
		"nextPageToken", "page_token", "csrf_token",	    "csrfmiddlewaretoken",
		"password_hash", "token-id",   "continuationToken", "api_key_fingerprint",
		"secretName",	 "tokenizer",  "publicKeyToken"};

	for (size_t k = 0; k < N(names); k++) {
		cleanup_buf struct buf b = new_buf();

		buf_addf(&b, "{\"%s\": \"%s\"}\n", names[k], drawn[0]);
		(void)score_of(b.data, b.len);
		cr_expect_neq(r.verdict, GATE_REFUSE, "%s: %f", b.data, r.score);
	}
}
