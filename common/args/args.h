/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Command lines: argp(3) with our form of an error, and with the option that was perhaps meant.
 */
#ifndef LYCH_COMMON_ARGS_ARGS_H
#define LYCH_COMMON_ARGS_ARGS_H

#include "common/attr.h"
#include "common/err.h"
#include <argp.h>
#include <stdbool.h>

/* The exit code of wrong usage, in each program. */
#define ARGS_EXIT_USAGE 2

/* Tells of wrong usage on stderr, and ends the process by exit(ARGS_EXIT_USAGE). command: as it was
 * called, argv[0], with a blank before its verb; text may have any bytes that somebody typed. */
typedef void args_refuse_fn(const char *command, const char *text);
/* Did what was printed arrive? 0, or the exit code of the error that was told. */
typedef int args_flush_fn(const char *command);
/* How a program tells of both. */
struct args_voice {
	args_refuse_fn *refuse;
	args_flush_fn *flush;
};

/* The one that programs use that have none of their own: two lines as every error has, unprintable bytes as \xNN. */
NORETURN void args_refuse(const char *command, const char *text);
/* The same, formatted, found while options are read: what argp_error() is for. */
NORETURN PRINTF_FMT(2, 3) void args_error(const struct argp_state *state, const char *fmt,
					  ...);

/* The two lines of an error that comes later; returns its exit code. */
int args_fail(const char *program, const struct err *err);
/* 0: all that was printed has arrived. Otherwise told as an error, unless the reader of a pipe has gone,
 * and the exit code. */
MUST_CHECK int args_flush(const char *program);
/* "PROGRAM VERSION", and the exit code. */
MUST_CHECK int args_version(const char *program);

/* argp_parse(), but each mistake in the options themselves is told by voice->refuse, before any of them
 * counts: there is no such option, which of several, a value is missing or is one too many; and help that
 * could not be written is an error. -h is --help where it is no option of its own. Returns when all was right. */
void args_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
		void *input, const struct args_voice *voice);
/* The same for programs that tell by args_refuse() and args_flush(). */
void args_read(const struct argp *argp, int argc, char **argv, unsigned flags,
	       void *input);
/* The value of the only option there is, its key ARGS_ONLY, which has to be given. */
#define ARGS_ONLY 256
const char *args_only(const struct argp_option *option, const char *doc, int argc,
		      char **argv);
/* Is this option, which takes no value, among arguments that may be wrong? */
bool args_have_flag(const struct argp *argp, int argc, char **argv, unsigned flags,
		    const char *name);
/* The options one after the other, its own and then those of its children; NULL: no more. */
const struct argp_option *args_option_at(const struct argp *argp, size_t at);

#endif
