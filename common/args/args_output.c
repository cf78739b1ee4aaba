/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See args.h: what a program says of itself, and whether that arrived.
 */
#include "common/args/args.h"

#include "common/proto.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>

int args_flush(const char *program)
{
	struct err err = ERR_INIT;
	bool has_failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout) == 0 && !has_failed)
		return 0;
	if (errno == EPIPE) /* a reader that has enough, as head has, is no error */
		return 128 + SIGPIPE;
	if (errno)
		(void)err_sys_id(&err, ERRID_CORE_OUTPUT, "write to stdout");
	else
		(void)err_set_id(&err, ERRID_CORE_OUTPUT,
				 "stdout did not take all of it");
	return args_fail(program, &err);
}

int args_version(const char *program)
{
	(void)printf("%s %s\n", program, LYCH_VERSION);
	return args_flush(program);
}

void args_read(const struct argp *argp, int argc, char **argv, unsigned flags,
	       void *input)
{
	static const struct args_voice voice = {args_refuse, args_flush};

	args_parse(argp, argc, argv, flags, input, &voice);
}

/* ---- the only option ------------------------------------------------------------- */

struct only {
	const char *name, *value;
};

static error_t parse_only(int key, char *arg, struct argp_state *state)
{
	struct only *o = state->input;

	switch (key) {
	case ARGS_ONLY:
		o->value = arg;
		return 0;
	case ARGP_KEY_ARG:
		args_error(state, "'%s': no arguments are expected", arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->value)
			args_error(state, "--%s is required", o->name);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const char *args_only(const struct argp_option *option, const char *doc, int argc,
		      char **argv)
{
	const struct argp argp = {.options = option, .parser = parse_only, .doc = doc};
	struct only o = {.name = option->name};

	args_read(&argp, argc, argv, 0, &o);
	return o.value;
}
