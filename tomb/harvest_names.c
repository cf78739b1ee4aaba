/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-off is where sandboxes are escaped in practice: a job leaves a file that
 * the trusted side later obeys (git, an editor, an agent, direnv, an interpreter's
 * start-up). Such files go to quarantine. The list errs on the wide side: a person
 * can still fetch what was held.
 */
#include "tomb/harvest_names.h"

#include "common/attr.h"
#include "common/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct hazard {
	const char *name;
	const char *why;
};

/* Anything below a directory of this name, at any depth. */
static const struct hazard hazard_dirs[] = {
	{".git", "git metadata: hooks, config, attributes"},
	{".husky", "git hook"},
	{".githooks", "git hook"},
	{".vscode", "editor task or setting"},
	{".vscode-server", "editor task or setting"},
	{".idea", "editor task or setting"},
	{".fleet", "editor task or setting"},
	{".zed", "editor task or setting"},
	{".vim", "editor start-up file"},
	{".nvim", "editor start-up file"},
	{".devcontainer", "container that an editor starts"},
	{".claude", "agent setting or hook"},
	{".codex", "agent setting or hook"},
	{".cursor", "agent setting or hook"},
	{".gemini", "agent setting or hook"},
	{".windsurf", "agent setting or hook"},
	{".roo", "agent setting or hook"},
	{".continue", "agent setting or hook"},
	{".aider", "agent setting or hook"},
	{".agents", "agent setting or hook"},
	{".direnv", "direnv"},
	{".cargo", "cargo config runs programs"},
	{".mvn", "maven extension"},
	{".yarn", "yarn plugin or release"},
	{".ssh", "ssh key or config"},
	{".gnupg", "gnupg config"},
	{".aws", "cloud credential config"},
	{".kube", "cloud credential config"},
	{".docker", "credential helper"},
};

/* A file of this name, in any directory. */
static const struct hazard hazard_files[] = {
	{".git", "git directory pointer"},
	{".gitmodules", "git submodule"},
	{".gitattributes", "git filter"},
	{".gitconfig", "git config"},
	{".hgrc", "mercurial hook"},
	{".envrc", "direnv"},
	{".env", "environment file"},
	{".mcp.json", "agent server"},
	{"mcp.json", "agent server"},
	{"claude.md", "agent instruction"},
	{"claude.local.md", "agent instruction"},
	{"agents.md", "agent instruction"},
	{"gemini.md", "agent instruction"},
	{".cursorrules", "agent instruction"},
	{".windsurfrules", "agent instruction"},
	{".clinerules", "agent instruction"},
	{".aider.conf.yml", "agent setting or hook"},
	{"copilot-instructions.md", "agent instruction"},
	{".exrc", "editor start-up file"},
	{".vimrc", "editor start-up file"},
	{".nvimrc", "editor start-up file"},
	{".nvim.lua", "editor start-up file"},
	{".dir-locals.el", "editor start-up file"},
	{".lvimrc", "editor start-up file"},
	{".gdbinit", "debugger start-up file"},
	{".lldbinit", "debugger start-up file"},
	{".bashrc", "shell start-up file"},
	{".bash_profile", "shell start-up file"},
	{".bash_login", "shell start-up file"},
	{".bash_logout", "shell start-up file"},
	{".profile", "shell start-up file"},
	{".zshrc", "shell start-up file"},
	{".zshenv", "shell start-up file"},
	{".zprofile", "shell start-up file"},
	{".zlogin", "shell start-up file"},
	{".inputrc", "shell start-up file"},
	{"sitecustomize.py", "python start-up file"},
	{"usercustomize.py", "python start-up file"},
	{"pyvenv.cfg", "python environment"},
	{".pythonrc", "python start-up file"},
	{".pythonrc.py", "python start-up file"},
	{"conftest.py", "pytest plugin"},
	{".pdbrc", "debugger start-up file"},
	{".npmrc", "package manager config"},
	{".yarnrc", "package manager config"},
	{".yarnrc.yml", "package manager config"},
	{".pnpmfile.cjs", "package manager hook"},
	{"pip.conf", "package manager config"},
	{".pypirc", "package manager config"},
	{".condarc", "package manager config"},
	{".irbrc", "ruby start-up file"},
	{".pryrc", "ruby start-up file"},
	{".rprofile", "R start-up file"},
	{".renviron", "R start-up file"},
	{".sqliterc", "sqlite start-up file"},
	{".psqlrc", "psql start-up file"},
	{".pre-commit-config.yaml", "git hook"},
	{"lefthook.yml", "git hook"},
	{".lefthook.yml", "git hook"},
	{".overcommit.yml", "git hook"},
	{".tool-versions", "version manager"},
	{".mise.toml", "version manager"},
	{"mise.toml", "version manager"},
	{".netrc", "credential file"},
	{".wgetrc", "tool config"},
	{".curlrc", "tool config"},
	{".tmux.conf", "terminal config"},
	{".screenrc", "terminal config"},
	{"autorun.inf", "autorun"},
	{"desktop.ini", "desktop setting"},
	{".directory", "desktop setting"},
};

