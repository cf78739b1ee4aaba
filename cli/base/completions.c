/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See completions.h. Each command is begun in a child that never does its work: where it would read its
 * options it writes what they are, and ends (cmd_describe_with()).
 */
#include "cli/base/completions.h"

#include "cli/ui/render.h"
#include "common/args/args.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)65536)

enum shell { BASH, ZSH, FISH, SHELL_MAX_ };
static const char *const shell_names[SHELL_MAX_] = {"bash", "zsh", "fish"};

/* ---- words out of the tables --------------------------------------------------- */

/* One option as shells have it. */
struct word {
	const char *name; /* without dashes; NULL: a letter alone */
	char letter;	  /* '\0': none */
	const char *arg;  /* NULL: takes none */
	char *choices;	  /* of its argument, with blanks between; NULL: anything */
	bool is_file, is_dir;
	const char *doc;
};

/* "none|brokered": words of which one is meant; "" otherwise. */
static char *choices_of(const char *arg)
{
	cleanup_buf struct buf b = {.max = TEXT_MAX};

	if (str_eq(arg, "STATE") || str_eq(arg, "ENDED")) {
		for (enum job_state s = 0; s < JOB_STATE_MAX_; s++)
			if (str_eq(arg, "STATE") ||
			    (job_state_is_final(s) && s != JOB_QUARANTINED))
				buf_addf(&b, "%s%s", buf_str(&b)[0] ? " " : "",
					 job_state_name(s));
		return xstrdup(buf_str(&b));
	}
	if (!strchr(arg, '|') || arg[strspn(arg, "abcdefghijklmnopqrstuvwxyz_-|")])
		return NULL;
	for (; *arg; arg++)
		buf_addc(&b, *arg == '|' ? ' ' : *arg);
	return xstrdup(buf_str(&b));
}

static bool word_at(const struct argp *argp, size_t i, struct word *ret)
{
	const struct argp_option *o = args_option_at(argp, i);

	if (!o)
		return false;
	*ret = (struct word){
		.name = o->name,
		.letter = o->key > ' ' && o->key < 127 ? (char)o->key : '\0',
		.arg = o->arg,
		.choices = o->arg ? choices_of(o->arg) : NULL,
		.is_file = o->arg && (strstr(o->arg, "FILE") || strstr(o->arg, "PATH")),
		.is_dir = o->arg && str_starts(o->arg, "DIR"),
		.doc = o->doc ? o->doc : "",
	};
	return true;
}

/* The verbs of "list|check\nset NAME": the first word of each line, where it is one. */
static char *verbs_of(const char *args_doc)
{
	cleanup_buf struct buf b = {.max = TEXT_MAX};

	for (const char *line = args_doc; line && *line;) {
		size_t n = strcspn(line, " \n");
		cleanup_free char *first = xstrndup(line, n);

		if (*first && !first[strspn(first, "abcdefghijklmnopqrstuvwxyz-|")] &&
		    first[0] != '-')
			for (char *at = first, *next; at; at = next) {
				next = strchr(at, '|');
				if (next)
					*next++ = '\0';
				if (!strstr(buf_str(&b), at))
					buf_addf(&b, "%s%s", b.len ? " " : "", at);
			}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return xstrdup(buf_str(&b));
}

/* In quotes of any of these shells; zsh also has a meaning for these in a description. */
static void add_quoted(struct buf *b, const char *text, bool is_zsh)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_adds(b, "'\\''");
		else if (is_zsh && strchr("[]:\\", *text))
			buf_addf(b, "\\%c", *text);
		else if (*text == '\\')
			buf_adds(b, "\\\\");
		else
			buf_addc(b, *text);
	}
}

/* ---- bash ---------------------------------------------------------------------- */

static void bash_values(struct buf *b, const struct word *w)
{
	if (!w->choices && !w->is_file && !w->is_dir)
		return;
	buf_adds(b, "\t\t");
	if (w->name)
		buf_addf(b, "--%s", w->name);
	if (w->letter)
		buf_addf(b, "%s-%c", w->name ? "|" : "", w->letter);
	if (w->choices)
		buf_addf(b, ") _lych_words '%s'; return ;;\n", w->choices);
	else
		buf_addf(b, ") _lych_files %s; return ;;\n", w->is_dir ? "-d" : "-f");
}

static void bash_command(struct buf *b, const char *command, const struct argp *argp)
{
	cleanup_free char *verbs = verbs_of(argp->args_doc);
	cleanup_buf struct buf values = {.max = TEXT_MAX};
	struct word w;

	buf_addf(b, "\t%s)\n\t\toptions='", command);
	for (size_t i = 0; word_at(argp, i, &w); i++) {
		bash_values(&values, &w);
		if (w.name)
			buf_addf(b, "--%s ", w.name);
		else
			buf_addf(b, "-%c ", w.letter);
		free(w.choices);
	}
	buf_addf(b, "--help' verbs='%s'\n", verbs);
	if (values.len)
		buf_addf(b, "\t\tcase $prev in\n%s\t\tesac\n", buf_str(&values));
	buf_adds(b, "\t\t;;\n");
}

