/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See run_options.h.
 */
#include "cli/jobs/run_options.h"

#include "cli/base/cmd.h"
#include "common/str.h"

void run_options_add(struct argp_state *state, const char **list, size_t *n, size_t max,
		     const char *arg)
{
	if (*n >= max)
		cmd_usage(state, "too many: %s", arg);
	else
		list[(*n)++] = arg;
}

void run_options_number(struct argp_state *state, int r, const struct err *err,
			const char *option)
{
	if (r < 0)
		cmd_usage(state, "%s: %s", option, err->msg);
}

/* What our globs would take for a plain character, and git would not. */
static void add_pattern(struct argp_state *state, const char **list, size_t *n,
			const char *arg)
{
	if (!arg[0] || strpbrk(arg, "[]\\") || arg[0] == '!' || arg[0] == '#')
		cmd_usage(state, "a pattern has no [, ], \\, nor ! or # in front: %s",
			  arg);
	else
		run_options_add(state, list, n, PATTERNS_MAX, arg);
}

/* What is too little, but something, is for the vessel to refuse: it knows the ceiling too. 0
 * would be the default. */
static int read_size(const char *arg, uint64_t min, uint64_t max, uint64_t *ret,
		     struct err *err)
{
	if (parse_size(arg, 1, max, ret, NULL) == 0)
		return 0;
	return parse_size(arg, min, max, ret, err);
}

/* A number with its bounds; false: it is another option. */
static bool parse_limit(struct argp_state *state, struct run_args *a, int key,
			const char *arg)
{
	struct err err = ERR_INIT;

	switch (key) {
	case 't':
		run_options_number(state,
				   parse_duration_usec(arg, LIMIT_TIMEOUT_USEC_MIN,
						       LIMIT_TIMEOUT_USEC_MAX,
						       &a->timeout_usec, &err),
				   &err, "--timeout");
		return true;
	case 'm':
		run_options_number(state,
				   read_size(arg, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX,
					     &a->memory, &err),
				   &err, "--memory");
		return true;
	case RUN_KEY_DISK:
		run_options_number(
			state,
			read_size(arg, LIMIT_DISK_MIN, LIMIT_DISK_MAX, &a->disk, &err),
			&err, "--disk");
		return true;
	case RUN_KEY_OUTPUT:
		run_options_number(state,
				   parse_size(arg, 1, LIMIT_OUTPUT_MAX, &a->output, &err),
				   &err, "--output");
		return true;
	case RUN_KEY_CPUS:
		run_options_number(state,
				   parse_u64(arg, 1, LIMIT_CPUS_MAX, &a->cpus, &err),
				   &err, "--cpus");
		return true;
	case RUN_KEY_PROCESSES:
		run_options_number(
			state,
			parse_u64(arg, 1, LIMIT_PROCESSES_MAX, &a->processes, &err), &err,
			"--processes");
		return true;
	default:
		return false;
	}
}

/* What goes in; false: it is another option. */
static bool parse_input(struct argp_state *state, struct run_args *a, int key,
			const char *arg)
{
	switch (key) {
	case 'f':
		run_options_add(state, a->files, &a->n_files, FILES_MAX, arg);
		return true;
	case 'C':
		run_options_add(state, a->dirs, &a->n_dirs, DIRS_MAX, arg);
		return true;
	case RUN_KEY_EXCLUDE:
		add_pattern(state, a->exclude, &a->n_exclude, arg);
		return true;
	case RUN_KEY_GIT:
		a->git = true;
		return true;
	case RUN_KEY_HOME:
		a->home = true;
		return true;
	case RUN_KEY_INCLUDE:
		add_pattern(state, a->include, &a->n_include, arg);
		return true;
	default:
		return false;
	}
}

bool run_options_parse(struct argp_state *state, struct run_args *a, int key,
		       const char *arg)
{
	return parse_limit(state, a, key, arg) || parse_input(state, a, key, arg);
}

void run_options_check(const struct argp_state *state, const struct run_args *a)
{
	if ((a->git || a->n_exclude || a->home) && !a->n_dirs)
		cmd_usage(state, "%s goes with --dir",
			  a->git	 ? "--git"
			  : a->n_exclude ? "--exclude"
					 : "--home");
	if (a->n_include && !a->n_dirs && !a->n_files)
		cmd_usage(state, "--include goes with --dir or --file");
}
