/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See run_slips.h.
 */
#include "cli/jobs/run_slips.h"

#include "cli/base/cmd.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/glob.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void tell(char *text)
{
	cleanup_free char *owned = text;

	cmd_tell(ERRID_NONE, owned);
}

/* A relative name of a file that is here. */
static bool is_here(const char *name)
{
	struct stat st;

	return name[0] != '/' && name[0] != '-' && lstat(name, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

static bool tell_not_copied(const struct run_args *a)
{
	for (int i = 0; i < a->argc; i++) {
		if (!is_here(a->argv[i]))
			continue;
		tell(xasprintf("%s is here, but nothing was copied into the job: --dir . "
			       "takes this directory, --file %s the file",
			       a->argv[i], a->argv[i]));
		return true;
	}
	return false;
}

static void tell_no_command(const struct run_args *a)
{
	if (a->argc == 1 && strpbrk(a->argv[0], " \t\n")) {
		tell(xstrdup("all of it was taken for the name of one program, for no "
			     "shell reads it; a line for the shell is: lych run -- sh -c "
			     "'LINE'"));
		return;
	}
	if (a->n_dirs || a->n_files || tell_not_copied(a))
		return;
	tell(xstrdup("nothing was copied into the job, so it has the system's programs "
		     "only; your own go in with --dir or --file"));
}

/* What reads its commands from stdin when it is told nothing else. */
static bool is_shell(const struct run_args *a)
{
	static const char *const names[] = {"sh",   "bash",    "dash",	 "zsh",	 "ksh",
					    "fish", "python3", "python", "node", "irb",
					    "psql", "sqlite3", "ghci",	 "lua",	 "R"};
	const char *slash = strrchr(a->argv[0], '/');
	const char *name = slash ? slash + 1 : a->argv[0];

	if (a->argc > 2 || (a->argc == 2 && !str_eq(a->argv[1], "-i")))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

static void tell_no_terminal(const struct run_args *a)
{
	if (is_shell(a) && (a->no_stdin || render_is_terminal(STDIN_FILENO)))
		tell(xasprintf("%s had nothing to read: a job has no terminal, and yours "
			       "is not passed on. Give it a command (sh -c 'LINE', "
			       "python3 -c 'CODE'), a file, or its input by a pipe",
			       a->argv[0]));
}

/* True too when the list is not all of what there was. */
static bool has_match(const struct json *result, const char *key, const char *glob)
{
	const struct json *list = NULL;
	char total_key[64];
	uint64_t total = 0;

	if (json_get_arr(result, key, true, 1 << 20, &list, NULL) < 0 ||
	    str_fmt(total_key, sizeof(total_key), "%s_total", key) < 0 ||
	    json_get_u64(result, total_key, false, 0, INT64_MAX, &total, NULL) < 0 ||
	    total > json_arr_len(list))
		return true;
	for (size_t i = 0; i < json_arr_len(list); i++) {
		const char *path;

		if (json_get_str(json_arr_at(list, i), "path", true, 8192, &path, NULL) <
			    0 ||
		    glob_match(glob, path))
			return true;
	}
	return false;
}

static void tell_no_match(const struct run_args *a, const struct json *job)
{
	const struct json *result = NULL;

	if (json_is_null(job, "result") ||
	    json_get_obj(job, "result", true, &result, NULL) < 0)
		return;
	for (size_t i = 0; i < a->n_artifacts; i++) {
		const char *glob = a->artifacts[i];

		if (has_match(result, "artifacts", glob) ||
		    has_match(result, "refused_artifacts", glob) ||
		    has_match(result, "quarantined", glob))
			continue;
		tell(xasprintf("--artifact %s: the job left no such file; '*' stops at "
			       "'/', and all below a directory is 'DIR/**'",
			       glob));
	}
}

void run_slips_tell(const struct run_args *a, const struct json *job,
		    const struct job_end *end)
{
	bool ran = end->state == JOB_SUCCEEDED || end->fail_class == FAIL_EXIT;

	if (end->exec_errno == ENOENT)
		tell_no_command(a);
	else if (end->fail_class == FAIL_EXIT && !a->n_dirs && !a->n_files)
		(void)tell_not_copied(a);
	if (ran) {
		tell_no_terminal(a);
		tell_no_match(a, job);
	}
}
