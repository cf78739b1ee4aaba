/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych sandbox: the options of profiles and of the command line become one command line of
 * lych-sandbox, which replaces this program. Nothing is decided here: what lych-sandbox
 * would refuse it refuses still.
 */
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/jobs/profile.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/sandbox_options.h"
#include "common/str.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
	"Usage: lych sandbox [--profile NAME|FILE]... [OPTION...] -- ARGV...\n"
	"       lych sandbox --list\n"
	"Run one command in a sandbox of its own, in this terminal, with no service "
	"involved.\n"
	"\n"
	"  --profile NAME|FILE  options from a profile; repeatable, a later one wins\n"
	"  --print              print the command line of lych-sandbox, run nothing\n"
	"  --list               the profiles there are\n"
	"  --help\n"
	"\n"
	"OPTION is any of lych-sandbox, see 'lych-sandbox --help'; one given here "
	"replaces "
	"that\n"
	"of a profile. The exit code is that of lych-sandbox: the command's own, 124 "
	"time-out,\n"
	"126 or 127 not executed, 78 no sandbox, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  lych sandbox --list\n"
	"  lych sandbox --profile python -- python3 x.py\n";

struct args {
	struct option_list given;
	const char *profile[16];
	size_t n_profiles;
	bool print;
	char **command;
	int n_command;
};

static int bad(struct err *err, const char *what, const char *arg)
{
	return err_set_id(err, ERRID_CORE_USAGE, "%s '%.60s'; see 'lych sandbox --help'",
			  what, arg);
}

/* The value of the option at argv[*i], after '=' or the next string. */
static const char *value_of(int argc, char **argv, int *i)
{
	char *eq = strchr(argv[*i], '=');

	if (eq)
		return eq + 1;
	return *i + 1 < argc ? argv[++*i] : NULL;
}

static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	int i = 1;

	for (; i < argc && !str_eq(argv[i], "--"); i++) {
		const char *arg = argv[i], *value = NULL;
		size_t len = str_starts(arg, "--") ? strcspn(arg + 2, "=") : 0;
		const struct option_info *info = len ? option_find(arg + 2, len) : NULL;
		bool is_profile = len == 7 && str_starts(arg, "--profile");

		if (str_eq(arg, "--print")) {
			a->print = true;
			continue;
		}
		if (len == 0)
			return bad(err, "unknown option", arg);
		if (!info && !is_profile)
			return sandbox_option_unknown(ERRID_CORE_USAGE, arg + 2, len,
						      err);
		if (info && info->kind == OPTION_FLAG) {
			if (strchr(arg, '='))
				return bad(err, "no value goes with", arg);
			if (option_list_add(&a->given, info, NULL))
				return bad(err, "given twice:", arg);
			continue;
		}
		value = value_of(argc, argv, &i);
		if (!value)
			return bad(err, "a value is missing after", arg);
		if (info && option_list_add(&a->given, info, value))
			return bad(err, "given twice:", arg);
		if (info)
			continue;
		if (a->n_profiles < ARRAY_SIZE(a->profile))
			a->profile[a->n_profiles++] = value;
		else
			return bad(err, "too many profiles:", value);
	}
	if (i + 1 >= argc)
		return err_set_id(err, ERRID_SPEC_ARGV, "no command after '--'");
	a->command = argv + i + 1;
	a->n_command = argc - i - 1;
	return 0;
}

/* ---- where profiles are ----------------------------------------------------- */

struct places {
	struct paths paths;
	char *home, *cwd, *user_dir, *system_dir;
};

static void places_done(struct places *p)
{
	paths_done(&p->paths);
	free(p->home);
	free(p->cwd);
	free(p->user_dir);
	free(p->system_dir);
}

/* Those that were installed, and profiles/ beside the configuration. */
static int places_find(struct places *p, struct err *err)
{
	const char *slash;

	if (paths_resolve(&p->paths, err) < 0 ||
	    paths_installed("profiles", &p->system_dir, err) < 0)
		return -1;
	p->home = realpath(p->paths.home, NULL);
	p->cwd = getcwd(NULL, 0);
	if (!p->home)
		return err_sys(err, "home directory %s", p->paths.home);
	if (!p->cwd)
		return err_sys(err, "working directory");
	slash = strrchr(p->paths.config, '/');
	p->user_dir = xasprintf("%.*s/profiles", (int)(slash - p->paths.config),
				p->paths.config);
	return 0;
}

