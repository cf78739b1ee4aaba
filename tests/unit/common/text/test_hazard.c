/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/hazard.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(hazard, .timeout = 10);

static const char *const runs[] = {
	".git/hooks/pre-commit",
	"sub/.git/config",
	"sub/.git",
	".gitmodules",
	"x/.gitattributes",
	"bare.git/hooks/post-checkout",
	"HEAD",
	"bare/HEAD",
	"commondir",
	".husky/_/x",
	".lefthook.yml",
	"prek.toml",
	"hk.pkl",
	".pi/extensions/x.ts",
	"a/.grok/hooks/x.json",
	".vibe/config.toml",
	".qoder/settings.json",
	".iflow/settings.json",
	".codebuddy/settings.local.json",
	".tabnine/agent/settings.json",
	".github/hooks/x.json",
	"a/.crushrc",
	"crushrc",
	".crush.json",
	"crush.json",
	"oxlint.config.ts",
	".latexmkrc",
	"paper/latexmkrc",
	".flox/env/manifest.toml",
	".vscode/tasks.json",
	".idea/workspace.xml",
	"a.code-workspace",
	".devcontainer/devcontainer.json",
	".claude/settings.json",
	"a/b/.claude/x",
	".claude/hooks/x",
	".codex/config.toml",
	".gemini/settings.json",
	".cursor/rules/x.mdc",
	"CLAUDE.md",
	"docs/AGENTS.md",
	".mcp.json",
	".envrc",
	".env.local",
	".mise.toml",
	"x/sitecustomize.py",
	"sitecustomize.cpython-311-x86_64-linux-gnu.so",
	"usercustomize/__init__.py",
	"venv/pyvenv.cfg",
	"lib/evil.pth",
	"__pycache__/a.cpython-311.pyc",
	"a.pyc",
	"conftest.py",
	"pytest.ini",
	"sub/.pytest.ini",
	".bsp/sbt.json",
	"Omnisharp.json",
	"x/.claude-plugin/plugin.json",
	".teamcity/settings.kts",
	"node_modules/.bin/tsc",
	".npmrc",
	".yarnrc.yml",
	".pnp.cjs",
	".pre-commit-config.yaml",
	".cargo/config.toml",
	"rust-toolchain.toml",
	".gdbinit",
	"prog-gdb.py",
	".vimrc",
	".exrc",
	".nvim.lua",
	".bashrc",
	".profile",
	"a.desktop",
	".config/autostart/x",
	".config/systemd/user/x",
	".ssh/authorized_keys",
	".github/workflows/ci.yml",
	"ld.so.preload",
	"-rf",
	"sub/--checkpoint-action=exec=sh",
	"-d/x",
	/* interpreters and debuggers, where they are started */
	".RData",
	"o/.RData",
	".perldb",
	".rdbgrc",
	".rdbgrc.rb",
	".byebugrc",
	".jdbrc",
	"irb.rc",
	"jupyter_notebook_config.py",
	"startup.m",
	".tclshrc",
	".xonshrc",
	/* editors, and what they start */
	".nexrc",
	"_exrc",
	"_vimrc",
	"Session.vim",
	".lite_project.lua",
	".flake8",
	"mypy.ini",
	".mypy.ini",
	".rubocop.yml",
	".eslintrc",
	".eslintrc.js",
	".eslintrc.json",
	"eslint.config.js",
	"eslint.config.mjs",
	"eslint.config.cjs",
	"sub/eslint.config.ts",
	".prettierrc.mjs",
	"stylelint.config.cjs",
	".luacheckrc",
	".luarc.json",
	"hie.yaml",
	".golangci.yml",
	".mdlrc",
	/* what a directory is entered with */
	".autoenv_leave.zsh",
	".nvmrc",
	".rvmrc",
	/* credentials */
	".pgpass",
	".pg_service.conf",
	".s3cfg",
	".git-credentials",
	"_netrc",
	".rhosts",
};

static const char *const fine[] = {
	"main.c",
	"git/hooks.txt",
	"hooks/readme",
	"src/update",
	".gitignore",
	"a.git.txt",
	"pth",
	"x.pth.txt",
	"update",
	"report.json",
	"Makefile",
	"package.json",
	"setup.py",
	"head",
	"HEADER",
	"lib/libx.so",
	"test_conftest.py",
	"env.c",
	"environment",
	".github/CODEOWNERS",
	"a-b/c-d",
	"backup~",
	"~root",
	"...",
	"a.b.c",
	"data.RData",
	"RData",
	"setup.cfg",
	"tox.ini",
	"pyproject.toml",
	"mypy.init",
	"eslint.js",
	"oxlint.js",
	"latexmkrc.txt",
	"crush.jsonl",
	"grok/hooks.json",
	".github/hooks.json",
	"flox.toml",
	"hk.md",
	"eslintrc.md",
	"babel.config.js",
	"webpack.config.js",
	"vimrc.txt",
	"startup.mat",
	"pgpass",
	"claude.mdx",
	"my.claude/x",
};

Test(hazard, what_runs_by_itself_is_known)
{
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		cr_expect_not_null(hazard_of(runs[i]), "%s", runs[i]);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		cr_expect_null(hazard_of(fine[i]), "%s: %s", fine[i], hazard_of(fine[i]));
}

