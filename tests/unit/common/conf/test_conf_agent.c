/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of agents: what is refused, with its line; what is taken; and each that is shipped. */
#include "common/conf/agent.h"

#include "common/attr.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>

TestSuite(conf_agent, .timeout = 30);

#define V "version: \"1\"\n"
#define S "summary: a shell\n"
#define C "command:\n  - bash\n  - -i\n"
#define H "home: .own\n"
#define ALL V S C H /* six lines */
#define TEXT "files:\n  - path: a\n    text: '{\"over the hills\": {\"a\": 1}}'\n"
#define ASKS "asks: {dialect: chat, model: m}\n"

static const struct {
	const char *text, *part;
} bad[] = {
	{"", "line 1: the file is empty"},
	{S C H, "line 1: version: \"1\" is required"},
	{V C H, "line 1: summary: it is required"},
	{V S H, "line 1: command: it is required"},
	{V S C, "line 1: home: it is required"},
	{"version: \"2\"\n" S C H, "line 1: version"},
	{ALL "frobnicate: 1\n",
	 "line 7: no key 'frobnicate'; lych(1), AGENTS, lists them"},
	{ALL "mmory: 1GiB\n", "line 7: no key 'mmory'; did you mean 'memory'?"},
	{ALL "package:\n  npm: a\n  version: 1.0.0\n  integrity: x\n",
	 "line 10: package: no key 'integrity'"},
	{ALL H, "line 7: the key 'home' is there twice"},
	{ALL "off: {telemetry: -i, anything: x}\n", "line 7: off: no key 'anything'"},
	{ALL "egress: registry\n", "line 7: no key 'egress'"},
	{V S "command: bash\n" H, "line 3: command: "},
	{V S "command:\n  - -i\n" H, "line 3: command: it begins with a program"},
	/* a HOME that is not the job's own */
	{V S C "home: /root\n", "line 6: home"},
	{V S C "home: ../out\n", "line 6: home"},
	{V S C "home: \"~\"\nfiles:\n  - path: ../../.ssh/config\n    text: x\n",
	 "line 7: files"},
	{ALL "files:\n  - path: /etc/passwd\n    text: x\n", "line 7: files"},
	{ALL "files:\n  - path: a\n    text: x\n  - path: a\n    text: y\n",
	 "line 7: files: two files claim the same path"},
	{ALL "files:\n  - path: a\n    text: x\n  - path: b\n    text: x\n"
	     "  - path: a/b\n    text: y\n",
	 "line 7: files: two files claim the same path"},
	{V S C "home: .lychgate-script\n", "line 6: home: .lychgate-script is reserved"},
	{ALL "files:\n  - path: a\n", "text: it is required"},
	/* what an environment may not say */
	{ALL "env:\n  - \"HOME=/root\"\n", "line 7: env"},
	{ALL "env:\n  - \"PATH=/x\"\n", "line 7: env"},
	{ALL "env:\n  - \"LD_PRELOAD=/x\"\n", "line 7: env"},
	{ALL "env:\n  - \"NODE_OPTIONS=-r x\"\n", "line 7: env"},
	{ALL "env:\n  - WORD\n", "line 7: env"},
	{ALL "env:\n  - \"A=1\"\n  - \"A=2\"\n", "line 7: env: one is there twice"},
	/* nor that of a job that may ask: it is the broker's, in any case of letters */
	{ALL ASKS "env:\n  - \"OPENAI_API_KEY=x\"\n",
	 "line 8: env: OPENAI_API_KEY is the broker's with egress brokered"},
	{ALL ASKS "env:\n  - \"A=1\"\n  - \"OPENAI_API_BASE=x\"\n", "line 8: env"},
	{ALL ASKS "env:\n  - \"HTTPS_PROXY=x\"\n", "line 8: env"},
	{ALL ASKS "env:\n  - \"SSL_CERT_FILE=/x\"\n", "line 8: env"},
	{ALL "env:\n  - \"npm_config_cafile=/x\"\n" ASKS, "line 7: env"},
	/* packages: one, of one version, by name */
	{ALL "package: {npm: a}\n", "line 7: package: version: it is required"},
	{ALL "package:\n  npm: a\n", "line 7: package: version: it is required"},
	{ALL "package: {npm: \"../a\", version: 1.0.0}\n", "line 7: package.npm"},
	{ALL "package: {npm: \"@a\", version: 1.0.0}\n", "line 7: package.npm"},
	{ALL "package: {npm: \"@/a\", version: 1.0.0}\n", "line 7: package.npm"},
	{ALL "package: {npm: \"a/b\", version: 1.0.0}\n", "line 7: package.npm"},
	{ALL "package: {npm: \"a@1\", version: 1.0.0}\n", "line 7: package.npm"},
	{ALL "package: {npm: \"https://a/b\", version: 1.0.0}\n", "package.npm"},
	{ALL "package: {npm: a, version: \"^1.0.0\"}\n", "line 7: package.version"},
	{ALL "package: {npm: a, version: latest}\n", "line 7: package.version"},
	{ALL "package: {npm: a, version: 1.0}\n", "line 7: package.version"},
	{ALL "package: {npm: a, version: \"1.0.x || 2\"}\n", "line 7: package.version"},
	{ALL "asks: {dialect: embeddings, model: m}\n", "line 7: asks.dialect"},
	{ALL "asks: {dialect: Chat, model: m}\n", "line 7: asks.dialect"},
	{ALL "asks: {dialect: chat}\n", "model: it is required"},
	{ALL "asks: {dialect: chat, model: \"a b\"}\n", "line 7: asks.model"},
	{ALL "memory: 1023\n", "line 7: memory"},
	{ALL "memory: 65GiB\n", "line 7: memory"},
	{ALL "processes: 0\n", "line 7: processes"},
	{ALL "timeout: 5h\n", "line 7: timeout"},
	/* a claim that nothing carries out */
	{ALL "off: {telemetry: no_telemetry}\n",
	 "line 7: off.telemetry: nothing says so"},
	{ALL "off:\n  sandbox: --no-sandbox\n", "line 8: off.sandbox: nothing says so"},
	{ALL "off: {updater: ba}\n", "line 7: off.updater: nothing says so"},
	{ALL "may: --yolo\n", "line 7: may: nothing says so"},
	/* nor one that any text says */
	{ALL TEXT "off: {sandbox: \" \"}\n", "line 10: off.sandbox: too little"},
	{ALL TEXT "off: {sandbox: h}\n", "line 10: off.sandbox: nothing says so"},
	{ALL TEXT "off: {telemetry: the}\n", "line 10: off.telemetry: nothing says so"},
	{ALL TEXT "may: \" the \"\n", "line 10: may: nothing says so"},
	{ALL TEXT "may: '\": {\"'\n", "line 10: may: too little"},
	{V S "command:\n  - bash\n  - \" \"\n" H "may: \" \"\n",
	 "line 7: may: too little"},
	{V S "command:\n  - bash\n  - \"--\"\n" H "may: \"--\"\n",
	 "line 7: may: too little"},
};

