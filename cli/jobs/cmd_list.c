/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych jobs: what ran, how it ended, how long it took; with --watch as it changes.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/jobs/job_line.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

#define LIST_MAX 500
#define LIST_DEFAULT 50
/* Of a screen: the head of the table, and the line on which the cursor stands. */
#define ROWS_BESIDE 2
#define CLEAR "\x1b[H\x1b[2J"

struct list_args {
	bool json, watch;
	const char *state;
	uint64_t limit, before;
};

static error_t list_parse(int key, char *arg, struct argp_state *state)
{
	struct list_args *a = state->input;
	struct err err = ERR_INIT;
	enum job_state js;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'w':
		a->watch = true;
		return 0;
	case 's':
		if (!job_state_from_name(arg, &js))
			cmd_usage(state, "no state '%s'", arg);
		a->state = arg;
		return 0;
	case 'n':
		if (parse_u64(arg, 1, LIST_MAX, &a->limit, &err) < 0)
			cmd_usage(state, "--limit: %s", err.msg);
		return 0;
	case 'b':
		if (parse_u64(arg, 1, INT64_MAX, &a->before, &err) < 0)
			cmd_usage(state, "--before: %s", err.msg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int list_get(const struct list_args *a, uint64_t limit, struct client *c,
		    struct json **ret, const struct json **ret_jobs, struct err *err)
{
	cleanup_buf struct buf target = {0};
	struct client_request rq = {.method = "GET", .timeout_ms = 30000};

	buf_init(&target, 1024);
	buf_addf(&target, "/v1/jobs?limit=%" PRIu64, limit);
	if (a->state)
		buf_addf(&target, "&state=%s", a->state);
	if (a->before)
		buf_addf(&target, "&before=%" PRIu64, a->before);
	rq.target = buf_str(&target);
	if (client_json(c, &rq, ret, NULL, err) < 0 ||
	    json_get_arr(*ret, "jobs", true, LIST_MAX, ret_jobs, err) < 0)
		return -1;
	return 0;
}

/* ---- the table ------------------------------------------------------------- */

static void add_row(struct table *t, const struct job_line *l)
{
	cleanup_free char *id = xasprintf("%" PRId64, l->id);
	char span[WHEN_SPAN_SIZE] = "-", age[WHEN_SPAN_SIZE] = "-";
	usec_t now = clock_wall_usec();

	if (l->started)
		when_span(l->started, l->finished ? l->finished : now, span);
	if (l->created)
		when_span(l->created, now, age);
	table_cell(t, id);
	table_cell(t, l->state);
	table_cell(t, l->end);
	table_cell(t, span);
	table_cell(t, age);
	table_cell_whole(t, l->command);
}

static int print_table(const struct json *jobs, struct client *c, struct job_lines *known,
		       struct err *err)
{
	static const char *const head[] = {"ID",       "STATE", "EXIT",
					   "DURATION", "AGE",	"COMMAND"};
	struct table t;
	int r = 0;

	table_init(&t, ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		table_cell(&t, head[i]);
	for (size_t i = 0; r == 0 && i < json_arr_len(jobs); i++) {
		const struct job_line *l = NULL;

		r = job_lines_take(known, c, json_arr_at(jobs, i), &l, NULL, err);
		if (r == 0)
			add_row(&t, l);
	}
	if (r == 0)
		table_print(&t, true);
	table_done(&t);
	return r < 0 ? -1 : render_flush(err);
}

/* ---- watching -------------------------------------------------------------- */

struct watched {
	struct job_lines known;
	uint64_t newest; /* job so far */
};

/* An older job that nobody knows came into the list only because another was removed: no change of its
 * own. With --state it may be one. */
static bool is_in_view_again(const struct list_args *a, const struct watched *w,
			     uint64_t id)
{
	return !a->state && id <= w->newest && !job_lines_know(&w->known, (job_id_t)id);
}

/* For no screen: a line for each job that is new or in another state, the oldest first. */
static int print_changes(const struct list_args *a, const struct json *jobs,
			 struct client *c, struct watched *w, struct err *err)
{
	for (size_t i = json_arr_len(jobs); i-- > 0;) {
		const struct json *job = json_arr_at(jobs, i);
		const struct job_line *l = NULL;
		char now[WHEN_SIZE];
		bool changed;

		uint64_t id = render_number_of(job, "id");
		bool again = is_in_view_again(a, w, id);

		if (job_lines_take(&w->known, c, job, &l, &changed, err) < 0)
			return -1;
		if (id > w->newest)
			w->newest = id;
		if (!changed || again)
			continue;
		if (a->json) {
			render_json(job);
			continue;
		}
		cleanup_free char *state = render_shown(l->state);
		cleanup_free char *command = render_shown(l->command);

		when_text(clock_wall_usec(), now);
		cleanup_free char *line = xasprintf("%s  %" PRId64 "  %s  %s  %s", now,
						    l->id, state, l->end, command);
		cleanup_free char *fit = render_fit(line, STDOUT_FILENO);

		(void)puts(fit);
	}
	return render_flush(err);
}

static uint64_t watch_limit(const struct list_args *a, bool has_screen)
{
	uint64_t most = a->limit ? a->limit : LIST_DEFAULT;
	size_t rows = has_screen ? render_rows(STDOUT_FILENO) : 0;

	if (!has_screen)
		return most;
	if (rows <= ROWS_BESIDE)
		return 1;
	return rows - ROWS_BESIDE < most ? rows - ROWS_BESIDE : most;
}

/* Until it is interrupted, or the vessel is away. */
static int watch(const struct list_args *a, struct client *c, struct watched *w,
		 struct err *err)
{
	const struct timespec second = {.tv_sec = 1};
	bool has_screen = !a->json && render_has_cursor(STDOUT_FILENO);

	for (;;) {
		cleanup_json struct json *j = NULL;
		const struct json *jobs = NULL;
		int r;

		if (render_is_read(err) < 0 ||
		    list_get(a, watch_limit(a, has_screen), c, &j, &jobs, err) < 0)
			return -1;
		if (has_screen) {
			(void)fputs(CLEAR, stdout);
			r = print_table(jobs, c, &w->known, err);
		} else {
			r = print_changes(a, jobs, c, w, err);
		}
		if (r < 0)
			return -1;
		job_lines_age(&w->known);
		(void)nanosleep(&second, NULL);
	}
}

/* ---- the command ------------------------------------------------------------ */

static int list(const struct list_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_job_lines struct job_lines known = {0};
	cleanup_json struct json *j = NULL;
	const struct json *jobs = NULL;

	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0)
		return -1;
	if (a->watch) {
		struct watched w = {0};
		int r = watch(a, c, &w, err);

		job_lines_done(&w.known);
		return r;
	}
	if (list_get(a, a->limit ? a->limit : LIST_DEFAULT, c, &j, &jobs, err) < 0)
		return -1;
	if (a->json) {
		render_json(j);
		return render_flush(err);
	}
	return pager_begin(err) < 0 ? -1 : print_table(jobs, c, &known, err);
}

int cmd_jobs(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"state", 's', "STATE", 0, "only jobs in this state", 0},
		{"limit", 'n', "N", 0, "at most this many (50)", 0},
		{"before", 'b', "ID", 0, "only jobs older than this one", 0},
		{"watch", 'w', NULL, 0,
		 "go on: on a terminal the list as it is each second, else a line for "
		 "each "
		 "change; with --json an object a line",
		 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = list_parse,
		.children = when_option,
		.doc = "List jobs, newest first.\vEXIT is the program's own code, or the "
		       "signal or limit that ended it; DURATION is since it first began, "
		       "AGE since it was submitted.\n\n"
		       "Examples:\n"
		       "  lych jobs --limit 5\n"
		       "  lych jobs --state running --json"};
	struct list_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return list(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