static int list_dir(const char *dir, struct err *err)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, NULL, alphasort);

	if (n < 0)
		return errno == ENOENT ? 0 : err_sys(err, "%s", dir);
	for (int i = 0; i < n; i++) {
		struct buf b;

		buf_init(&b, 16384);
		render_escape(&b, names[i]->d_name, strlen(names[i]->d_name), 0);
		if (names[i]->d_name[0] != '.')
			(void)printf("%-20s %s\n", buf_str(&b), dir);
		buf_done(&b);
		free(names[i]);
	}
	free(names);
	return 0;
}

/* ---- what is executed ------------------------------------------------------- */

/* Strings are borrowed from a and l. NULL-terminated, caller frees with strings_free. */
static char **build(const char *program, const struct option_list *l,
		    const struct args *a)
{
	char **out = xcalloc(2 * l->n + (size_t)a->n_command + 3, sizeof(*out));
	size_t n = 0;

	out[n++] = xstrdup(program);
	for (size_t i = 0; i < l->n; i++) {
		out[n++] = xasprintf("--%s", l->item[i].info->name);
		if (l->item[i].value)
			out[n++] = xstrdup(l->item[i].value);
	}
	out[n++] = xstrdup("--");
	for (int i = 0; i < a->n_command; i++)
		out[n++] = xstrdup(a->command[i]);
	return out;
}

static void strings_free(char ***list)
{
	for (char **p = *list; p && *p; p++)
		free(*p);
	free(*list);
}

static int execute(char **argv, struct err *err)
{
	sigset_t none;

	/* As whoever started this wants them: lych itself ignores these. */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execv(argv[0], argv);
	return err_sys_id(err, ERRID_START_TOOL, "execute %s", argv[0]);
}

static int print(char **argv, struct err *err)
{
	for (char **p = argv; *p; p++) {
		struct buf b;

		buf_init(&b, (size_t)1 << 20);
		render_escape(&b, *p, strlen(*p), 0);
		(void)printf("%s\n", buf_str(&b));
		buf_done(&b);
	}
	return render_flush(err);
}

static int sandbox(struct args *a, const struct places *p, struct err *err)
{
	struct profile_world w = {.home = p->home,
				  .cwd = p->cwd,
				  .user_dir = p->user_dir,
				  .system_dir = p->system_dir};
	struct option_list all = {.n = 0};
	cleanup_free char *program = NULL;
	__attribute__((cleanup(strings_free))) char **argv = NULL;
	int r = paths_program("lych-sandbox", &program, err);

	for (size_t i = 0; r == 0 && i < a->n_profiles; i++)
		r = profile_read(&w, a->profile[i], &all, err);
	for (size_t i = 0; r == 0 && i < a->given.n; i++)
		(void)option_list_add(&all, a->given.item[i].info,
				      a->given.item[i].value);
	if (r == 0)
		r = profile_check_grants(&w, &all, err);
	if (r == 0)
		argv = build(program, &all, a);
	option_list_done(&all);
	profile_world_done(&w);
	if (!argv)
		return -1;
	return a->print ? print(argv, err) : execute(argv, err);
}

/* For who asks what options there are: those of lych-sandbox have one table. */
#define VALUE_OF_WORD "VALUE"
#define VALUE_OF_PATH "PATH"
#define VALUE_OF_FLAG NULL
static const struct argp_option options[] = {
	{"profile", 0, "NAME|FILE", 0, "options from a profile", 0},
	{"print", 0, NULL, 0, "print the command line of lych-sandbox, run nothing", 0},
	{"list", 0, NULL, 0, "the profiles there are", 0},
#define OPTION(symbol, name, kind, repeats)                                              \
	{name, 0, VALUE_OF_##kind, 0, "as of lych-sandbox", 0},
#define LIMIT(symbol, name) {name, 0, "VALUE", 0, "a limit, as of lych-sandbox", 0},
#include "common/proto/sandbox_options.def"
	{0},
};

int cmd_sandbox(int argc, char **argv)
{
	static const struct argp argp = {.options = options};

	struct args a = {.n_profiles = 0};
	struct places p = {.home = NULL};
	struct err err = ERR_INIT;
	int r;

	cmd_describe_if(&argp);
	if (argc == 2 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
		return fputs(usage, stdout) < 0 || render_flush(&err) < 0
			       ? cmd_fail(&err, false)
			       : 0;
	r = places_find(&p, &err);
	if (r == 0 && argc == 2 && str_eq(argv[1], "--list")) {
		if (list_dir(p.user_dir, &err) < 0 || list_dir(p.system_dir, &err) < 0 ||
		    render_flush(&err) < 0)
			r = -1;
	} else if (r == 0) {
		r = parse(argc, argv, &a, &err) < 0 ? -1 : sandbox(&a, &p, &err);
	}
	option_list_done(&a.given);
	places_done(&p);
	return r < 0 ? cmd_fail(&err, false) : 0;
}
