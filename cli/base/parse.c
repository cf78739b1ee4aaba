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

int cmd_take_job(job_id_t *id, const char *arg, const struct argp_state *state)
{
	struct err err = ERR_INIT;

	if (*id)
		return ARGP_ERR_UNKNOWN;
	if (job_id_parse(arg, id, &err) < 0)
		cmd_usage(state, "%s", err.msg);
	return 0;
}

static void refuse(const char *command, const char *text)
{
	cmd_usage_of(command, "%s", text);
}

static int flush(const char *command UNUSED)
{
	struct err err = ERR_INIT;

	return render_flush(&err) < 0 ? cmd_fail(&err, false) : 0;
}

void cmd_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
	       void *input)
{
	static const struct args_voice voice = {refuse, flush};

	cmd_describe_if(argp);
	cmd_ask_json(args_have_flag(argp, argc, argv, flags, "json"));
	args_parse(argp, argc, argv, flags, input, &voice);
}
