/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Options of all commands, read as argp does; but one that there is not is refused as every
 * wrong usage is, with the one that was perhaps meant.
 */
#include "cli/base/cmd.h"

#include "cli/ui/render.h"
#include "common/near.h"
#include "common/str.h"
#include <argp.h>
#include <unistd.h>

struct reading {
	const struct argp *argp;
	int argc, next; /* next: the argument that is looked at */
	char **argv;
};

const struct argp_option *cmd_option_at(const struct argp *argp, size_t at)
{
	const struct argp_option *o = argp->options;

	for (; o && (o->name || o->key); o++)
		if (at-- == 0)
			return o;
	/* no child has children of its own */
	for (const struct argp_child *c = argp->children; c && c->argp; c++)
		for (o = c->argp->options; o && (o->name || o->key); o++)
			if (at-- == 0)
				return o;
	return NULL;
}

static const char *const builtin[] = {"help", "usage"};

NORETURN static void refuse_long(const struct reading *r, const char *name, size_t len)
{
	struct near n = {.word = name, .len = len};
	const struct argp_option *o;

	for (size_t i = 0; (o = cmd_option_at(r->argp, i)); i++)
		if (o->name)
			near_offer(&n, o->name);
	for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
		near_offer(&n, builtin[i]);
	if (n.best)
		cmd_usage_of(r->argv[0], "no option '--%.*s'; did you mean '--%s'?",
			     (int)len, name, n.best);
	cmd_usage_of(r->argv[0], "no option '--%.*s'", (int)len, name);
}

static bool begins(const char *option, const char *name, size_t len)
{
	return option && strncmp(option, name, len) == 0;
}

/* A beginning is enough where only one option has it; which of several it is, argp says. */
static void check_long(struct reading *r, const char *arg)
{
	size_t len = strcspn(arg, "=");
	const struct argp_option *o, *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
		n += begins(builtin[i], arg, len);
	for (size_t i = 0; (o = cmd_option_at(r->argp, i)); i++) {
		if (!begins(o->name, arg, len))
			continue;
		found = o;
		n++;
		if (strlen(o->name) == len) {
			n = 1;
			break;
		}
	}
	if (n == 0)
		refuse_long(r, arg, len);
	if (found && n == 1 && found->arg && !arg[len])
		r->next++; /* its value */
}

/* Letters in one word; the first that takes a value has the rest of it, or the next one. */
static void check_short(struct reading *r, const char *letters)
{
	for (const char *s = letters; *s; s++) {
		const struct argp_option *o = NULL;

		for (size_t i = 0; (o = cmd_option_at(r->argp, i)); i++)
			if (o->key == *s)
				break;
		if (!o && *s != '?')
			cmd_usage_of(r->argv[0], "no option '-%c'", *s);
		if (!o || !o->arg)
			continue;
		if (!s[1])
			r->next++;
		return;
	}
}

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

void cmd_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
	       void *input)
{
	struct reading r = {.argp = argp, .argc = argc, .argv = argv};
	bool in_order = (flags & ARGP_IN_ORDER) || getenv("POSIXLY_CORRECT");

	cmd_describe_if(argp);
	for (r.next = 1; r.next < argc; r.next++) {
		const char *arg = argv[r.next];

		if (str_eq(arg, "--"))
			break;
		if (str_starts(arg, "--"))
			check_long(&r, arg + 2);
		else if (arg[0] == '-' && arg[1])
			check_short(&r, arg + 1);
		else if (in_order)
			break;
	}
	(void)argp_parse(argp, argc, argv, flags, &r.next, input);
	if (r.next < argc)
		cmd_usage_of(argv[0], "one argument too many: '%s'", argv[r.next]);
}