Test(conf_agent, refuses)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = ERR_INIT;
		struct conf_agent a;

		cr_expect(conf_agent_parse(bad[i].text, strlen(bad[i].text), &a, &err) <
				  0,
			  "taken: %s", bad[i].text);
		cr_expect_eq(err.id, ERRID_SPEC_PROFILE, "%s", bad[i].text);
		cr_expect(strstr(err.msg, bad[i].part), "%s: %s", bad[i].text, err.msg);
	}
}

Test(conf_agent, takes_the_least)
{
	struct err err = ERR_INIT;
	cleanup_agent struct conf_agent a = {0};

	cr_assert(conf_agent_parse(ALL, strlen(ALL), &a, &err) == 0, "%s", err.msg);
	cr_expect_str_eq(a.summary, "a shell");
	cr_expect_eq(a.n_command, 2);
	cr_expect_str_eq(a.command[1], "-i");
	cr_expect_str_eq(a.home, ".own");
	cr_expect(!a.package && !a.model && a.n_env == 0 && a.n_files == 0);
	cr_expect(a.memory == 0 && a.processes == 0 && a.timeout_usec == 0);
}

/* What is the broker's in a job that asks means nothing in another; below a file's home is no file's. */
Test(conf_agent, takes_what_its_own_job_may_have)
{
	static const char *const good[] = {
		ALL "env:\n  - \"OPENAI_API_KEY=x\"\n  - \"HTTPS_PROXY=x\"\n",
		ALL ASKS "env:\n  - \"OPENAI_MODEL=x\"\n  - \"PIP_NO_INDEX=1\"\n",
		ALL "files:\n  - path: a\n    text: x\n  - path: a-b\n    text: y\n"
		    "  - path: b/a\n    text: y\n",
		ALL TEXT "may: over\n",
		V S "command:\n  - crush\n  - -y\n" H "may: -y\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = ERR_INIT;
		cleanup_agent struct conf_agent a = {0};

		cr_expect(conf_agent_parse(good[i], strlen(good[i]), &a, &err) == 0,
			  "%s: %s", good[i], err.msg);
	}
}

