/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych prune: remove what ended long ago, each job as lych rm does. First all is looked at; what was
 * shown goes, and a job that was tried again meanwhile stays. How long ago is for the database to say,
 * which wrote down when each ended: this machine's clock may be another one, or have been moved.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/follow/job_end.h"
#include "cli/ui/prompt.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

#define PAGE 500
#define PRUNE_MAX 200000
#define ANSWER_MAX ((size_t)64 << 20)
#define OLDEST_MAX_USEC ((usec_t)36500 * 24 * 3600 * USEC_PER_SEC)

enum { KEY_OLDER = 256, KEY_DRY };

struct prune_args {
	const char *older_text;
	usec_t older_usec;
	bool has_state, dry, yes, json;
	enum job_state state;
};

struct old_job {
	job_id_t id;
	enum job_state state;
	usec_t finished;
	uint64_t bytes;
	enum { OLD_STAYS, OLD_GONE, OLD_CHANGED } then;
};

struct prune {
	const struct prune_args *a;
	struct client *client;
	struct old_job *job; /* the oldest last */
	size_t n, n_contained;
	uint64_t bytes;
};

/* ---- options ----------------------------------------------------------------- */

static void read_older(struct prune_args *a, char *arg, struct argp_state *state)
{
	struct err err = ERR_INIT;

	/* a number alone is seconds elsewhere: here somebody means days */
	if (!str_eq(arg, "0") && !arg[strspn(arg, "0123456789")])
		cmd_usage(state, "--older: '%s' has no unit (7d, 12h)", arg);
	if (parse_duration_usec(arg, 0, OLDEST_MAX_USEC, &a->older_usec, &err) < 0)
		cmd_usage(state, "--older: %s", err.msg);
	a->older_text = arg;
}