static const char bash_head[] =
	"# bash completion for lych, made by 'lych completions bash'\n"
	"_lych_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
	"_lych_files() { compopt -o filenames; mapfile -t COMPREPLY < <(compgen \"$1\" "
	"-- "
	"\"$cur\"); }\n"
	"_lych() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
	"command=${COMP_WORDS[1]} options='' verbs='' i\n"
	"\tCOMPREPLY=()\n"
	"\tif [ \"$cur\" = = ]; then cur=''; elif [ \"$prev\" = = ]; then "
	"prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n";

static const char bash_tail[] =
	"\tesac\n"
	"\tif [[ $cur == -* ]]; then _lych_words \"$options\"\n"
	"\telif [ \"$COMP_CWORD\" -eq 2 ] && [ -n \"$verbs\" ]; then _lych_words "
	"\"$verbs\"; fi\n"
	"}\n"
	"complete -o default -F _lych lych\n";

static void bash_begin(struct buf *b, const struct cmd *commands, size_t n)
{
	buf_adds(b, bash_head);
	buf_adds(b, "\tif [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$command\" = help ] && [ "
		    "\"$COMP_CWORD\" -eq 2 ]; }; then\n\t\t_lych_words '");
	for (size_t i = 0; i < n; i++)
		if (commands[i].summary)
			buf_addf(b, "%s ", commands[i].name);
	/* what is behind "--" is the job's own */
	buf_adds(b,
		 "help --help --version'\n\t\treturn\n\tfi\n"
		 "\tfor ((i = 2; i < COMP_CWORD; i++)); do [ \"${COMP_WORDS[i]}\" != -- "
		 "] || return 0; done\n\tcase $command in\n");
}

/* ---- zsh ----------------------------------------------------------------------- */

static void zsh_option(struct buf *b, const struct word *w)
{
	buf_adds(b, " \\\n\t\t'*");
	if (w->name && w->letter)
		buf_addf(b, "'{-%c%s,--%s%s}'", w->letter, w->arg ? "+" : "", w->name,
			 w->arg ? "=" : "");
	else if (w->name)
		buf_addf(b, "--%s%s", w->name, w->arg ? "=" : "");
	else
		buf_addf(b, "-%c%s", w->letter, w->arg ? "+" : "");
	buf_addc(b, '[');
	add_quoted(b, w->doc, true);
	buf_addc(b, ']');
	if (w->arg) {
		buf_addc(b, ':');
		add_quoted(b, w->arg, true);
		buf_addc(b, ':');
	}
	if (w->choices)
		buf_addf(b, "(%s)", w->choices);
	else if (w->is_dir || w->is_file)
		buf_adds(b, w->is_dir ? "_files -/" : "_files");
	buf_addc(b, '\'');
}

static void zsh_command(struct buf *b, const char *command, const struct argp *argp)
{
	cleanup_free char *verbs = verbs_of(argp->args_doc);
	struct word w;

	buf_addf(b, "_lych_%s() {\n\t_arguments -S", command);
	for (size_t i = 0; word_at(argp, i, &w); i++) {
		zsh_option(b, &w);
		free(w.choices);
	}
	buf_adds(b, " \\\n\t\t'--help[what it does and its options]'");
	if (*verbs)
		buf_addf(b, " \\\n\t\t'1: :(%s)'", verbs);
	buf_adds(b, " \\\n\t\t'*: :_files'\n}\n");
}

static void zsh_begin(struct buf *b, const struct cmd *commands, size_t n)
{
	buf_adds(b, "#compdef lych\n# made by 'lych completions zsh'\n"
		    "_lych_commands() {\n\tlocal -a list=(\n");
	for (size_t i = 0; i < n; i++) {
		if (!commands[i].summary)
			continue;
		buf_addf(b, "\t\t'%s:", commands[i].name);
		add_quoted(b, commands[i].summary, true);
		buf_adds(b, "'\n");
	}
	buf_adds(b,
		 "\t\t'help:the options of a command'\n\t)\n\t_describe command list\n}\n"
		 "_lych_help() { _arguments '1: :_lych_commands' }\n");
}

static const char zsh_tail[] =
	"_lych() {\n"
	"\tlocal curcontext=$curcontext state line\n"
	"\t_arguments -C '1: :_lych_commands' '*::argument:->argument'\n"
	"\tif [[ $state = argument ]] && (( $+functions[_lych_$words[1]] )); then "
	"_lych_$words[1]; fi\n"
	"}\n"
	"if [[ $funcstack[1] = _lych ]]; then _lych \"$@\"; else compdef _lych lych; "
	"fi\n";

/* ---- fish ---------------------------------------------------------------------- */

