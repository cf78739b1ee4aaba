/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych retry, rm: what a person decides of jobs that have ended.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

#define JOBS_MAX 1024

struct acts_args {
	bool json;
	job_id_t ids[JOBS_MAX];
	size_t n;
};

struct act {
	const char *method, *suffix, *done;
};

static error_t acts_parse(int key, char *arg, struct argp_state *state)
{
	struct acts_args *a = state->input;
	struct err err = ERR_INIT;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->n == JOBS_MAX)
			cmd_usage(state, "at most %d jobs", JOBS_MAX);
		if (job_id_parse(arg, &a->ids[a->n], &err) < 0)
			cmd_usage(state, "%s", err.msg);
		a->n++;
		return 0;
	case ARGP_KEY_END:
		if (a->n == 0)
			cmd_usage(state, "say which jobs");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int act_on(struct client *c, const struct act *act, job_id_t id, bool as_json,
		  struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64 "%s", id, act->suffix);
	const struct client_request rq = {
		.method = act->method, .target = target, .timeout_ms = 30000};
	cleanup_json struct json *j = NULL;

	if (client_json(c, &rq, &j, NULL, err) < 0)
		return err_wrap(err, "job %" PRId64, id);
	if (as_json)
		render_json(j);
	else
		(void)printf("job %" PRId64 ": %s\n", id, act->done);
	return render_flush(err);
}

/* Each job by itself: one that is refused keeps none of the others from it. */
static int acts(int argc, char **argv, const struct argp *argp, const struct act *act)
{
	cleanup_free struct acts_args *a = xnew(struct acts_args);
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct err err = ERR_INIT;
	int code = 0;

	cmd_parse(argp, argc, argv, 0, a);
	if (paths_resolve(&p, &err) < 0 || client_new(p.api_sock, &c, &err) < 0)
		return cmd_fail(&err, a->json);
	for (size_t i = 0; i < a->n; i++) {
		struct err why = ERR_INIT;
		int failed;

		if (act_on(c, act, a->ids[i], a->json, &why) == 0)
			continue;
		failed = cmd_fail(&why, a->json);
		code = code ? code : failed;
	}
	return code;
}

static const struct argp_option options[] = {{"json", 'j', NULL, 0, "answer in JSON", 0},
					     {0}};

int cmd_retry(int argc, char **argv)
{
	static const struct act act = {"POST", "/retry", "queued"};
	static const struct argp argp = {
		.options = options,
		.parser = acts_parse,
		.args_doc = "JOB...",
		.doc = "Try a job again that failed, ran out of time, was lost or is "
		       "quarantined: the same job, a new attempt. Its result, artifacts "
		       "and output make place for the new ones.\v"
		       "Examples:\n"
		       "  lych retry 4"};

	return acts(argc, argv, &argp, &act);
}

int cmd_rm(int argc, char **argv)
{
	static const struct act act = {"DELETE", "", "removed"};
	static const struct argp argp = {
		.options = options,
		.parser = acts_parse,
		.args_doc = "JOB...",
		.doc = "Remove a job that has ended, with its output and artifacts. The "
		       "audit log keeps what it says of it.\v"
		       "Examples:\n"
		       "  lych rm 3"};

	return acts(argc, argv, &argp, &act);
}
