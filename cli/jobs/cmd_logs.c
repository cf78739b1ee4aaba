/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych logs: a job's output, both streams as they came; its end; what follows.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/follow/follow.h"
#include "cli/follow/follow_words.h"
#include "cli/follow/job_end.h"
#include "cli/jobs/last_job.h"
#include "cli/jobs/log_order.h"
#include "cli/ui/log_filter.h"
#include "cli/ui/pager.h"
#include "cli/ui/render.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

enum { KEY_SINCE = 256, KEY_TAINTED };

struct logs_args {
	bool json, follow, has_tail, has_since, tainted;
	const char *stream, *since_text;
	uint64_t tail;
	usec_t since;
	job_id_t id;
};

/* Together, since --utc may stand behind --since. */
static void check_together(struct argp_state *state, struct logs_args *a)
{
	struct err err = ERR_INIT;

	if (a->json && !a->follow)
		cmd_usage(state, "--json goes with --follow");
	if (a->json && (a->has_tail || a->since_text))
		cmd_usage(state, "--json does not go with --tail or --since");
	if (a->tainted && a->follow)
		cmd_usage(state, "--tainted does not go with --follow: what was "
				 "contained has ended");
	if (!a->since_text)
		return;
	if (when_read(a->since_text, clock_wall_usec(), &a->since, &err) < 0)
		cmd_usage(state, "--since: %s", err.msg);
	a->has_since = true;
}