/* A file with this ending. */
static const struct hazard hazard_suffixes[] = {
	{".pth", "python start-up file"},
	{".desktop", "desktop launcher"},
	{".code-workspace", "editor task or setting"},
	{".sublime-project", "editor task or setting"},
	{".service", "systemd unit"},
	{".timer", "systemd unit"},
	{".socket", "systemd unit"},
};

static bool name_is(const char *name, size_t len, const char *want)
{
	return strlen(want) == len && strncasecmp(name, want, len) == 0;
}

static const char *hazard_of_dir(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(hazard_dirs); i++)
		if (name_is(name, len, hazard_dirs[i].name))
			return hazard_dirs[i].why;
	return NULL;
}

static const char *hazard_of_file(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(hazard_files); i++)
		if (name_is(name, len, hazard_files[i].name))
			return hazard_files[i].why;
	for (size_t i = 0; i < ARRAY_SIZE(hazard_suffixes); i++) {
		size_t n = strlen(hazard_suffixes[i].name);

		if (len > n && name_is(name + len - n, n, hazard_suffixes[i].name))
			return hazard_suffixes[i].why;
	}
	return NULL;
}

/* A bare repository: a hooks directory beside HEAD cannot be seen from one path,
 * so "hooks/pre-commit" and its like are held wherever they are. */
static bool is_hook_name(const char *name, size_t len)
{
	static const char *const hooks[] = {
		"applypatch-msg",     "pre-applypatch",
		"post-applypatch",    "pre-commit",
		"pre-merge-commit",   "prepare-commit-msg",
		"commit-msg",	      "post-commit",
		"pre-rebase",	      "post-checkout",
		"post-merge",	      "pre-push",
		"pre-receive",	      "update",
		"proc-receive",	      "post-receive",
		"post-update",	      "reference-transaction",
		"push-to-checkout",   "pre-auto-gc",
		"post-rewrite",	      "sendemail-validate",
		"fsmonitor-watchman", "post-index-change",
	};

	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++)
		if (name_is(name, len, hooks[i]))
			return true;
	return false;
}

const char *harvest_name_hazard(const char *path)
{
	const char *parent = NULL;
	size_t parent_len = 0;

	for (const char *s = path;;) {
		size_t len = strcspn(s, "/");
		const char *why;

		if (s[len] == '\0') {
			if (parent && name_is(parent, parent_len, "hooks") &&
			    is_hook_name(s, len))
				return "git hook";
			if (parent && name_is(parent, parent_len, ".bin"))
				return "program that a package manager puts on the path";
			return hazard_of_file(s, len);
		}
		why = hazard_of_dir(s, len);
		if (why)
			return why;
		parent = s;
		parent_len = len;
		s += len + 1;
	}
}
