/* SPDX-License-Identifier: Apache-2.0 */
/* Writes docs/INPUTS.md from common/proto/sensitive_table.c (`make docs`). */
#include "common/proto/sensitive.h"
#include "common/str.h"

/* clang-format off */
static const char *const head[] = {
	"# What goes into a job",
	"",
	"Generated from `common/proto/sensitive_table.c` by `make docs`; do not edit.",
	"",
	"`lych run` copies files (`--file`) and directories (`--dir`) into a job. What a job has it may send",
	"wherever the ward lets it. So what keeps secrets is not copied by mistake:",
	"",
	"- named itself, by `--file` or `--dir`, it is refused (LYCH-SPEC-016), and nothing is sent;",
	"- inside a directory it is left out, and named on stderr: `lych: left out: .env: keeps secrets:",
	"  ...`.",
	"",
	"What `pod.mounts` would share with the tomb is judged by the same list, and refused with",
	"LYCH-BIND-003 (codex.yaml(5)). And no hint of `lych-sandbox --explain` or `lych why` offers an",
	"option for it, nor for a directory with such a thing anywhere below: it says why not instead.",
	"`--explain` reads files for that (not those of root that all may read, and 256 MiB at most, beyond",
	"which nothing is offered); `lych why` has only the names that a job asked for.",
	"",
	"It is a guard against mistakes and no wall: who calls `lych run` could copy a file under another",
	"name first. And it knows what is in the list. A secret in a file of your own, under a name of your",
	"own, is found only if it is a private key or one of the other forms below.",
	"",
	"## What is judged",
	"",
	"- **Names**: the path as you wrote it, and the real path of what it led to, each component. Links",
	"  change nothing. Capitals do not matter. Of a directory that is in the list nothing is copied.",
	"- **Bytes**: the first 64 KiB of every file. A line that begins with the head of a private key (PEM,",
	"  OpenSSH, OpenPGP, OpenVPN, age, PuTTY) or with WireGuard's `PrivateKey`; a private key in JSON, as",
	"  of Google's service accounts, whatever the file's name; `client-key-data`, a token or a password of",
	"  a cluster (kubeconfig); a URL with a password or token, or an `extraHeader`, in git's `config`,",
	"  `config.worktree`, `gitconfig`, `.gitconfig*`, `.gitmodules`, in `hgrc`, `pip.conf`,",
	"  `requirements.txt`, `uv.toml`, `.condarc`, `bunfig.toml` and `.yarnrc`, unless it is a reference to",
	"  the environment (`${TOKEN}`); a token in `auth.json`, `bunfig.toml`, `.yarnrc.yml`, `nix.conf`, `nuget.config`,",
	"  a password in `hgrc`. UTF-16 and a byte order mark change nothing. In a file that is called `*.pem`,",
	"  `*.key`, `*.p8` or `id_*` the words may stand anywhere.",
	"- **Variables** that `--env NAME` passes on as they are here: a private key, or a URL with a password",
	"  or token, as a proxy's may be. What you write yourself (`--env NAME=VALUE`) is meant.",
	"- **Your home directory** (by `HOME`, and by your entry among the users), and what holds it: refused",
	"  but with `--home`; met inside a tree, by whatever name, it is left out. A directory in it is fine.",
	"- **Lychgate's own directories** (data, configuration, sockets): never, whatever you say.",
	"",
	"## What you can say",
	"",
	"| option | what it does |",
	"| --- | --- |",
	"| `--include PATTERN` | yes, this one: take it though it is in the list, or ignored by git. `--file .env --include .env`; `--dir . --include 'certs/*.pem'` |",
	"| `--exclude PATTERN` | leave it out of each `--dir`; it wins over `--include` |",
	"| `--git` | of each `--dir` what git would track: what is in its index, and what is new and not ignored. `.git` itself is not copied |",
	"| `--home` | yes, the home directory. What keeps secrets in it is left out all the same |",
	"| `--dir DIR=DEST` | into a directory of the job's, `DEST`. Two `--dir` have two places, or it is an error; so it is when one tree has a file where another is to be |",
	"",
	"A pattern is one of `.gitignore`, without `!`: a name at any depth, or with a `/` in it a path from",
	"the top of the directory; with a `/` at its end it means directories only. `*` and `?` stop at a",
	"`/`, `**` does not. What means a directory means all below it. For a file or directory that you name",
	"yourself, `--include` takes its path as you wrote it, too.",
	"",
	"`--git` asks git, since nobody else reads `.gitignore` as git does, and shows it nothing of the",
	"repository's own configuration, which can name programs (monitors, filters, hooks, ways to a",
	"remote): git gets an empty repository, made for the question, with the index, objects, `info/exclude`",
	"and files of yours. Your own `~/.gitconfig`, with your file of ignored names, counts. A repository",
	"inside the repository (a submodule) is left out and named: give it with a `--dir` of its own. A",
	"repository of SHA-256 may be an error (git says so).",
	"",
	"A copy lives as long as its job: `lych rm` and `lych prune` remove both, as does the end of the time for",
	"which jobs that have ended are kept (`retention` in codex.yaml, 30 days). The bytes go within two hours",
	"after that.",
	"",
	"## The list",
	"",
};
/* clang-format on */

static const char *const kinds[SENSITIVE_KIND_MAX_][2] = {
	[SENSITIVE_NAME] = {"`", "`"},	 [SENSITIVE_FILE] = {"`", "` (a file)"},
	[SENSITIVE_BEGIN] = {"`", "*`"}, [SENSITIVE_END] = {"`*", "`"},
	[SENSITIVE_PLACE] = {"`", "`"},	 [SENSITIVE_BELOW] = {"`", "*`"},
	[SENSITIVE_SYSTEM] = {"`", "`"}, [SENSITIVE_PUBLIC] = {"`", "`"},
};

static void print_row(const char *what, const char *shown)
{
	const char *sep = "";

	printf("| %s | ", shown);
	for (size_t i = 0; i < sensitive_table_len; i++) {
		const struct sensitive *row = &sensitive_table[i];

		if (!str_eq(row->what, what))
			continue;
		printf("%s%s%s%s", sep, kinds[row->kind][0], row->name,
		       kinds[row->kind][1]);
		sep = ", ";
	}
	fputs(" |\n", stdout);
}

static bool is_first_of_its_kind(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (str_eq(sensitive_table[k].what, sensitive_table[i].what))
			return false;
	return true;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		puts(head[i]);
	fputs("| what is kept | names, in lower case |\n| --- | --- |\n", stdout);
	for (size_t i = 0; i < sensitive_table_len; i++)
		if (sensitive_table[i].what[0] && is_first_of_its_kind(i))
			print_row(sensitive_table[i].what, sensitive_table[i].what);
	print_row("", "(none: examples, which go in)");
	return ferror(stdout) ? 1 : 0;
}