Test(conf_agent, takes_all_keys)
{
	static const char text[] =
		ALL "package: {npm: \"@a/b.c\", version: 1.2.3-rc.1}\n"
		    "asks: {dialect: generate, model: m-1.5}\n"
		    "env:\n  - \"A=1=2\"\n  - \"B=\"\n"
		    "files:\n  - path: .b/c.json\n    text: '{\"update\": false}'\n"
		    "memory: 2GiB\ndisk: 4GiB\nprocesses: 512\ntimeout: 4h\n"
		    "off: {telemetry: \"A=1=2\", updater: '\"update\": false', sandbox: "
		    "-i}\n"
		    "may: -i\n";
	struct err err = ERR_INIT;
	cleanup_agent struct conf_agent a = {0};

	cr_assert(conf_agent_parse(text, strlen(text), &a, &err) == 0, "%s", err.msg);
	cr_expect_str_eq(a.package, "@a/b.c");
	cr_expect_str_eq(a.version, "1.2.3-rc.1");
	cr_expect(a.api == API_GENERATE && str_eq(a.model, "m-1.5"));
	cr_expect(a.n_env == 2 && str_eq(a.env[0], "A=1=2") && str_eq(a.env[1], "B="));
	cr_expect(a.n_files == 1 && str_eq(a.file[0].path, ".b/c.json"));
	cr_expect_str_eq(a.file[0].text, "{\"update\": false}");
	cr_expect_eq(a.memory, (uint64_t)2 << 30);
	cr_expect_eq(a.disk, (uint64_t)4 << 30);
	cr_expect_eq(a.processes, 512);
	cr_expect_eq(a.timeout_usec, (uint64_t)4 * 3600 * 1000000);
	cr_expect_str_eq(a.claim[AGENT_TELEMETRY_OFF], "A=1=2");
	cr_expect_str_eq(a.claim[AGENT_UPDATER_OFF], "\"update\": false");
	cr_expect_str_eq(a.claim[AGENT_SANDBOX_OFF], "-i");
	cr_expect_str_eq(a.claim[AGENT_MAY_ALL], "-i");
}

static void check_file(const char *path)
{
	cleanup_buf struct buf b = {.max = 65536};
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err err = ERR_INIT;
	cleanup_agent struct conf_agent a = {0};
	char part[4096];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0)
		buf_add(&b, part, (size_t)n);
	cr_assert(n == 0 && buf_ok(&b), "%s", path);
	cr_assert(conf_agent_parse(buf_str(&b), b.len, &a, &err) == 0, "%s: %s", path,
		  err.msg);
	/* What asks somebody is of a package; each of these is told that it may do all. */
	cr_expect_eq(!a.package, !a.model, "%s", path);
	cr_expect(!a.package || a.claim[AGENT_MAY_ALL], "%s", path);
}

Test(conf_agent, takes_what_is_shipped)
{
	glob_t found;

	cr_assert_eq(glob("cli/profiles/agents/*.yaml", 0, NULL, &found), 0);
	cr_expect(found.gl_pathc >= 6);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_file(found.gl_pathv[i]);
	globfree(&found);
}