static void fish_command(struct buf *b, const char *command, const struct argp *argp)
{
	cleanup_free char *verbs = verbs_of(argp->args_doc);
	struct word w;

	for (size_t i = 0; word_at(argp, i, &w); i++) {
		buf_addf(b, "complete -c lych -n '__fish_seen_subcommand_from %s'",
			 command);
		if (w.letter)
			buf_addf(b, " -s %c", w.letter);
		if (w.name)
			buf_addf(b, " -l %s", w.name);
		if (w.choices)
			buf_addf(b, " -x -a '%s'", w.choices);
		else if (w.is_file || w.is_dir)
			buf_adds(b, w.is_dir ? " -x -a '(__fish_complete_directories)'"
					     : " -r -F");
		else if (w.arg)
			buf_adds(b, " -x");
		buf_adds(b, " -d '");
		add_quoted(b, w.doc, false);
		buf_adds(b, "'\n");
		free(w.choices);
	}
	if (*verbs)
		buf_addf(
			b,
			"complete -c lych -f -n '__fish_seen_subcommand_from %s; and not "
			"__fish_seen_subcommand_from %s' -a '%s'\n",
			command, verbs, verbs);
}

static void fish_begin(struct buf *b, const struct cmd *commands, size_t n)
{
	buf_adds(b, "# fish completion for lych, made by 'lych completions fish'\n");
	for (size_t i = 0; i < n; i++) {
		if (!commands[i].summary)
			continue;
		buf_addf(b, "complete -c lych -f -n __fish_use_subcommand -a %s -d '",
			 commands[i].name);
		add_quoted(b, commands[i].summary, false);
		buf_adds(b, "'\n");
	}
	buf_adds(b,
		 "complete -c lych -f -n __fish_use_subcommand -a help -d 'the options "
		 "of a command'\n"
		 "complete -c lych -f -n '__fish_seen_subcommand_from help' -a '");
	for (size_t i = 0; i < n; i++)
		if (commands[i].summary)
			buf_addf(b, "%s ", commands[i].name);
	buf_adds(b, "'\n");
}

/* ---- all of it ----------------------------------------------------------------- */

static void (*const begin[SHELL_MAX_])(struct buf *, const struct cmd *,
				       size_t) = {bash_begin, zsh_begin, fish_begin};
static void (*const one[SHELL_MAX_])(struct buf *, const char *, const struct argp *) = {
	bash_command, zsh_command, fish_command};
static const char *const tail[SHELL_MAX_] = {bash_tail, zsh_tail, ""};

struct wanted {
	const char *command;
	enum shell shell;
};

static void describe(const struct argp *argp, void *arg)
{
	const struct wanted *w = arg;
	cleanup_buf struct buf b = {.max = TEXT_MAX};

	one[w->shell](&b, w->command, argp);
	(void)fputs(buf_str(&b), stdout);
}

static int write_one(const struct cmd *command, enum shell shell, struct err *err)
{
	cleanup_free char *name = xasprintf("lych %s", command->name);
	char option[] = "--help";
	char *argv[] = {name, option, NULL};
	struct wanted w = {command->name, shell};
	int status = 0;
	pid_t pid;

	if (render_flush(err) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		cmd_describe_with(describe, &w);
		(void)command->run(2, argv);
		_exit(EXIT_FAILED);
	}
	if (pid < 0)
		return err_sys(err, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGPIPE) {
		errno = EPIPE; /* its reader has enough, and so ours has */
		return err_sys_id(err, ERRID_CORE_OUTPUT, "write to stdout");
	}
	return err_set(err, ERR_INTERNAL, "the options of 'lych %s'", command->name);
}

static int write_all(const struct cmd *commands, size_t n, enum shell shell,
		     struct err *err)
{
	cleanup_buf struct buf b = {.max = TEXT_MAX};

	begin[shell](&b, commands, n);
	(void)fputs(buf_str(&b), stdout);
	for (size_t i = 0; i < n; i++)
		if (commands[i].summary && write_one(&commands[i], shell, err) < 0)
			return -1;
	(void)fputs(tail[shell], stdout);
	return render_flush(err);
}

static error_t shell_parse(int key, char *arg, struct argp_state *state)
{
	enum shell *shell = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*shell != SHELL_MAX_)
			return ARGP_ERR_UNKNOWN;
		for (enum shell s = 0; s < SHELL_MAX_; s++)
			if (str_eq(arg, shell_names[s]))
				*shell = s;
		if (*shell == SHELL_MAX_)
			cmd_usage(state, "no shell '%s': bash, zsh or fish", arg);
		return 0;
	case ARGP_KEY_END:
		if (*shell == SHELL_MAX_)
			cmd_usage(state, "say which shell: bash, zsh or fish");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int completions(const struct cmd *commands, size_t n, int argc, char **argv)
{
	static const struct argp argp = {.parser = shell_parse,
					 .args_doc = "bash|zsh|fish",
					 .doc = "A script that completes commands, "
						"options and their values in this "
						"shell.\v'make install' puts each where "
						"its shell looks; else, for "
						"bash:\n\n"
						"Examples:\n"
						"  source <(lych completions bash)"};
	enum shell shell = SHELL_MAX_;
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &shell);
	return write_all(commands, n, shell, &err) < 0 ? cmd_fail(&err, false) : 0;
}
