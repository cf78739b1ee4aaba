/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych contain: a job is compromised, and one command is enough. What is done is the vessel's, whoever waits for it here.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MSEC 50
#define TELL_USEC USEC_PER_SEC
/* A vessel that is started anew meanwhile goes on with it. */
#define AWAY_USEC (60 * USEC_PER_SEC)
#define STEPS_MAX 16
#define BODY_MAX_BYTES 8192

struct contain_args {
	const char *reason;
	bool json, no_wait;
	job_id_t id;
};

static error_t contain_parse(int key, char *arg, struct argp_state *state)
{
	struct contain_args *a = state->input;

	switch (key) {
	case 'r':
		a->reason = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 'w':
		a->no_wait = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_job(&a->id, arg, state);
	case ARGP_KEY_END:
		if (a->id == 0)
			cmd_usage(state, "say which job");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What a step is called for people, and what it waits for. */
static const struct step_words {
	const char *step, *done, *waits;
} words[] = {
	{"lease_revoked", "its lease is revoked", "its lease to be revoked"},
	{"broker_closed", "the broker is closed to it",
	 "its requests under way to be cut"},
	{"tree_dead", "its processes are dead",
	 "its worker's word that its processes are dead, or the end of its lease"},
	{"evidence_sealed", "the evidence is sealed", "the evidence to be sealed"},
	{"logged", "the audit log has all of it", "the audit log"},
};

static const struct step_words *words_of(const char *step)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(words[i].step, step))
			return &words[i];
	return NULL;
}

static int ask_contain(struct client *c, const struct contain_args *a, bool *ret_new,
		       struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64 "/contain", a->id);
	cleanup_json struct json *answer = NULL;
	cleanup_buf struct buf body = {.max = BODY_MAX_BYTES};
	struct client_request rq = {
		.method = "POST", .target = target, .timeout_ms = 30000};
	struct jsonw w;

	if (a->reason) {
		jsonw_init(&w, &body);
		jsonw_obj(&w);
		jsonw_kstr(&w, "reason", a->reason);
		jsonw_obj_end(&w);
		if (!buf_ok(&body))
			return err_set_id(err, ERRID_SPEC_RANGE, "reason: too long");
		rq.body = body.data;
		rq.body_len = body.len;
	}
	if (client_json(c, &rq, &answer, NULL, err) < 0 ||
	    json_get_bool(answer, "new", true, ret_new, err) < 0)
		return err_wrap(err, "job %" PRId64, a->id);
	return 0;
}

static int look(const char *socket, job_id_t id, struct json **ret, bool *ret_done,
		struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64 "/containment", id);
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = 10000};
	cleanup_client struct client *c = NULL;

	if (client_new(socket, &c, err) < 0 || client_json(c, &rq, ret, NULL, err) < 0)
		return -1;
	return json_get_bool(*ret, "done", true, ret_done, err);
}

/* The first step that has not been taken yet; NULL: all were. */
static const char *waits_for(const struct json *j)
{
	const struct json *steps = NULL;

	if (json_get_arr(j, "steps", true, STEPS_MAX, &steps, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < json_arr_len(steps); i++) {
		const struct json *one = json_arr_at(steps, i);
		const struct step_words *is = words_of(render_text_of(one, "step"));

		if (is && json_is_null(one, "ms"))
			return is->waits;
	}
	return NULL;
}

static void tell_wait(const struct json *j, const char **told)
{
	const char *what = waits_for(j);

	if (!what || what == *told)
		return;
	*told = what;
	(void)fprintf(stderr, "lych: waiting for %s\n", what);
}

static int wait_done(const struct contain_args *a, const char *socket, struct json **ret,
		     struct err *err)
{
	const struct timespec pause = {.tv_nsec = LOOK_MSEC * 1000000L};
	usec_t began = clock_boot_usec(), heard = began;
	const char *told = NULL;

	for (;;) {
		cleanup_json struct json *j = NULL;
		bool is_done = false;
		usec_t now;

		err_clear(err);
		if (look(socket, a->id, &j, &is_done, err) < 0) {
			now = clock_boot_usec();
			if (err->code != ERR_UNAVAILABLE || now - heard > AWAY_USEC)
				return err_wrap(err, "it is contained; how far that is "
						     "could not be learned");
		} else {
			heard = now = clock_boot_usec();
			if (is_done || a->no_wait) {
				*ret = TAKE_PTR(j);
				return 0;
			}
			if (now - began >= TELL_USEC)
				tell_wait(j, &told);
		}
		(void)nanosleep(&pause, NULL);
	}
}

static void print_step(const struct json *j, const struct json *one)
{
	const struct step_words *is = words_of(render_text_of(one, "step"));
	const char *by = render_text_of(j, "tree_dead_by");

	if (!is)
		return;
	if (json_is_null(one, "ms")) {
		(void)printf("  %-30s not yet\n", is->done);
		return;
	}
	(void)printf("  %-30s %6" PRIu64 " ms%s\n", is->done, render_number_of(one, "ms"),
		     !str_eq(is->step, "tree_dead") ? ""
		     : str_eq(by, "worker")	    ? "  its worker has seen to it"
		     : str_eq(by, "lease")
			     ? "  by the end of its lease: its worker said nothing"
			     : "  none ran");
}

static void print(const struct contain_args *a, const struct json *j, bool is_new)
{
	cleanup_free char *reason = render_shown(render_text_of(j, "reason"));
	const struct json *steps = NULL;

	(void)printf("job %" PRId64 ": %s: %s\n", a->id,
		     is_new ? "contained" : "was contained before", reason);
	if (json_get_arr(j, "steps", true, STEPS_MAX, &steps, NULL) < 0)
		return;
	for (size_t i = 0; i < json_arr_len(steps); i++)
		print_step(j, json_arr_at(steps, i));
	if (*render_text_of(j, "evidence_sha256"))
		(void)printf("  evidence sha256:%s\n",
			     render_text_of(j, "evidence_sha256"));
	(void)printf(
		"Nothing of it runs, is tried again, fetched or removed any more. "
		"What it saw may be known: 'lych secret rotate' what it could use.\n");
}

static int contain(const struct contain_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;
	bool is_new = false;

	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0 ||
	    ask_contain(c, a, &is_new, err) < 0 || wait_done(a, p.api_sock, &j, err) < 0)
		return -1;
	if (a->json)
		render_json(j);
	else
		print(a, j, is_new);
	return render_flush(err);
}

int cmd_contain(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"reason", 'r', "TEXT", 0,
		 "why, in one line: the log and the job keep it", 0},
		{"no-wait", 'w', NULL, 0, "do not wait until all of it is done", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = contain_parse,
		.args_doc = "JOB",
		.doc = "A job attacks, or may: end it at once, refuse it everything, "
		       "keep it as evidence, and let nothing of it run again. A job "
		       "that has ended is contained too. Waits until its processes are "
		       "dead and the audit log has the digest of the evidence.\v"
		       "Examples:\n"
		       "  lych contain --reason 'it reads what is not its own' 1"};
	struct contain_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return contain(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