static error_t prune_parse(int key, char *arg, struct argp_state *state)
{
	struct prune_args *a = state->input;

	switch (key) {
	case KEY_OLDER:
		read_older(a, arg, state);
		return 0;
	case 's':
		if (!job_state_from_name(arg, &a->state) || !job_state_is_final(a->state))
			cmd_usage(state, "--state: '%s' is no state of a job that ended",
				  arg);
		if (a->state == JOB_QUARANTINED)
			cmd_usage(state,
				  "jobs in quarantine are evidence: 'lych rm' removes "
				  "the ones that you name");
		a->has_state = true;
		return 0;
	case KEY_DRY:
		a->dry = true;
		return 0;
	case 'y':
		a->yes = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		cmd_usage(state, "no arguments are expected: '%s'; 'lych rm' takes jobs",
			  arg);
	case ARGP_KEY_END:
		if (!a->older_text)
			cmd_usage(state, "--older is missing: how long ago a job must "
					 "have ended (--older 7d)");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- looking ----------------------------------------------------------------- */

/* What goes with a job: its output and artifacts. Of a blob that another job names as well
 * nothing is freed, so this is the most. */
static uint64_t bytes_of(const struct json *job)
{
	const struct json *result = NULL, *arr = NULL;
	uint64_t sum = 0, n = 0;

	if (json_is_null(job, "result") ||
	    json_get_obj(job, "result", true, &result, NULL) < 0)
		return 0;
	if (json_get_u64(result, "stdout_bytes", true, 0, INT64_MAX, &n, NULL) == 0)
		sum += n;
	if (json_get_u64(result, "stderr_bytes", true, 0, INT64_MAX, &n, NULL) == 0)
		sum += n;
	if (json_get_arr(result, "artifacts", true, ARTIFACTS_MAX, &arr, NULL) < 0)
		return sum;
	for (size_t i = 0; i < json_arr_len(arr); i++)
		if (json_get_u64(json_arr_at(arr, i), "size", true, 0, INT64_MAX, &n,
				 NULL) == 0 &&
		    n < UINT64_MAX - sum)
			sum += n;
	return sum;
}

static usec_t finished_of(const struct json *job)
{
	usec_t at;

	return when_parse(render_text_of(job, "finished_at"), &at) ? at : 0;
}

/* Takes a job of the list, of those that ended so long ago. */
static int consider(struct prune *p, const struct json *j, struct err *err)
{
	cleanup_json struct json *whole = NULL;
	struct old_job o = {.finished = finished_of(j)};
	struct err why = ERR_INIT;
	const char *state;

	if (json_get_i64(j, "id", true, 1, INT64_MAX, &o.id, err) < 0 ||
	    json_get_str(j, "state", true, 32, &state, err) < 0)
		return -1;
	if (!job_state_from_name(state, &o.state) || !job_state_is_final(o.state) ||
	    o.state == JOB_QUARANTINED || !o.finished)
		return 0;
	if (render_text_of(j, "taint")[0]) {
		p->n_contained++;
		return 0;
	}
	if (p->n == PRUNE_MAX)
		return 0; /* the next call has them */
	if (job_get(p->client, o.id, JOB_GET_MSEC, &whole, &why) < 0) {
		if (why.id == ERRID_RUN_NOT_FOUND)
			return 0; /* removed since it was listed */
		*err = why;
		return -1;
	}
	o.bytes = bytes_of(whole);
	p->bytes += o.bytes;
	p->job = xreallocarray(p->job, p->n + 1, sizeof(*p->job));
	p->job[p->n++] = o;
	return 0;
}

static int look(struct prune *p, struct err *err)
{
	/* an age that is no whole number of seconds is the next one */
	uint64_t older = (p->a->older_usec + USEC_PER_SEC - 1) / USEC_PER_SEC;
	job_id_t before = INT64_MAX;
	bool is_last = false;

	do {
		cleanup_free char *target = xasprintf(
			"/v1/jobs?limit=%d&before=%" PRId64 "&older=%" PRIu64 "%s%s",
			PAGE, before, older, p->a->has_state ? "&state=" : "",
			p->a->has_state ? job_state_name(p->a->state) : "");
		const struct client_request rq = {
			.method = "GET", .target = target, .timeout_ms = 30000};
		cleanup_json struct json *j = NULL;
		const struct json *arr = NULL;

		if (client_json(p->client, &rq, &j, NULL, err) < 0 ||
		    json_get_arr(j, "jobs", true, PAGE, &arr, err) < 0)
			return -1;
		for (size_t i = 0; i < json_arr_len(arr); i++)
			if (consider(p, json_arr_at(arr, i), err) < 0)
				return -1;
		is_last = json_has(j, "next") && json_is_null(j, "next");
		if (!is_last &&
		    json_get_i64(j, "next", true, 1, before - 1, &before, err) < 0)
			return -1;
	} while (!is_last);
	return 0;
}

/* ---- telling ----------------------------------------------------------------- */

static void tell_sum(const struct prune *p, FILE *to)
{
	size_t by_state[JOB_STATE_MAX_] = {0};
	const char *sep = "";
	char size[32];

	for (size_t i = 0; i < p->n; i++)
		by_state[p->job[i].state]++;
	render_size(size, p->bytes);
	(void)fprintf(to, "%zu jobs that ended %s ago or earlier", p->n,
		      p->a->older_text);
	for (enum job_state s = 0; p->n && s < JOB_STATE_MAX_; s++) {
		if (!by_state[s])
			continue;
		(void)fprintf(to, "%s%zu %s", *sep ? sep : " (", by_state[s],
			      job_state_name(s));
		sep = ", ";
	}
	(void)fprintf(to, "%s, with at most %s of output and artifacts\n",
		      p->n ? ")" : "", size);
	if (p->n_contained)
		(void)fprintf(to, "%zu were contained and stay\n", p->n_contained);
}

static void print_table(const struct prune *p)
{
	static const char *const head[] = {"ID", "STATE", "ENDED", "SIZE"};
	struct table t;

	table_init(&t, ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; i < p->n; i++) {
		cleanup_free char *id = xasprintf("%" PRId64, p->job[i].id);
		char when[WHEN_SIZE], size[32];

		when_text(p->job[i].finished, when);
		render_size(size, p->job[i].bytes);
		table_cell(&t, id);
		table_cell(&t, job_state_name(p->job[i].state));
		table_cell(&t, when);
		table_cell(&t, size);
	}
	table_print(&t, true);
	table_done(&t);
}

static void print_json(const struct prune *p)
{
	static const char *const then[] = {
		[OLD_STAYS] = "stays", [OLD_GONE] = "removed", [OLD_CHANGED] = "changed"};
	cleanup_buf struct buf out = {0};
	struct jsonw w;

	buf_init(&out, ANSWER_MAX);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_kbool(&w, "dry_run", p->a->dry);
	jsonw_ku64(&w, "bytes", p->bytes);
	jsonw_ku64(&w, "contained", p->n_contained);
	jsonw_key(&w, "jobs");
	jsonw_arr(&w);
	for (size_t i = 0; i < p->n; i++) {
		jsonw_obj(&w);
		jsonw_ki64(&w, "id", p->job[i].id);
		jsonw_kstr(&w, "state", job_state_name(p->job[i].state));
		jsonw_ku64(&w, "bytes", p->job[i].bytes);
		jsonw_kstr(&w, "then", then[p->job[i].then]);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&out));
}

/* ---- removing ---------------------------------------------------------------- */

/* Gone by another hand, or tried again: either is no failure. */
static int remove_one(struct prune *p, struct old_job *o, struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64, o->id);
	const struct client_request rq = {
		.method = "DELETE", .target = target, .timeout_ms = 30000};
	cleanup_json struct json *now = NULL, *answer = NULL;
	struct err why = ERR_INIT;

	o->then = OLD_CHANGED;
	if (job_get(p->client, o->id, JOB_GET_MSEC, &now, &why) == 0 &&
	    finished_of(now) != o->finished)
		return 0;
	if (why.code == ERR_NONE && client_json(p->client, &rq, &answer, NULL, &why) == 0)
		o->then = OLD_GONE;
	if (why.code == ERR_NONE || why.id == ERRID_RUN_NOT_FOUND ||
	    why.id == ERRID_RUN_STATE || why.id == ERRID_RUN_TAINTED)
		return 0;
	o->then = OLD_STAYS;
	*err = why;
	return err_wrap(err, "job %" PRId64, o->id);
}

