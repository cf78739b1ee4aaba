/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych: a person's command line.
 */
#include "cli/base/cmd.h"

#include "cli/base/completions.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/near.h"
#include "common/proto.h"
#include "common/str.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static int cmd_completions(int argc, char **argv);

static const struct cmd commands[] = {
	{"up", "start Lychgate here (a private PostgreSQL, scribe, vessel and tomb)",
	 cmd_up},
	{"down", "stop it", cmd_down},
	{"status", "what runs, and which walls stand", cmd_status},
	{"run", "run a command in a sandbox and wait for it", cmd_run},
	{"agent", "an agent at your project, in a job and in your terminal", cmd_agent},
	{"jobs", "list jobs", cmd_jobs},
	{"show", "everything about one job", cmd_show},
	{"sandbox", "run a command in a sandbox here, without services", cmd_sandbox},
	{"why", "how a job ended, and what its walls refused", cmd_why},
	{"logs", "a job's output (-f: follow it)", cmd_logs},
	{"attach", "to the terminal of a job: lych run --tty --detach", cmd_attach},
	{"cancel", "end a job and prove its processes gone", cmd_cancel},
	{"contain", "a job attacks: end it, refuse it all, keep the evidence",
	 cmd_contain},
	{"retry", "try a job again that failed, was lost or is quarantined", cmd_retry},
	{"rm", "remove a job that has ended, with its output and artifacts", cmd_rm},
	{"prune", "remove jobs that ended long ago (--older 7d)", cmd_prune},
	{"artifacts", "list a job's artifacts, or fetch them", cmd_artifacts},
	{"quarantine", "list, show, release: files that were put aside", cmd_quarantine},
	{"receipt", "what a job was and did, with a proof that others can check",
	 cmd_receipt},
	{"gate", "scan FILE: what the privatization gate finds in it, never the text",
	 cmd_gate},
	{"private", "add, list, remove: terms and files that must never leave",
	 cmd_private},
	{"passphrase", "set, change, check: what is asked of you, and of no program",
	 cmd_passphrase},
	{"doctor", "attempt every forbidden act; one line a wall", cmd_doctor},
	{"audit", "tail: the last records of the audit log (-f: follow it)", cmd_audit},
	{"ward", "what jobs may ask of models and the network, explained", cmd_ward},
	{"proposals", "allow, drop: what jobs were refused for want of a rule",
	 cmd_proposals},
	{"portals", "the providers and registries of the broker", cmd_portals},
	{"budget", "what jobs used up of requests, tokens, money, bytes", cmd_budget},
	{"secret", "list, set, rotate and check secrets; never shows one", cmd_secret},
	{"bind", "render the units of the pod, install them with --install", cmd_bind},
	{"unbind", "stop the pod and remove its units; data stays", cmd_unbind},
	{"backup", "database, blobs, output, audit log, configuration: one file",
	 cmd_backup},
	{"restore", "an installation from such a file", cmd_restore},
	{"request", "ask the host to restart or stop the tomb, the pod", cmd_request},
	{"react", "carry out such requests (for a systemd unit)", cmd_react},
	{"config", "init, check, set KEY VALUE, unset KEY, edit: codex.yaml", cmd_config},
	{"completions", "bash, zsh, fish: a script that completes commands and options",
	 cmd_completions},
	{"version", "the version of this program", cmd_version},
	{"_tomb", NULL, cmd_tomb_wall},
	{"_phylactery", NULL, cmd_phylactery},
	{"_pgtool", NULL, cmd_pgtool},
};

static int cmd_completions(int argc, char **argv)
{
	return completions(commands, ARRAY_SIZE(commands), argc, argv);
}

static void usage(FILE *to)
{
	(void)fputs("Usage: lych COMMAND [OPTION...]\n"
		    "Run code that nobody trusts on your own workstation.\n\n",
		    to);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].summary)
			(void)fprintf(to, "  %-11s %s\n", commands[i].name,
				      commands[i].summary);
	(void)fputs("\n'lych help COMMAND' names the options of a command.\n"
		    "\n"
		    "Examples:\n"
		    "    lych up --detach\n"
		    "    lych run -- id\n",
		    to);
}

static int no_command(const char *name)
{
	struct near n = {.word = name, .len = strlen(name)};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].summary)
			near_offer(&n, commands[i].name);
	if (n.best)
		(void)err_set_id(&err, ERRID_CORE_USAGE,
				 "no command '%.80s'; did you mean 'lych %s'?", name,
				 n.best);
	else
		(void)err_set_id(&err, ERRID_CORE_USAGE,
				 "no command '%.80s'; 'lych --help' lists them", name);
	return cmd_fail(&err, false);
}

/* argv[1] is the command. */
static int dispatch(int argc, char **argv)
{
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!str_eq(commands[i].name, argv[1]))
			continue;
		if (commands[i].run != cmd_version &&
		    commands[i].run != cmd_completions && cmd_refuse_root(&err) < 0)
			return cmd_fail(&err, false);
		cleanup_free char *name = xasprintf("lych %s", argv[1]);

		argv[1] = name; /* for usage and --help */
		return commands[i].run(argc - 1, argv + 1);
	}
	return no_command(argv[1]);
}

static bool is_listed(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].summary && str_eq(commands[i].name, name))
			return true;
	return false;
}

/* lych help COMMAND: as lych COMMAND --help, which is of its verbs too: "help config set". */
static int help(int argc, char **argv)
{
	char option[] = "--help";
	char *asked[] = {argv[0], argv[2], option, NULL};
	struct err err = ERR_INIT;

	if (!is_listed(argv[2]))
		return no_command(argv[2]);
	if (argc > 4 || (argc > 3 && is_listed(argv[3]))) {
		(void)err_set_id(&err, ERRID_CORE_USAGE, "help: one command");
		return cmd_fail(&err, false);
	}
	return dispatch(3, asked);
}

int main(int argc, char **argv)
{
	/* before the descriptor is taken by something that swallows what is written */
	bool is_closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
	struct err err = ERR_INIT;

	/* until the command knows better what is an option of its own */
	for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++)
		if (str_eq(argv[i], "--json"))
			cmd_ask_json(true);
	/* What can't be written is an error with a reason; and what is made can be read by its owner. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	/* a caller may ignore it, and who does so never learns how a child ended, nor that it did */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)umask(umask(0) & 077);
	if (fs_fill_stdio(&err) < 0 || render_stdout_init(is_closed, &err) < 0)
		return cmd_fail(&err, false);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (str_eq(argv[1], "help") && argc > 2 && !str_eq(argv[2], "help"))
		return help(argc, argv);
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") ||
	    str_eq(argv[1], "help")) {
		usage(stdout);
		return cmd_end(0, &err, false);
	}
	if (str_eq(argv[1], "--version"))
		return cmd_version(1, argv + 1);
	int code = pager_end(dispatch(argc, argv), &err);

	return code < 0 ? cmd_fail(&err, false) : code;
}
