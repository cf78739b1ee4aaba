/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych portals, lych budget: what the broker may speak to, and what was used up.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/jobs/amounts.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

struct broker_args {
	bool json, takes_job;
	uint64_t job;
};

static error_t broker_parse(int key, char *arg, struct argp_state *state)
{
	struct broker_args *a = state->input;
	struct err err = ERR_INIT;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->takes_job || a->job)
			return ARGP_ERR_UNKNOWN;
		if (parse_u64(arg, 1, INT64_MAX, &a->job, &err) < 0)
			cmd_usage(state, "JOB: %s", err.msg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option json_option[] = {
	{"json", 'j', NULL, 0, "answer in JSON", 0},
	{0},
};

static int ask(const char *target, struct json **ret, struct err *err)
{
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = 10000};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;

	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0)
		return -1;
	return client_json(c, &rq, ret, NULL, err);
}

/* ---- portals ------------------------------------------------------------------ */

static int print_models(const struct json *portal, struct err *err)
{
	const struct json *models = NULL;
	struct table t;

	if (json_get_arr(portal, "models", true, 1024, &models, err) < 0)
		return -1;
	table_init(&t, 3);
	for (size_t i = 0; i < json_arr_len(models); i++) {
		const struct json *m = json_arr_at(models, i);
		uint64_t in = 0, out = 0;
		char money[AMOUNT_SIZE];
		cleanup_free char *cell = xasprintf("  %s", render_text_of(m, "name"));

		if (json_get_u64(m, "input_micro", true, 0, UINT64_MAX, &in, err) < 0 ||
		    json_get_u64(m, "output_micro", true, 0, UINT64_MAX, &out, err) < 0) {
			table_done(&t);
			return -1;
		}
		table_cell(&t, cell);
		amount_money(money, in);
		table_cell(&t, money);
		amount_money(money, out);
		table_cell(&t, money);
	}
	table_print(&t, false);
	table_done(&t);
	return 0;
}

static int print_portals(const struct json *j, struct err *err)
{
	const struct json *portals = NULL, *registries = NULL;

	if (json_get_arr(j, "portals", true, 64, &portals, err) < 0 ||
	    json_get_arr(j, "registries", true, 64, &registries, err) < 0)
		return -1;
	for (size_t i = 0; i < json_arr_len(portals); i++) {
		const struct json *p = json_arr_at(portals, i);
		cleanup_free char *name = render_shown(render_text_of(p, "name"));
		cleanup_free char *kind = render_shown(render_text_of(p, "kind"));
		cleanup_free char *url = render_shown(render_text_of(p, "url"));
		cleanup_free char *secret = render_shown(render_text_of(p, "secret"));

		(void)printf("%s  %s  %s  %s%s\n", name, kind, url,
			     *secret ? "key: " : "no key", secret);
		if (print_models(p, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < json_arr_len(registries); i++) {
		const struct json *g = json_arr_at(registries, i);

		cleanup_free char *name = render_shown(render_text_of(g, "name"));
		cleanup_free char *url = render_shown(render_text_of(g, "url"));

		(void)printf("registry %s  %s\n", name, url);
	}
	if (json_arr_len(portals) + json_arr_len(registries) == 0)
		(void)puts("No portal and no registry: see portals in codex.yaml(5).");
	return 0;
}

int cmd_portals(int argc, char **argv)
{
	static const struct argp argp = {
		.options = json_option,
		.parser = broker_parse,
		.doc = "The portals and registries of codex.yaml, with the models and "
		       "what a million tokens cost (in, out).\v"
		       "Examples:\n"
		       "  lych portals"};
	cleanup_json struct json *j = NULL;
	struct broker_args a = {0};
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&argp, argc, argv, 0, &a);
	r = ask("/v1/portals", &j, &err);
	if (r == 0 && a.json)
		render_json(j);
	else if (r == 0)
		r = print_portals(j, &err);
	if (r == 0)
		r = render_flush(&err);
	return r < 0 ? cmd_fail(&err, a.json) : 0;
}

/* ---- budget ------------------------------------------------------------------- */

static int amount_cell(struct table *t, const struct json *row, const char *thing,
		       struct err *err)
{
	cleanup_free char *cell = NULL;

	if (amount_of_book(row, thing, &cell, err) < 0)
		return -1;
	table_cell_whole(t, cell);
	return 0;
}

static int print_books(const struct json *j, struct err *err)
{
	static const char *const things[] = {"requests", "tokens",  "money",
					     "bytes",	 "denials", "packages"};
	const struct json *books = NULL;
	struct table t;
	int r = 0;

	if (json_get_arr(j, "books", true, 4096, &books, err) < 0)
		return -1;
	if (json_arr_len(books) == 0) {
		(void)puts("Nothing was used today.");
		return 0;
	}
	table_init(&t, 1 + ARRAY_SIZE(things));
	table_cell(&t, "WHOSE");
	for (size_t i = 0; i < ARRAY_SIZE(things); i++)
		table_cell(&t, things[i]);
	for (size_t i = 0; r == 0 && i < json_arr_len(books); i++) {
		const struct json *row = json_arr_at(books, i);
		cleanup_free char *whose =
			xasprintf("%s%s%s", render_text_of(row, "scope"),
				  *render_text_of(row, "key") ? " " : "",
				  render_text_of(row, "key"));

		table_cell(&t, whose);
		for (size_t k = 0; r == 0 && k < ARRAY_SIZE(things); k++)
			r = amount_cell(&t, row, things[k], err);
	}
	if (r == 0)
		table_print(&t, true);
	table_done(&t);
	return r;
}

int cmd_budget(int argc, char **argv)
{
	static const struct argp argp = {
		.options = json_option,
		.parser = broker_parse,
		.args_doc = "[JOB]",
		.doc = "What was used up today (UTC), and by a job: used, + reserved by "
		       "what is under way, of the limit.\v"
		       "Examples:\n"
		       "  lych budget\n"
		       "  lych budget 1"};
	cleanup_json struct json *j = NULL;
	struct broker_args a = {.takes_job = true};
	char target[64] = "/v1/budget";
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (a.job)
		(void)snprintf(target, sizeof(target), "/v1/budget?job=%" PRIu64, a.job);
	r = ask(target, &j, &err);
	if (r == 0 && a.json)
		render_json(j);
	else if (r == 0)
		r = print_books(j, &err);
	if (r == 0)
		r = render_flush(&err);
	return r < 0 ? cmd_fail(&err, a.json) : 0;
}