/* The oldest first. */
static int remove_all(struct prune *p, struct err *err)
{
	size_t gone = 0, changed = 0;
	int r = 0;

	for (size_t i = p->n; r == 0 && i-- > 0;) {
		r = remove_one(p, &p->job[i], err);
		gone += p->job[i].then == OLD_GONE;
		changed += p->job[i].then == OLD_CHANGED;
	}
	if (p->a->json) {
		print_json(p);
		return r;
	}
	(void)printf("%zu jobs removed\n", gone);
	if (changed)
		(void)printf(
			"%zu were removed or tried again by somebody else meanwhile\n",
			changed);
	return r;
}

static int prune(struct prune *p, struct err *err)
{
	bool yes = p->a->yes;

	if (look(p, err) < 0)
		return -1;
	if (p->a->json && (p->a->dry || p->n == 0)) {
		print_json(p);
		return 0;
	}
	if (p->a->dry)
		print_table(p);
	if (!p->a->json || !yes)
		tell_sum(p, p->a->json ? stderr : stdout);
	if (p->a->dry || p->n == 0)
		return 0;
	if (render_flush(err) < 0 ||
	    (!yes && prompt_yes("Remove them for good?", &yes, err) < 0))
		return -1;
	return yes ? remove_all(p, err)
		   : err_set_id(err, ERRID_CORE_UNCONFIRMED,
				"the answer was not yes: nothing was removed");
}

int cmd_prune(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"older", KEY_OLDER, "TIME", 0, "that ended so long ago: 7d, 12h", 0},
		{"state", 's', "ENDED", 0, "only jobs in this state", 0},
		{"dry-run", KEY_DRY, NULL, 0, "name them, and remove nothing", 0},
		{"yes", 'y', NULL, 0, "do not ask", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = prune_parse,
		.children = when_option,
		.doc = "Remove jobs that ended long ago, with their inputs, output and "
		       "artifacts.\vEach goes as with 'lych rm', and the audit log has "
		       "it. "
		       "Jobs that have not ended, are in quarantine or were contained "
		       "stay. On a terminal you are asked; elsewhere nothing is removed "
		       "without --yes. retention in codex.yaml does the same by "
		       "itself.\n\n"
		       "Examples:\n"
		       "  lych prune --older 7d --dry-run\n"
		       "  lych prune --older 12h --state failed --yes"};
	cleanup_paths struct paths paths = {0};
	cleanup_client struct client *c = NULL;
	struct prune_args a = {0};
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (!a.dry && !a.yes && !prompt_can_ask()) {
		(void)err_set_id(&err, ERRID_CORE_NOBODY,
				 "nobody can be asked here: --yes removes, --dry-run "
				 "only names");
		return cmd_fail(&err, a.json);
	}
	if (paths_resolve(&paths, &err) < 0 || client_new(paths.api_sock, &c, &err) < 0)
		return cmd_fail(&err, a.json);
	struct prune p = {.a = &a, .client = c};
	r = prune(&p, &err);
	free(p.job);
	return cmd_end(r, &err, a.json);
}
