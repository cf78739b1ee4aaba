/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych passphrase set|change|check: the second factor.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/secret/second_factor.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/str.h"
#include <argp.h>
#include <stdio.h>

struct passphrase_args {
	const char *verb;
	bool json;
};

static error_t passphrase_parse(int key, char *arg, struct argp_state *state)
{
	struct passphrase_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->verb) /* and it is not said again, where it may be logged */
			cmd_usage(state, "the passphrase is asked for at the terminal: "
					 "in a command's arguments every process and "
					 "the shell's history would have it");
		a->verb = arg;
		return 0;
	case ARGP_KEY_END:
		if (!str_eq(a->verb, "set") && !str_eq(a->verb, "change") &&
		    !str_eq(a->verb, "check"))
			cmd_usage(state, "set, change or check");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void tell(const struct passphrase_args *a)
{
	if (a->json)
		(void)puts("{\"ok\":true}");
	else if (str_eq(a->verb, "check"))
		(void)puts("a passphrase is set");
	else
		(void)puts("the passphrase is set; it is stored nowhere, so it must not "
			   "be forgotten");
}

int cmd_passphrase(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "answer in JSON", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = passphrase_parse,
		.args_doc = "set\nchange\ncheck",
		.doc = "The second factor: what a program must not do in your name asks "
		       "you for a passphrase, at the terminal and from nothing else.\v"
		       "check says whether there is one (exit code 1: there is none).\n\n"
		       "Examples:\n"
		       "  lych passphrase set\n"
		       "  lych passphrase check"};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct passphrase_args a = {0};
	struct err err = ERR_INIT;
	int r = -1;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (paths_resolve(&p, &err) == 0 && client_new(p.api_sock, &c, &err) == 0)
		r = str_eq(a.verb, "check")
			    ? second_factor_need(c, &err)
			    : second_factor_set(c, str_eq(a.verb, "change"), &err);
	if (r == 0) {
		tell(&a);
		r = render_flush(&err);
	}
	return r < 0 ? cmd_fail(&err, a.json) : 0;
}
