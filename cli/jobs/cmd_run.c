/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych run: from options to a job, submit, follow, exit as the job did.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/follow/follow.h"
#include "cli/follow/job_end.h"
#include "cli/jobs/artifacts.h"
#include "cli/jobs/run_options.h"
#include "cli/jobs/run_slips.h"
#include "cli/jobs/run_spec.h"
#include "cli/jobs/run_summary.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>
#include <signal.h>

enum {
	KEY_REQUEST_ID = RUN_KEY_MAX_,
	KEY_NETWORK,
	KEY_EGRESS,
	KEY_DEP,
	KEY_PRIORITY,
	KEY_RETRY,
	KEY_FORCE,
	KEY_EXPLAIN,
	KEY_SUMMARY,
	KEY_TTY,
};

static const struct argp_option run_options[] = {
	RUN_INPUT_OPTIONS,
	{"env", 'e', "K[=V]", 0, "set a variable of the job; K: as it is here", 0},
	RUN_LIMIT_OPTIONS,
	{"artifact", 'a', "GLOB", 0, "collect these files afterwards", 0},
	{"out", 'o', "DIR", 0, "fetch the artifacts into this directory", 0},
	{"force", KEY_FORCE, NULL, 0, "let --out overwrite files", 0},
	{"request-id", KEY_REQUEST_ID, "ID", 0, "the same id and content is the same job",
	 0},
	{"network", KEY_NETWORK, "loopback|none", 0,
	 "a loopback of its own, or none at all", 0},
	{"egress", KEY_EGRESS, "none|brokered|registry", 0,
	 "ask models and URLs that the ward allows; package mirrors too", 0},
	{"dep", KEY_DEP, "KIND:NAME|npm-lock|cargo-lock|go-sum", 0,
	 "install a package before it begins (more than once): pypi:six==1.16.0, "
	 "npm:left-pad@1.3.0, cargo:serde@1.0, go:example.org/m@v1.2.3, or what "
	 "package-lock.json, Cargo.lock or go.sum says",
	 0},
	{"priority", KEY_PRIORITY, "0..100", 0, "larger is earlier (50)", 0},
	{"retry", KEY_RETRY, "on_lost|never", 0,
	 "when its worker is lost; on_lost: all of stdin is read first", 0},
	{"explain", KEY_EXPLAIN, NULL, 0,
	 "record refused files and connections too, for 'lych why'", 0},
	{"tty", KEY_TTY, NULL, 0,
	 "at a terminal: one of its own, shown to you through a filter; with --detach "
	 "one that "
	 "'lych attach' shows",
	 0},
	{"no-stdin", 'n', NULL, 0, "leave stdin alone", 0},
	{"detach", 'd', NULL, 0, "print the job's id and return", 0},
	{"json", 'j', NULL, 0, "one JSON object a line: state, output, end", 0},
	{"summary", KEY_SUMMARY, NULL, 0, "with --json: one object at the end", 0},
	{0},
};

static const char run_doc[] =
	"Run ARGV in a sandbox and wait for it.\v"
	"stdin goes in when it is not a terminal; one that does not end at once is "
	"passed on while the job runs, which then is not run again. Ctrl-C cancels "
	"the job. The exit code is the "
	"job's own; 128+N after a signal, 124 after a time-out, 78 "
	"when no sandbox could be "
	"established, 4 when the worker was lost, 127 when there is "
	"no such command, 126 when it could not be executed.\n\n"
	"Examples:\n"
	"  echo 20 22 | lych run -- awk '{print $1+$2}'\n"
	"  lych run --dir ./src --artifact 'out/**' --out ./got -- make\n"
	"  lych run --timeout 1m30s --memory 512m --file x.py -- python3 x.py\n"
	"  lych run --explain -- cat /srv/data\n"
	"  lych run --tty --timeout 2h --dir . -- bash\n"
	"  lych run --egress brokered -- lych-ask 'Name three rivers.'\n"
	"  lych run --detach -- sleep 600";