/* Spellings that git, HFS+, NTFS or a shared folder would take for the same name. */
Test(hazard, other_spellings_do_not_help)
{
	static const char *const held[] = {
		".GIT/config",
		".Git/x",
		".g\xe2\x80\x8cit/config", /* zero width non-joiner */
		"\xef\xbb\xbf.git/config", /* byte order mark */
		".gi\xe2\x80\xaat/config", /* embedding */
		".git\xc2\xad/config",	   /* soft hyphen */
		".g\xef\xb8\x8fit/config", /* variation selector */
		".git./config",
		".git /config",
		".git . ./config",
		".git::$INDEX_ALLOCATION/config",
		".git:x/config",
		".git\\config",
		"a\\.git\\config",
		"git~1/config",
		"GIT~12",
		"GITMOD~1",
		"gi7eba~1",
		"claude~1.md",
		"AGENTS.MD.",
		"agents.md ",
		"AGENTS.md:stream",
		".hu\xc5\xbfky/x",	   /* long s */
		".\342\204\252ube/config", /* kelvin sign */
		"\xe2\x80\x8b",		   /* nothing to see */
		"HEAD::$DATA",
		"HEAD:x",
		"HEAD ",
		"HEAD.",
		"bare\\HEAD",
		"bare/HE\u200bAD. .",
		"commondir ",
		"CLAUDE.md::$DATA",
		"y.desktop:z",
		".en\U0001bca0vrc",
	};

	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		cr_expect_not_null(hazard_of(held[i]), "%zu %s", i, held[i]);
}

static void expect_held_as(const struct hazard *h, const char *before, const char *after)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "d%s%s%s%s%s", before,
		       h->kind == HAZARD_SUFFIX ? "x" : "", h->name,
		       h->kind == HAZARD_STEM ? ".x" : "", after);
	if (h->kind == HAZARD_DIR) {
		size_t len = strlen(path);

		(void)snprintf(path + len, sizeof(path) - len, "/x");
	}
	cr_expect_not_null(hazard_of(path), "%s", path);
}

/* No kind of row has a comparison of its own that forgives less. */
Test(hazard, each_row_is_held_in_other_spellings)
{
	static const char *const behind[] = {
		":",   ":x",  "::$DATA", " ",	       ".",
		". .", ".:x", "\u200b",	 "\U0001bca3", "\ufe0f.",
	};

	for (size_t i = 0; i < hazard_table_len; i++) {
		expect_held_as(&hazard_table[i], "\\", "");
		expect_held_as(&hazard_table[i], "/\u2060", "");
		for (size_t k = 0; k < sizeof(behind) / sizeof(behind[0]); k++)
			expect_held_as(&hazard_table[i], "/", behind[k]);
	}
}

/* Every row, as it stands and in capitals, and each says why. */
Test(hazard, each_row_matches_itself)
{
	for (size_t i = 0; i < hazard_table_len; i++) {
		const struct hazard *h = &hazard_table[i];
		char path[256];

		cr_assert(h->why && h->why[0], "%s", h->name);
		(void)snprintf(path, sizeof(path), "%s%s%s",
			       h->kind == HAZARD_SUFFIX ? "d/x" : "d/", h->name,
			       h->kind == HAZARD_DIR	? "/x"
			       : h->kind == HAZARD_STEM ? ".x"
							: "");
		cr_expect_not_null(hazard_of(path), "%s", path);
		for (char *p = path; *p; p++)
			*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
		cr_expect_not_null(hazard_of(path), "%s", path);
		/* The table is compared with folded names. */
		for (const char *p = h->name; *p; p++)
			cr_expect(h->kind == HAZARD_EXACT || *p < 'A' || *p > 'Z', "%s",
				  h->name);
	}
}

Test(hazard, text_that_lies_is_not_plain)
{
	static const char *const lies[] = {
		"a\302\2332J",	    "gpj.\342\200\256exe", "a\342\200\250b",
		"\xe2\x81\xa6x",    "\xef\xbb\xbfx",	   "a\330\234b",
		"a\x1b[2J",	    "a\302\205b",	   "a\u00a0b",
		"agents.md\u00a0",  "a\U00013430b",	   "a\U00016fe4b",
		"se\u200bt.py",	    "se\u200dt.py",	   "se\u2060t.py",
		"se\u00adt.py",	    "se\u034ft.py",	   "set\ufe0f.py",
		"se\u3164t.py",	    "se\u2800t.py",	   "\u200dset.py",
		"se\U000e0061t.py", "se\U0001bca0t.py",	   "se\ufffbt.py",
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		cr_expect_not(hazard_is_plain(lies[i]), "%zu", i);
	cr_expect(hazard_is_plain("na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac.txt"));
	cr_expect(hazard_is_plain("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb"));
	cr_expect(hazard_is_plain("\u2764\ufe0f.png"));
	cr_expect(
		hazard_is_plain("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645.txt"));
}

static void same_key(const char *a, const char *b, int want)
{
	cleanup_free char *x = hazard_key(a);
	cleanup_free char *y = hazard_key(b);

	cr_expect_eq(str_eq(x, y), want, "%s %s: %s %s", a, b, x, y);
}

Test(hazard, keys_collide_where_file_systems_do)
{
	same_key("README.md", "readme.MD", 1);
	same_key("a/b", "A\\B.", 1);
	same_key("a", "a\xe2\x80\x8d", 1);
	same_key("a", "a\u3164\U0001bca1\U0001d173", 1);
	same_key("a", "b", 0);
	same_key("\xc3\xa9", "e", 0);
	same_key("a/b", "ab", 0);
	/* Bytes that are no UTF-8 do not end it early. */
	same_key("a\377b", "a\377c", 0);
}

Test(hazard, programs_are_called_so)
{
	cr_expect_str_eq(hazard_class("\177ELF\2", 5), "program");
	cr_expect_str_eq(hazard_class("#!/bin/sh", 9), "program");
	cr_expect_str_eq(hazard_class("MZ", 2), "program");
	cr_expect_str_eq(hazard_class("# text", 6), "file");
	cr_expect_str_eq(hazard_class("#", 1), "file");
	cr_expect_str_eq(hazard_class("", 0), "file");
}
