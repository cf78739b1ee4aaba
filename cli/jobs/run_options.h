/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The options that lych run and lych agent share: what goes into a job, and its limits.
 */
#ifndef LYCH_CLI_JOBS_RUN_OPTIONS_H
#define LYCH_CLI_JOBS_RUN_OPTIONS_H

#include "cli/jobs/run_spec.h"
#include "common/err.h"
#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

enum run_key {
	RUN_KEY_DISK = 256,
	RUN_KEY_CPUS,
	RUN_KEY_PROCESSES,
	RUN_KEY_OUTPUT,
	RUN_KEY_EXCLUDE,
	RUN_KEY_INCLUDE,
	RUN_KEY_GIT,
	RUN_KEY_HOME,
	RUN_KEY_MAX_
};

/* Rows of a table of options. */
#define RUN_INPUT_OPTIONS                                                                \
	{"file", 'f', "PATH[=DEST]", 0, "copy a file in (more than once)", 0},           \
		{"dir",                                                                  \
		 'C',                                                                    \
		 "DIR[=DEST]",                                                           \
		 0,                                                                      \
		 "copy the contents of a directory in, but for what keeps secrets "      \
		 "(more than "                                                           \
		 "once)",                                                                \
		 0},                                                                     \
		{"git", RUN_KEY_GIT, NULL, 0, "of each --dir what git would track", 0},  \
		{"exclude",                                                              \
		 RUN_KEY_EXCLUDE,                                                        \
		 "PATTERN",                                                              \
		 0,                                                                      \
		 "leave these out of each --dir",                                        \
		 0},                                                                     \
		{"include",                                                              \
		 RUN_KEY_INCLUDE,                                                        \
		 "PATTERN",                                                              \
		 0,                                                                      \
		 "take these though they keep secrets, or git ignores them",             \
		 0},                                                                     \
		{"home", RUN_KEY_HOME, NULL, 0, "yes, the home directory, with --dir", 0}
#define RUN_LIMIT_OPTIONS                                                                \
	{"timeout", 't', "TIME", 0, "wall time: 90s, 1h30m", 0},                         \
		{"memory", 'm', "SIZE", 0, "memory of all its processes: 512m, 2g", 0},  \
		{"disk", RUN_KEY_DISK, "SIZE", 0, "bytes it may write", 0},              \
		{"output", RUN_KEY_OUTPUT, "SIZE", 0, "bytes of stdout and stderr", 0},  \
		{"cpus", RUN_KEY_CPUS, "N", 0, "processors", 0},                         \
		{"processes", RUN_KEY_PROCESSES, "N", 0, "processes and threads", 0}

/* Takes one of these; false: it is another option. */
bool run_options_parse(struct argp_state *state, struct run_args *a, int key,
		       const char *arg);
/* At their end: what goes with what. */
void run_options_check(const struct argp_state *state, const struct run_args *a);

/* One more of a list, whose strings are the command line's own. */
void run_options_add(struct argp_state *state, const char **list, size_t *n, size_t max,
		     const char *arg);
/* A value was read: when r is negative, wrong usage. */
void run_options_number(struct argp_state *state, int r, const struct err *err,
			const char *option);

#endif