static void dependency(struct argp_state *state, struct run_args *a, const char *arg)
{
	const struct {
		const char *prefix;
		const char **list;
		size_t *n;
	} kinds[] = {{"pypi:", a->deps.pypi, &a->deps.n_pypi},
		     {"npm:", a->deps.npm, &a->deps.n_npm},
		     {"cargo:", a->deps.cargo, &a->deps.n_cargo},
		     {"go:", a->deps.go, &a->deps.n_go}};
	const struct {
		const char *name;
		bool *wanted;
	} locks[] = {{"npm-lock", &a->deps.npm_lock},
		     {"cargo-lock", &a->deps.cargo_lock},
		     {"go-sum", &a->deps.go_sum}};

	for (size_t i = 0; i < ARRAY_SIZE(locks); i++)
		if (str_eq(arg, locks[i].name)) {
			*locks[i].wanted = true;
			return;
		}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_starts(arg, kinds[i].prefix)) {
			run_options_add(state, kinds[i].list, kinds[i].n, DEPS_MAX,
					arg + strlen(kinds[i].prefix));
			return;
		}
	cmd_usage(state,
		  "--dep %s: pypi:NAME, npm:NAME, cargo:NAME, go:NAME@VERSION, npm-lock, "
		  "cargo-lock or go-sum",
		  arg);
}

/* What takes no argument; false: it is another option. */
static bool parse_flag(struct run_args *a, int key)
{
	switch (key) {
	case 'n':
		a->no_stdin = true;
		return true;
	case 'd':
		a->detach = true;
		return true;
	case 'j':
		a->json = true;
		return true;
	case KEY_FORCE:
		a->force = true;
		return true;
	case KEY_EXPLAIN:
		a->explain = true;
		return true;
	case KEY_SUMMARY:
		a->summary = true;
		return true;
	case KEY_TTY:
		a->tty = true;
		return true;
	default:
		return false;
	}
}

/* Nobody would be at it, or it would be somebody else's bytes. */
static void check_terminal(const struct argp_state *state, const struct run_args *a)
{
	const char *other = a->json && !a->detach ? "--json"
			    : a->no_stdin	  ? "--no-stdin"
			    : a->request_id	  ? "--request-id"
						  : NULL;

	if (a->tty && other)
		cmd_usage(state, "--tty does not go with %s", other);
}

/* What goes with what. */
static void check_together(const struct argp_state *state, const struct run_args *a)
{
	if (a->summary && !a->json)
		cmd_usage(state, "--summary goes with --json");
	if (a->summary && a->detach)
		cmd_usage(state, "--summary does not go with --detach, which does not "
				 "wait for the end: 'lych show --json' has it");
	if (a->out && !a->n_artifacts)
		cmd_usage(state, "--out goes with --artifact");
	run_options_check(state, a);
	if (a->out && a->detach)
		cmd_usage(state, "--out does not go with --detach, which waits "
				 "for no artifacts: when the job has ended, "
				 "'lych artifacts -o DIR JOB' fetches them");
}