static error_t logs_parse(int key, char *arg, struct argp_state *state)
{
	struct logs_args *a = state->input;
	struct err err = ERR_INIT;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'f':
		a->follow = true;
		return 0;
	case 'o':
		if (!str_eq(arg, "stdout") && !str_eq(arg, "stderr"))
			cmd_usage(state, "--only: stdout or stderr");
		a->stream = arg;
		return 0;
	case 'n':
		if (parse_u64(arg, 0, INT64_MAX, &a->tail, &err) < 0)
			cmd_usage(state, "--tail: %s", err.msg);
		a->has_tail = true;
		return 0;
	case KEY_SINCE:
		a->since_text = arg;
		return 0;
	case KEY_TAINTED:
		a->tainted = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_job(&a->id, arg, state);
	case ARGP_KEY_SUCCESS:
		check_together(state, a);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- what is stored ---------------------------------------------------------- */

/* Where a stream is shown. */
struct shown {
	int fd;
	bool is_terminal, is_begun;
	struct log_filter filter;
};

static int show(struct shown *s, const char *data, size_t len, struct err *err)
{
	struct buf b;
	int r;

	s->is_begun = true;
	if (!s->is_terminal)
		return render_write(s->fd, data, len, err);
	buf_init(&b, len * 8 + 64);
	log_filter(&s->filter, data, len, &b);
	r = render_write(s->fd, buf_str(&b), b.len, err);
	buf_done(&b);
	return r;
}

/* The job's colours end with its output, whatever is said next. */
static int show_end(struct shown *s, struct err *err)
{
	cleanup_buf struct buf b = {.max = 256};

	if (!s->is_terminal || !s->is_begun)
		return 0;
	log_filter_end(&s->filter, &b);
	return render_write(s->fd, buf_str(&b), b.len, err);
}

static int show_piece(struct log_reader *r, const struct log_piece *p, struct shown *s,
		      struct err *err)
{
	for (uint64_t at = p->from; at < p->to;) {
		const char *data = NULL;
		uint64_t next = 0;
		size_t len = 0;

		if (log_read(r, p->which, at, p->to, &data, &len, &next, err) < 0)
			return -1;
		if (len && show(s, data, len, err) < 0)
			return -1;
		at = len ? at + len : next;
	}
	return 0;
}

/* Before its output is read: with a result in it that is complete. NULL: the vessel does not say, and
 * then nobody can tell whether some is missing; what is there is shown all the same. */
static struct json *counted(const struct logs_args *a, struct client *c)
{
	struct err ignored = ERR_INIT;
	struct json *job = NULL;

	return job_get(c, a->id, 5000, &job, &ignored) < 0 ? NULL : job;
}

/* What is stored of it, as much as was asked for. *ret: the whole of what there was. 0, or
 * EXIT_FAILED when not all of it could be read. */
static int stored(const struct logs_args *a, struct client *c, struct log_order *ret,
		  struct err *err)
{
	cleanup_log_reader struct log_reader r = {
		.client = c, .id = a->id, .tainted = a->tainted};
	struct shown s[2] = {{.fd = STDOUT_FILENO},
			     {.fd = a->stream ? STDOUT_FILENO : STDERR_FILENO}};
	cleanup_json struct json *job = counted(a, c);
	struct err ignored = ERR_INIT;
	int code = 0;

	if (log_order_get(&r, ret, err) < 0)
		return -1;
	if (a->stream)
		log_order_only(ret, str_eq(a->stream, "stderr"));
	if (a->has_since)
		log_order_since(ret, a->since);
	if (a->has_tail && log_order_tail(&r, ret, a->tail, err) < 0)
		return -1;
	if (!a->follow && pager_begin(err) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		s[i].is_terminal = render_is_terminal(s[i].fd);
	for (size_t i = 0; i < ret->n && code == 0; i++)
		code = show_piece(&r, &ret->piece[i], &s[ret->piece[i].which], err);
	for (int i = 0; i < 2; i++)
		if (show_end(&s[i], code < 0 ? &ignored : err) < 0)
			code = -1;
	if (code == 0 && job && follow_tell_missing(job, ret->bytes))
		code = EXIT_FAILED;
	return code == 0 && r.is_damaged ? EXIT_FAILED : code;
}

/* ---- what follows ------------------------------------------------------------ */

/* from: what was shown already; NULL: nothing was. */
static int follow(const struct logs_args *a, struct client *c, const char *socket,
		  const struct log_order *from, struct err *err)
{
	struct follow f;
	int r;

	if (follow_init(&f, c, socket, err) < 0)
		return -1;
	f.id = a->id;
	f.json = a->json;
	f.only = a->stream;
	f.unanswered = !from;
	if (from)
		follow_from(&f, from->epoch, from->bytes);
	r = follow_job(&f, err);
	if (r == 0 && !f.job)
		r = 128 + f.stopped_by;
	else if (r == 0 && f.damaged)
		r = EXIT_FAILED;
	follow_done(&f);
	return r;
}

static int logs(struct logs_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_log_order struct log_order order = {0};
	bool begins_later = a->has_tail || a->has_since;
	int r = 0, more;

	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0 ||
	    last_job_take(c, false, &a->id, err) < 0)
		return -1;
	if (!a->follow || begins_later)
		r = stored(a, c, &order, err);
	if (r < 0 || !a->follow)
		return r;
	more = follow(a, c, p.api_sock, begins_later ? &order : NULL, err);
	return more != 0 ? more : r;
}

int cmd_logs(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"follow", 'f', NULL, 0, "until the job ends", 0},
		{"tail", 'n', "N", 0, "only the last N lines", 0},
		{"since", KEY_SINCE, "TIME", 0,
		 "only what came since: 10m (ago), 11:47, '2026-11-28 11:47'", 0},
		{"only", 'o', "stdout|stderr", 0, "one stream, on stdout", 0},
		{"tainted", KEY_TAINTED, NULL, 0, "of a contained job too", 0},
		{"json", 'j', NULL, 0, "with -f: one JSON object a line", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = logs_parse,
		.children = when_option,
		.args_doc = "[JOB]",
		.doc = "A job's output (of the last one, when none is named), stdout and "
		       "stderr as they came: raw to a pipe, without dangerous escapes on "
		       "a terminal.\v"
		       "Examples:\n"
		       "  lych logs -f\n"
		       "  lych logs --tail 20 --only stderr 2\n"
		       "  lych logs --since 10m 2"};
	struct logs_args a = {0};
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&argp, argc, argv, 0, &a);
	r = logs(&a, &err);
	return r < 0 ? cmd_fail(&err, a.json) : r;
}
