/* SPDX-License-Identifier: Apache-2.0 */
/* lych: a person's command line. */
#include "cli/cmd.h"

#include "cli/render.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>

static const struct cmd commands[] = {
	{"up", "start Lychgate here (a private PostgreSQL, vessel and tomb)", cmd_up},
	{"down", "stop it", cmd_down},
	{"status", "what runs, and which walls stand", cmd_status},
	{"run", "run a command in a sandbox and wait for it", cmd_run},
	{"jobs", "list jobs", cmd_jobs},
	{"show", "everything about one job", cmd_show},
	{"logs", "a job's output (-f: follow it)", cmd_logs},
	{"cancel", "end a job and prove its processes gone", cmd_cancel},
	{"artifacts", "list a job's artifacts, or fetch them", cmd_artifacts},
	{"doctor", "attempt every forbidden act; one line a wall", cmd_doctor},
	{"config", "init: write a commented codex.yaml; check: read it", cmd_config},
	{"version", "the version of this program", cmd_version},
	{"_tomb", NULL, cmd_tomb_wall},
};

static void usage(FILE *to)
{
	(void)fputs("Usage: lych COMMAND [OPTION...]\n"
		    "Run code that nobody trusts on your own workstation.\n\n",
		    to);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].summary)
			(void)fprintf(to, "  %-10s %s\n", commands[i].name,
				      commands[i].summary);
	(void)fputs("\n'lych COMMAND --help' names the options of a command.\n", to);
}

int cmd_fail(const struct err *err, bool json)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, 65536);
	if (json) {
		struct jsonw w;

		jsonw_init(&w, &b);
		jsonw_obj(&w);
		jsonw_kstr(&w, "error_code", err_text(err));
		jsonw_kstr(&w, "title", err_title(err));
		jsonw_kstr(&w, "detail", err->msg);
		jsonw_kstr(&w, "hint", err_hint(err));
		jsonw_obj_end(&w);
		(void)fprintf(stderr, "%s\n", buf_str(&b));
		return err_exit_code(err);
	}
	render_escape(&b, err->msg, strlen(err->msg), 0);
	(void)fprintf(stderr, "lych: %s: %s\n", err_title(err), buf_str(&b));
	(void)fprintf(stderr, "      %s  %s\n", err_text(err), err_hint(err));
	return err_exit_code(err);
}

int cmd_refuse_root(struct err *err)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};
	uid_t r, e, s;

	if (getresuid(&r, &e, &s) < 0)
		return err_sys(err, "getresuid");
	if (r == 0 || e == 0 || s == 0)
		return err_set_id(err, ERRID_CORE_ROOT, "uid %u", e);
	if (syscall(SYS_capget, &h, d) < 0)
		return err_sys(err, "capget");
	if (d[0].effective || d[0].permitted || d[1].effective || d[1].permitted)
		return err_set_id(err, ERRID_CORE_ROOT,
				  "this process holds capabilities");
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;

	argp_err_exit_status = EXIT_USAGE;
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") ||
	    str_eq(argv[1], "help")) {
		usage(stdout);
		return 0;
	}
	if (str_eq(argv[1], "--version"))
		return cmd_version(1, argv + 1);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!str_eq(commands[i].name, argv[1]))
			continue;
		if (commands[i].run != cmd_version && cmd_refuse_root(&err) < 0)
			return cmd_fail(&err, false);
		cleanup_free char *name = xasprintf("lych %s", argv[1]);

		argv[1] = name; /* for usage and --help */
		return commands[i].run(argc - 1, argv + 1);
	}
	(void)err_set_id(&err, ERRID_CORE_USAGE, "no command '%s'; see 'lych --help'",
			 argv[1]);
	return cmd_fail(&err, false);
}