static error_t run_parse(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;
	struct err err = ERR_INIT;

	if (run_options_parse(state, a, key, arg) || parse_flag(a, key))
		return 0;
	switch (key) {
	case KEY_PRIORITY:
		run_options_number(state, parse_u64(arg, 0, 100, &a->priority, &err),
				   &err, "--priority");
		a->has_priority = true;
		return 0;
	case 'e':
		run_options_add(state, a->env, &a->n_env, ENV_MAX, arg);
		return 0;
	case 'a':
		run_options_add(state, a->artifacts, &a->n_artifacts,
				ARRAY_SIZE(a->artifacts), arg);
		return 0;
	case 'o':
		if (a->out)
			cmd_usage(state, "--out is given twice: %s and %s", a->out, arg);
		a->out = arg;
		return 0;
	case KEY_REQUEST_ID:
		a->request_id = arg;
		return 0;
	case KEY_NETWORK:
		a->network = arg;
		return 0;
	case KEY_EGRESS:
		a->egress = arg;
		return 0;
	case KEY_DEP:
		dependency(state, a, arg);
		return 0;
	case KEY_RETRY:
		a->retry = arg;
		return 0;
	case ARGP_KEY_ARGS:
		a->argv = state->argv + state->next;
		a->argc = state->argc - state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		cmd_usage(state, "no command; lych run [OPTION...] -- ARGV...");
	case ARGP_KEY_END:
		check_terminal(state, a);
		check_together(state, a);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp run_argp = {.options = run_options,
				     .parser = run_parse,
				     .args_doc = "-- ARGV...",
				     .doc = run_doc};

/* ---- the run ---------------------------------------------------------------- */

static void tell_not_fetched(const struct json *job, const char *key)
{
	const struct json *result, *arr;
	struct err none = ERR_INIT;
	char total_key[64];
	uint64_t total = 0;

	if (json_is_null(job, "result") ||
	    json_get_obj(job, "result", true, &result, &none) < 0 ||
	    json_get_arr(result, key, true, 1 << 20, &arr, &none) < 0 ||
	    str_fmt(total_key, sizeof(total_key), "%s_total", key) < 0 ||
	    json_get_u64(result, total_key, false, 0, INT64_MAX, &total, &none) < 0)
		return;
	for (size_t i = 0; i < json_arr_len(arr); i++) {
		const struct json *v = json_arr_at(arr, i);
		const char *path, *why;

		if (json_get_str(v, "path", true, 8192, &path, &none) == 0 &&
		    json_get_str(v, "why", true, 8192, &why, &none) == 0) {
			cleanup_free char *text =
				xasprintf("not fetched: %s: %s", path, why);

			cmd_tell(ERRID_NONE, text);
		}
	}
	if (total > json_arr_len(arr)) {
		cleanup_free char *text = xasprintf("not fetched: %" PRIu64 " more",
						    total - json_arr_len(arr));

		cmd_tell(ERRID_NONE, text);
	}
}

/* The job's own failure is worth more than that of bringing its artifacts out. */
static int bring_out(const struct run_args *a, struct client *c, const struct follow *f,
		     int code, struct err *err)
{
	if (!a->json) {
		tell_not_fetched(f->job, "refused_artifacts");
		tell_not_fetched(f->job, "quarantined");
	}
	if (artifacts_fetch(c, f->id, a->out,
			    (a->force ? ARTIFACTS_FORCE : 0u) |
				    (a->json ? ARTIFACTS_QUIET : 0u),
			    err) == 0)
		return code;
	(void)err_wrap(err,
		       "job %" PRId64 " has ended and its artifacts are kept, 'lych "
		       "artifacts -o DIR %" PRId64 "'",
		       f->id, f->id);
	if (code == 0)
		return -1;
	(void)cmd_fail(err, a->json);
	return code;
}

static void tell_end(const struct job_end *end, job_id_t id)
{
	cleanup_free char *more = NULL;

	job_end_explain(end, id);
	if (end->state == JOB_SUCCEEDED || end->denials == 0)
		return;
	more = xasprintf("denials of its walls: %zu; see 'lych why %" PRId64 "'",
			 end->denials, id);
	cmd_tell(ERRID_NONE, more);
}

/* A lost job is tried again by now, or was too often; why this one never is, nobody else tells. */
static void tell_streamed(const struct job_end *end, job_id_t id)
{
	cleanup_free char *text = xasprintf("job %" PRId64, id);

	if (end->state == JOB_LOST)
		cmd_tell(ERRID_RUN_STREAMED, text);
}

static int tell_accepted(const struct run_args *a, const struct json *job, job_id_t id,
			 struct err *err)
{
	if (a->json)
		render_json(job);
	else
		(void)printf("%" PRId64 "\n", id);
	return render_flush(err);
}

/* 0: the job has ended, *ret_end says how; else what to exit with, or -1. */
static int follow_to_end(struct follow *f, struct job_end *ret_end, struct err *err)
{
	int r = follow_job(f, err);

	/* nobody reads its output any more: as in a pipeline of the shell, that ends it */
	if (r < 0 && err->id == ERRID_CORE_OUTPUT && err->sys == EPIPE)
		return follow_cancel(f, err) < 0 ? -1 : 128 + SIGPIPE;
	if (r < 0)
		return f->job ? -1
			      : err_wrap(err,
					 "job %" PRId64
					 " is followed no more and will be "
					 "cancelled; 'lych logs -f %" PRId64 "'",
					 f->id, f->id);
	return f->job ? job_end_read(f->job, ret_end, err) : 128 + f->stopped_by;
}

static int run_attended(const struct run_args *a, struct client *c, const char *socket,
			struct feed *feed, job_id_t id, struct err *err)
{
	cleanup_buf struct buf out = {.max = RUN_SUMMARY_MAX_BYTES},
			       errs = {.max = RUN_SUMMARY_MAX_BYTES};
	struct buf *const kept[2] = {&out, &errs};
	struct job_end end = {0};
	struct follow f;
	int r;

	if (follow_init(&f, c, socket, err) < 0)
		return -1;
	f.id = id;
	f.json = a->json && !a->summary;
	f.keep = a->summary ? kept : NULL;
	f.cancels = true;
	f.feed = feed->name[0] ? feed : NULL;
	r = f.feed ? feed_open(feed, socket, id, err) : 0;
	if (r == 0 && feed->tty)
		r = follow_at_terminal(&f, feed, err);
	if (r == 0)
		r = follow_to_end(&f, &end, err);
	if (r == 0) {
		r = job_end_exit_code(&end);
		if (!a->json) {
			tell_end(&end, id);
			run_slips_tell(a, f.job, &end);
		}
		if (f.feed)
			tell_streamed(&end, id);
		if (a->summary && run_summary_put(&f, r, err) < 0)
			r = -1;
		if (a->out && r >= 0)
			r = bring_out(a, c, &f, r, err);
	}
	follow_done(&f);
	return r;
}

static int run(const struct run_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *job = NULL;
	cleanup_buf struct buf spec = {0};
	cleanup_feed struct feed feed;
	cleanup_close int place = -1;
	struct tty tty = TTY_NONE;
	job_id_t id;

	feed_init(&feed);
	if (a->tty && !a->detach && tty_open(&tty, err) < 0)
		return -1;
	if (a->tty)
		feed_at(&feed, a->detach ? NULL : &tty);
	if (a->out) {
		place = artifacts_open_place(a->out, err);
		if (place < 0)
			return -1;
	}
	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0)
		return -1;
	buf_init(&spec, SPEC_MAX_BYTES);
	if (run_spec_build(c, a, &feed, &spec, err) < 0)
		return -1;
	/* Until it is followed an interrupt ends this program: an attended job whose client is
	 * gone is cancelled by the vessel. */
	if (run_submit(c, &spec, a, &job, &id, err) < 0)
		return -1;
	return a->detach ? tell_accepted(a, job, id, err)
			 : run_attended(a, c, p.api_sock, &feed, id, err);
}

int cmd_run(int argc, char **argv)
{
	struct run_args a = {0};
	struct err err = ERR_INIT;
	struct uuid made;
	int r;

	cmd_parse(&run_argp, argc, argv, ARGP_IN_ORDER, &a);
	/* Ours, so that an answer that got lost can be asked for again. */
	a.names_request = a.request_id != NULL;
	if (!a.request_id) {
		uuid_new(&random_real, &made);
		a.request_id = made.s;
	}
	r = run(&a, &err);
	return r < 0 ? cmd_fail(&err, a.json) : r;
}
