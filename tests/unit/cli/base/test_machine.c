/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of npm and pip, and what of them gets into codex.yaml. */
#include "cli/base/machine.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

TestSuite(machine, .timeout = 60);

static void expect_value(const char *text, const char *section, const char *key,
			 const char *want)
{
	cleanup_free char *got = machine_ini_value(text, section, key);

	cr_expect(str_eq(got, want), "'%s' in [%s] of\n%s\nis '%s', not '%s'", key,
		  section ? section : "", text, got ? got : "(null)",
		  want ? want : "(null)");
}

Test(machine, finds_the_value_of_a_key)
{
	expect_value("", NULL, "registry", NULL);
	expect_value("registry", NULL, "registry", NULL);
	expect_value("registry=\n", NULL, "registry", NULL);
	expect_value("#registry=https://a.example\n", NULL, "registry", NULL);
	expect_value("; registry=https://a.example\n", NULL, "registry", NULL);
	expect_value("@scope:registry=https://a.example\n", NULL, "registry", NULL);
	expect_value("registry2=https://a.example\n", NULL, "registry", NULL);
	expect_value("registry=https://a.example", NULL, "registry", "https://a.example");
	expect_value("  registry = https://a.example/x \r\ncolor=0\n", NULL, "registry",
		     "https://a.example/x");
	expect_value("registry=\"https://a.example\"\n", NULL, "registry",
		     "https://a.example");
	expect_value("registry=https://a.example\nregistry=https://b.example\n", NULL,
		     "registry", "https://b.example");
	expect_value("index-url = https://a.example\n", "global", "index-url", NULL);
	expect_value("[install]\nindex-url = https://a.example\n", "global", "index-url",
		     NULL);
	expect_value("[global.x]\nindex-url = https://a.example\n", "global", "index-url",
		     NULL);
	expect_value("[]\n[\n[global]\nindex_url: https://a.example/simple\n[x]\n",
		     "global", "index-url", "https://a.example/simple");
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];
	int fd;

	cr_assert(str_fmt(path, sizeof(path), "%s/%s", dir, name) == 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* What a user's own files say is taken before the machine's; and is data, never YAML. */
Test(machine, writes_what_is_acceptable_and_says_what_is_not)
{
	static const struct {
		const char *npmrc, *part, *not_part;
		bool is_set;
	} table[] = {
		{"registry=https://npm.example.org/x/\n",
		 "url: \"https://npm.example.org/x\"", "was not taken", true},
		{"registry=http://npm.example.org/\n", "was not taken: it is not https",
		 "http://npm", false},
		{"registry=https://me:hunter22hunter22@npm.example.org/\n",
		 "was not taken: a user or password", "hunter22", false},
		{"registry=https://192.0.2.1/\n", "was not taken: an address",
		 "192.0.2.1", false},
		{"registry=https://a.example\"\\nward: {}\n", "was not taken", "ward: {}",
		 false},
		{"registry=${HOME}\n", "was not taken", "HOME", false},
	};
	char dir[] = "/tmp/lych-machine-XXXXXX", path[128];

	cr_assert(mkdtemp(dir));
	(void)clearenv();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		cleanup_buf struct buf b = {0};
		struct err err = ERR_INIT;
		struct conf c;

		put(dir, ".npmrc", table[i].npmrc);
		buf_init(&b, CONF_FILE_MAX_BYTES);
		buf_adds(&b, "version: \"1\"\n");
		machine_write_registries(dir, false, &b);
		cr_assert(conf_parse(buf_str(&b), b.len, &c, &err) == 0, "%s\n%s",
			  err.msg, buf_str(&b));
		cr_expect(strstr(buf_str(&b), table[i].part), "%s", buf_str(&b));
		cr_expect_null(strstr(buf_str(&b), table[i].not_part), "%s", buf_str(&b));
		cr_expect_eq(c.broker.registry[REGISTRY_NPM].url.text != NULL,
			     table[i].is_set);
		cr_expect_eq(c.broker.n_rules, 0, "nothing is allowed by it");
		cr_expect_eq(c.broker.registry[REGISTRY_NPM].addresses.n, 0);
		conf_done(&c);
	}
	cr_assert(str_fmt(path, sizeof(path), "%s/.npmrc", dir) == 0);
	(void)unlink(path);
	(void)rmdir(dir);
}
