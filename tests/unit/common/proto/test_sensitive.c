/* SPDX-License-Identifier: Apache-2.0 */
#include "common/attr.h"
#include "common/proto/sensitive.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(sensitive, .timeout = 20);

static const char *found(const char *path)
{
	static char part[256];
	size_t len;

	if (!sensitive_path(path, &len))
		return "";
	cr_assert_leq(len, strlen(path));
	cr_assert_eq(str_fmt(part, sizeof(part), "%.*s", (int)len, path), 0);
	return part;
}

Test(sensitive, names_are_found_in_any_case_and_at_any_depth)
{
	static const char *const paths[][2] = {
		{".ssh", ".ssh"},
		{"aws/Credentials", "aws/Credentials"},
		{"a/.SSH/config", "a/.SSH"},
		{"/home/u/.Aws/credentials", "/home/u/.Aws"},
		{"id_ed25519", "id_ed25519"},
		{"x/.env", "x/.env"},
		{".env.production", ".env.production"},
		{".ENVRC", ".ENVRC"},
		{"deploy/prod.env", "deploy/prod.env"},
		{"ssh_host_rsa_key", "ssh_host_rsa_key"},
		{"1-x.apps.googleusercontent.com.json",
		 "1-x.apps.googleusercontent.com.json"},
		{"a.kdbx", "a.kdbx"},
		{"copy/of/.config/GCloud/x", "copy/of/.config/GCloud"},
		{".config/gh", ".config/gh"},
		{".codex/auth.json", ".codex/auth.json"},
		{".claude/.credentials.json", ".claude/.credentials.json"},
		{"/proc/self/environ", "/proc"},
		{"infra/main.tfstate.backup", "infra/main.tfstate.backup"},
		{"secrets/portal_x", "secrets/portal_x"},
		{"/srv/ly/Secrets/portal_main/x", "/srv/ly/Secrets/portal_main"},
		{"/run/user/1000/containers/auth.json", "/run/user"},
		{"/tmp/krb5cc_1000_x", "/tmp/krb5cc_1000_x"},
		{"/tmp/xauth_AbCdEf", "/tmp/xauth_AbCdEf"},
		{".Xauthority-c", ".Xauthority-c"},
		{".config/Bitwarden CLI/data.json", ".config/Bitwarden CLI"},
		{".config/Code/User/globalStorage/state.vscdb",
		 ".config/Code/User/globalStorage"},
		{".local/share/fish/fish_history", ".local/share/fish/fish_history"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		cr_expect_str_eq(found(paths[i][0]), paths[i][1], "%s: '%s'", paths[i][0],
				 found(paths[i][0]));
}

Test(sensitive, what_is_like_them_is_not)
{
	static const char *const paths[] = {
		"",
		"a",
		"ssh",
		"id_rsa.pub",
		".git",
		".env.example",
		"sample.env",
		"x/.ENV.SAMPLE",
		"config/gh",
		"x.config/gh",
		"node_modules/@acme/sdk/lib/credentials/types.mjs",
		"src/credentials/",
		".claude",
		".claude/settings.json",
		".codex",
		"proc",
		"a/proc/x",
		"env",
		"en/auth.json",
		"key.pem",
		".tfvars",
		".git/config",
		"portal_x",
		"secrets/portals",
		"secrets/x/portal_x",
		"my-secrets/portal_x",
		"secrets",
		"code/user/globalstorage",
		".config/Code/User/settings.json",
		"src/xauth_test.c",
		"dropbear_main.c",
		"order_history",
		"containers/auth.json.md",
		"/run/user-1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		cr_expect_str_eq(found(paths[i]), "", "%s: '%s'", paths[i],
				 found(paths[i]));
}

struct content {
	const char *path, *text, *what;
};

static void judge(const struct content *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *what =
			sensitive_content(c[i].path, c[i].text, strlen(c[i].text));

		if (!c[i].what)
			cr_expect_null(what, "%s: %s: %s", c[i].path, c[i].text, what);
		else
			cr_expect_str_eq(what ? what : "(nothing)", c[i].what, "%s: %s",
					 c[i].path, c[i].text);
	}
}

Test(sensitive, what_a_name_does_not_say)
{
	static const struct content c[] = {
		{"deploy", "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "a private key"},
		{"notes.txt", "see\n  -----BEGIN RSA PRIVATE KEY-----\r\nx",
		 "a private key"},
		{"all.crt",
		 "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
		 "-----BEGIN PRIVATE KEY-----\n",
		 "a private key"},
		{"a.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n", "a private key"},
		{"server.key", "x = '-----BEGIN PRIVATE KEY-----", "a private key"},
		{"sa.json", "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMII\"}",
		 "a private key"},
		{"keys.txt", "# c\nAGE-SECRET-KEY-1QQQ\n", "a private key"},
		{"putty", "PuTTY-User-Key-File-3: ssh-ed25519\n", "a private key"},
		{"c.yaml", "users:\n- user:\n    client-key-data: LS0\n",
		 "the key of a cluster"},
		{".git/config", "[remote \"o\"]\n\turl = https://u:pw@h/r.git\n",
		 "a password or token"},
		{"sub/.git/modules/x/config",
		 "\turl = https://ghp_0123456789abcdef0123@github.com/a/b\n",
		 "a password or token"},
		{".git/config",
		 "[http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic "
		 "eA==\n",
		 "a password or token"},
		{".yarnrc.yml", "npmAuthToken: x\n", "a password or token"},
		{"auth.json", "{\"github-oauth\": {}}", "a password or token"},
		{"auth.json", "{\"auths\": {\"docker.io\": {\"auth\": \"dTpw\"}}}",
		 "a password or token"},
		{"NuGet.Config", "<add key=\"Password\" value=\"AQAA\"/>",
		 "a password or token"},
		{".yarnrc", "\"//registry.example.org/:_authToken\" \"npm_x\"\n",
		 "a password or token"},
		{".git/config",
		 "\turl = https://ghp_0123456789abcdef0123:@github.com/a/b\n",
		 "a password or token"},
		{".git/config", "\turl = https://example.org/x?access_token=y\n",
		 "a password or token"},
		{".git/config", "\textraheader = PRIVATE-TOKEN: y\n",
		 "a password or token"},
		{"x/auth.json", "{\"OPENAI_API_KEY\": 1}", "a password or token"},
		{"NuGet.Config", "<packageSourceCredentials>\n", "a password or token"},
		{"account",
		 "{\"type\": \"service_account\",\n \"private_key\": \"-----BEGIN "
		 "PRIVATE "
		 "KEY-----\\nMII\"}",
		 "a private key"},
	};

	judge(c, ARRAY_SIZE(c));
}

Test(sensitive, how_registries_write_a_token)
{
	static const struct content c[] = {
		{"keys.txt", "# c\nAGE-SECRET-KEY-PQ-1QQQ\n", "a private key"},
		{".condarc", "channels:\n  - https://c.example.com/t/tk-1-2/main\n",
		 "a password or token"},
		{"bunfig.toml", "[install.registry]\ntoken = \"x\"\n",
		 "a password or token"},
		{"bunfig.toml", "a = { url = \"https://h/\", \"token\"='x' }\n",
		 "a password or token"},
		{"bunfig.toml", "a = {password=\"x\"}", "a password or token"},
		{"NuGet.Config", "<configuration><apikeys>\n<add key=\"h\"/>",
		 "a password or token"},
		{".git/config", "\turl = https://h/r?private_token=T\n",
		 "a password or token"},
		{"pip.conf", "index-url = \"https://h/s?a=b&sig=x\"\n",
		 "a password or token"},
	};

	judge(c, ARRAY_SIZE(c));
}

Test(sensitive, what_other_programs_write)
{
	static const struct content c[] = {
		{"key", "\xef\xbb\xbf-----BEGIN RSA PRIVATE KEY-----\n", "a private key"},
		{"c", "{\"users\": [{\"client-key-data\": \"LS0\"}]}",
		 "the key of a cluster"},
		{"c", "user: {'client-key-data' : LS0}\n", "the key of a cluster"},
		{"c", "-  \"client-key-data\": LS0\n", "the key of a cluster"},
		{"c",
		 "\xef\xbb\xbf"
		 "client-key-data: LS0\n",
		 "the key of a cluster"},
		{".yarnrc.yml", "\"npmAuthToken\": x\n", "a password or token"},
		{".yarnrc.yml", "npmScopes: {a: {'npmAuthIdent' : x}}\n",
		 "a password or token"},
		{"wg0.conf",
		 "[Interface]\n  PrivateKey = "
		 "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n",
		 "a private key"},
		{"ta.key", "#\n-----BEGIN OpenVPN Static key V1-----\n", "a private key"},
		{"c.json",
		 "{\"clusters\": [], \"users\": [{\"user\": {\"token\": \"x\"}}]}",
		 "the key of a cluster"},
		{".git/config", "[http]\n\tEXTRAHEADER = X-Api-Key: y\n",
		 "a password or token"},
		{".gitconfig-work", "\textraheader = Cookie: y\n", "a password or token"},
		{".hg/hgrc", "[auth]\nx.password = y\n", "a password or token"},
		{"requirements.txt", "--index-url https://u:pw@host/simple\n",
		 "a password or token"},
		{"nix.conf", "access-tokens = github.com=ghp_x\n", "a password or token"},
	};

	judge(c, ARRAY_SIZE(c));
}

/* Of one file in both orders of bytes, with the mark and without. */
Test(sensitive, what_is_written_in_wide_letters)
{
	static const char text[] = "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n";
	enum { N = sizeof(text) - 1 };

	for (int is_big = 0; is_big < 2; is_big++) {
		char wide[2 + 2 * N] = {0};

		wide[0] = is_big ? '\xfe' : '\xff';
		wide[1] = is_big ? '\xff' : '\xfe';
		for (size_t i = 0; i < N; i++)
			wide[2 + 2 * i + (is_big ? 1 : 0)] = text[i];
		cr_expect(sensitive_content("k", wide, sizeof(wide)), "%d", is_big);
		cr_expect(sensitive_content("k", wide + 2, 2 * N), "%d", is_big);
		/* a program's first bytes are none */
		wide[0] = wide[1] = 'x';
		cr_expect_null(sensitive_content("k", wide, sizeof(wide)), "%d", is_big);
	}
	for (size_t len = 0; len < 3; len++) {
		cr_expect_null(sensitive_content("k", "\xff\xfe", len));
		cr_expect_null(sensitive_content("k", "\xef\xbb\xbf", len));
	}
}

Test(sensitive, what_only_speaks_of_it)
{
	static const struct content c[] = {
		{"a", "", NULL},
		{"a.c", "\tstatic const char m[] = \"-----BEGIN PRIVATE KEY-----\";\n",
		 NULL},
		{"cert.pem", "-----BEGIN CERTIFICATE-----\nx\n", NULL},
		{"a", "-----BEGIN CERTIFICATE-----\nPRIVATE KEY\n", NULL},
		{"id_rsa.pub", "ssh-rsa AAAA me@host\n", NULL},
		{".git/config", "\turl = https://github.com/a/b.git\n", NULL},
		{".git/config", "\turl = ssh://git@github.com/a/b\n", NULL},
		{".git/config", "\turl = git@github.com:a/b\n", NULL},
		{".git/config", "\turl = https://me@host/a\n", NULL},
		{".git/config", "\turl = https://host:8443/a@b\n", NULL},
		{"README", "https://user:password@host/\n", NULL},
		{".condarc", "channels:\n  - https://c.example.com/t/${T}/main\n", NULL},
		{"pip.conf", "index-url = https://c.example.com/t/x/main\n", NULL},
		{"bunfig.toml", "a = { url = \"https://h/\", token = \"$T\" }\n", NULL},
		{"bunfig.toml", "[install]\ntoken = \"\"\nmytoken = \"x\"\n", NULL},
		{"nuget.config", "<configuration><apikeys />", NULL},
		{".git/config", "\turl = https://h/r?private_token=${T}\n", NULL},
		{".git/config", "\turl = https://h/r?ref=x\n[a]\ntoken=x\n", NULL},
		{"requirements.txt", "a @ https://h/a.whl#sha256=00 ; x == '1'\n", NULL},
		{".yarnrc.yml", "nodeLinker: node-modules\n", NULL},
		{"en/auth.json", "{\"login\": \"Sign in\"}", NULL},
		{"a.json", "{\"x\": \"-----BEGIN CERTIFICATE-----\\n\"}", NULL},
		{"a.go", "\tKey []byte `json:\"client-key-data,omitempty\"`\n", NULL},
		{"a.py", "if 'client-key-data:' in text:\n", NULL},
		{"a.py", "x = a['client-key-data']\n", NULL},
		{"wg0.conf", "[Interface]\nPrivateKey = x\n", NULL},
		{"a.py", "if 'PrivateKey = ' in text:\n", NULL},
		{"a.yaml", "users: []\ntoken: x\n", NULL},
		{".git/config", "[http]\n\textraheader =\n[a \"b:c\"]\n", NULL},
		{"requirements.txt", "--index-url https://${U}:${TOKEN}@host/simple\n",
		 NULL},
		{"requirements.txt",
		 "--index-url https://${SOME_VERY_LONG_TOKEN_NAME}@host/simple\n", NULL},
		{"a", "client-key-data", NULL},
		{"a", "\"client-key-data", NULL},
	};

	judge(c, ARRAY_SIZE(c));
}

Test(sensitive, what_a_variable_holds)
{
	static const char *const bad[][2] = {
		{"HTTPS_PROXY", "http://me:pw@proxy:3128"},
		{"https_proxy", "me:pw@proxy:3128"},
		{"DATABASE_URL", "postgres://me:pw@db/x"},
		{"A", "https://ghp_0123456789abcdef0123:@github.com/a"},
		{"V", "https://h/?token=ghp_0123456789abcdef"},
		{"V", "https://s3/x?a=b&X-Amz-Signature=0123"},
		{"V", "jdbc:postgresql://h/db?user=u&password=secretsecret"},
		{"V", "jdbc:sqlserver://h;user=u;Password=secretsecret"},
		{"V", "u:secretpw@proxy.example:3128"},
		{"V", "//u:secretpw@host"},
		{"V", "https://hooks.slack.com/services/T0/B0/x"},
		{"KEY", "-----BEGIN PRIVATE KEY-----\nMII"},
	};
	static const char *const fine[][2] = {
		{"HTTPS_PROXY", "http://proxy:3128"},
		{"HTTPS_PROXY", "http://me@proxy:3128"},
		{"HTTPS_PROXY", ""},
		{"EMAIL", "a.very.long.name.of.somebody@example.org"},
		{"REMOTE", "a:b@c"},
		{"A", "http://${U}:${P}@host"},
		{"A", "https://h/?token=$TOKEN&key="},
		{"A", "https://h/?page=2&monkeys=3"},
		{"A", "what?key"},
		{"A", "12:30:45"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect(sensitive_value(bad[i][0], bad[i][1]), "%s", bad[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		cr_expect_null(sensitive_value(fine[i][0], fine[i][1]), "%s", fine[i][1]);
}

Test(sensitive, no_row_is_hidden_by_one_before_it)
{
	for (size_t i = 0; i < sensitive_table_len; i++) {
		const struct sensitive *row = &sensitive_table[i];

		cr_expect(row->name[0] &&
				  (row->kind == SENSITIVE_PUBLIC) == !row->what[0],
			  "%s", row->name);
		for (const char *s = row->name; *s; s++)
			cr_expect(*s < 'A' || *s > 'Z', "%s: in lower case", row->name);
		for (size_t k = 0; k < i; k++)
			cr_expect(row->kind != sensitive_table[k].kind ||
					  !str_eq(row->name, sensitive_table[k].name),
				  "%s is there twice", row->name);
		if (row->kind == SENSITIVE_NAME || row->kind == SENSITIVE_FILE ||
		    row->kind == SENSITIVE_PLACE)
			cr_expect_eq(sensitive_entry(row->name, strlen(row->name)), row,
				     "%s is in the list already", row->name);
	}
}
