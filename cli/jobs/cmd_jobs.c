/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych show, cancel.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/follow/follow.h"
#include "cli/follow/job_end.h"
#include "cli/jobs/amounts.h"
#include "cli/jobs/last_job.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

struct jobs_args {
	bool json, no_wait;
	job_id_t id;
};

static error_t jobs_parse(int key, char *arg, struct argp_state *state)
{
	struct jobs_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'w':
		a->no_wait = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_job(&a->id, arg, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

#define OPTION_JSON {"json", 'j', NULL, 0, "answer in JSON", 0}

/* ---- show ------------------------------------------------------------------- */

/* What it asked the broker for, in words. */
static void tell_spent(int64_t id, const struct json *job)
{
	static const char *const things[] = {"requests", "tokens", "money", "bytes",
					     "packages"};
	const struct json *spent = NULL;
	const char *sep = "\nit has used ";

	if (!json_has(job, "spent") || json_is_null(job, "spent") ||
	    json_get_obj(job, "spent", true, &spent, NULL) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(things); i++) {
		char amount[AMOUNT_SIZE];

		if (str_eq(things[i], "packages") && !render_number_of(spent, things[i]))
			continue;
		amount_text(amount, things[i], render_number_of(spent, things[i]));
		(void)printf("%s%s%s%s", sep, amount,
			     str_eq(things[i], "bytes") ? "" : " ",
			     str_eq(things[i], "money")	  ? "of your money"
			     : str_eq(things[i], "bytes") ? ""
							  : things[i]);
		sep = ", ";
	}
	(void)printf("; 'lych budget %" PRId64 "' has the limits\n", id);
}

static int show(struct jobs_args *a, struct client *c, struct err *err)
{
	cleanup_json struct json *j = NULL;
	struct job_end end;
	struct table t;

	if (last_job_take(c, false, &a->id, err) < 0 ||
	    job_get(c, a->id, JOB_GET_MSEC, &j, err) < 0)
		return -1;
	if (a->json) {
		render_json(j);
		return render_flush(err);
	}
	if (pager_begin(err) < 0)
		return -1;
	table_init(&t, 2);
	table_tree(&t, j);
	table_print(&t, false);
	table_done(&t);
	if (job_end_read(j, &end, err) < 0)
		return -1;
	if (end.denials)
		(void)printf("\n%zu denial%s, see 'lych why %" PRId64 "'\n", end.denials,
			     end.denials == 1 ? "" : "s", a->id);
	tell_spent(a->id, j);
	return render_flush(err);
}

/* ---- cancel ----------------------------------------------------------------- */

static int cancel(struct jobs_args *a, struct client *c, const char *socket,
		  struct err *err)
{
	cleanup_free char *target = NULL;
	struct client_request rq = {.method = "POST", .timeout_ms = 30000};
	cleanup_json struct json *j = NULL;
	const char *state = "?";
	struct follow f;
	int r = 0;

	if (last_job_take(c, true, &a->id, err) < 0)
		return -1;
	rq.target = target = xasprintf("/v1/jobs/%" PRId64 "/cancel", a->id);
	if (client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_str(j, "state", true, 32, &state, err) < 0)
		return -1;
	if (str_eq(state, "cancelling") && !a->no_wait) {
		if (render_is_terminal(STDERR_FILENO))
			(void)fprintf(stderr,
				      "lych: waiting until its processes are gone\n");
		if (follow_init(&f, c, socket, err) < 0)
			return -1;
		f.id = a->id;
		f.quiet = true;
		r = follow_job(&f, err);
		if (r == 0 && !f.job)
			r = 128 + f.stopped_by;
		follow_done(&f);
		if (r != 0)
			return r;
		json_free(TAKE_PTR(j));
		if (job_get(c, a->id, JOB_GET_MSEC, &j, err) < 0 ||
		    json_get_str(j, "state", true, 32, &state, err) < 0)
			return -1;
	}
	if (a->json) {
		render_json(j);
	} else {
		cleanup_free char *shown = render_shown(state);

		(void)printf("job %" PRId64 ": %s\n", a->id, shown);
	}
	if (render_flush(err) < 0)
		return -1;
	/* a job that had ended in another way before was not cancelled */
	return str_eq(state, "cancelled") || (a->no_wait && str_eq(state, "cancelling"))
		       ? 0
		       : EXIT_FAILED;
}

/* ---- entries ---------------------------------------------------------------- */

static int connect_to(struct paths *p, struct client **c, struct err *err)
{
	return paths_resolve(p, err) < 0 ? -1 : client_new(p->api_sock, c, err);
}

static int finish(int r, const struct err *err, bool json)
{
	return r < 0 ? cmd_fail(err, json) : r;
}

int cmd_show(int argc, char **argv)
{
	static const struct argp_option options[] = {OPTION_JSON, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = jobs_parse,
		.children = when_option,
		.args_doc = "[JOB]",
		.doc = "Everything about one job, the last one when "
		       "none is named.\v"
		       "Examples:\n"
		       "  lych show\n"
		       "  lych show 2 --json"};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct jobs_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return finish(connect_to(&p, &c, &err) < 0 ? -1 : show(&a, c, &err), &err,
		      a.json);
}

int cmd_cancel(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"no-wait", 'w', NULL, 0, "do not wait until its processes are gone", 0},
		OPTION_JSON,
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = jobs_parse,
		.args_doc = "[JOB]",
		.doc = "End a job and wait until its whole process tree is "
		       "proved gone. Without a number: the last job, if it has not "
		       "ended.\v"
		       "Examples:\n"
		       "  lych cancel"};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct jobs_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return finish(connect_to(&p, &c, &err) < 0 ? -1 : cancel(&a, c, p.api_sock, &err),
		      &err, a.json);
}
