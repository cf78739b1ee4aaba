/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Options of all commands, read as common/args does, but told of as lych tells of errors.
 */
#include "cli/base/cmd.h"

#include "cli/ui/render.h"
#include "common/args/args.h"
#include <unistd.h>

static cmd_describe_fn *describe;
static void *describe_arg;

void cmd_describe_with(cmd_describe_fn *fn, void *arg)
{
	describe = fn;
	describe_arg = arg;
}

void cmd_describe_if(const struct argp *argp)
{
	if (!describe)
		return;
	struct err err = ERR_INIT;

	describe(argp, describe_arg);
	_exit(render_flush(&err) == 0 ? 0 : cmd_fail(&err, false));
}

static bool is_reading;

/* argp leaves by exit(0) when it has printed the help; whether that could be written it does not ask. */
static void end_help(void)
{
	struct err err = ERR_INIT;

	if (is_reading && render_flush(&err) < 0)
		_exit(cmd_fail(&err, false));
}

static void refuse(const char *command, const char *text)
{
	is_reading = false;
	cmd_usage_of(command, "%s", text);
}

void cmd_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
	       void *input)
{
	cmd_describe_if(argp);
	is_reading = true;
	(void)atexit(end_help);
	args_parse(argp, argc, argv, flags, input, refuse);
	is_reading = false;
}
