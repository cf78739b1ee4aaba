/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych show, logs, cancel.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/jobs/follow.h"
#include "cli/jobs/last_job.h"
#include "cli/ui/render.h"
#include "cli/ui/term_filter.h"
#include "cli/ui/when.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <argp.h>
#include <inttypes.h>

struct jobs_args {
	bool json, follow, no_wait, json_follows;
	const char *stream;
	job_id_t id;
};

static error_t jobs_parse(int key, char *arg, struct argp_state *state)
{
	struct jobs_args *a = state->input;
	struct err err = ERR_INIT;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'f':
		a->follow = true;
		return 0;
	case 'w':
		a->no_wait = true;
		return 0;
	case 'o':
		if (!str_eq(arg, "stdout") && !str_eq(arg, "stderr"))
			cmd_usage(state, "--only: stdout or stderr");
		a->stream = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->id)
			argp_usage(state);
		if (job_id_parse(arg, &a->id, &err) < 0)
			cmd_usage(state, "%s", err.msg);
		return 0;
	case ARGP_KEY_END:
		if (a->json_follows && a->json && !a->follow)
			cmd_usage(state, "--json goes with --follow");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

#define OPTION_JSON {"json", 'j', NULL, 0, "answer in JSON", 0}

/* ---- show ------------------------------------------------------------------- */

static int get_job(struct client *c, job_id_t id, struct json **ret, struct err *err)
{
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64, id);
	const struct client_request rq = {
		.method = "GET", .target = target, .timeout_ms = 30000};

	return client_json(c, &rq, ret, NULL, err);
}

static int show(struct jobs_args *a, struct client *c, struct err *err)
{
	cleanup_json struct json *j = NULL;
	struct job_end end;
	struct table t;

	if (last_job_take(c, false, &a->id, err) < 0 || get_job(c, a->id, &j, err) < 0)
		return -1;
	if (a->json) {
		render_json(j);
		return render_flush(err);
	}
	table_init(&t, 2);
	table_tree(&t, j);
	table_print(&t, false);
	table_done(&t);
	if (job_end_read(j, &end, err) < 0)
		return -1;
	if (end.denials)
		(void)printf("\n%zu denial%s, see 'lych why %" PRId64 "'\n", end.denials,
			     end.denials == 1 ? "" : "s", a->id);
	return render_flush(err);
}

/* ---- logs ------------------------------------------------------------------- */

struct piece {
	int fd;
	bool terminal;
	struct term_filter filter;
	uint64_t got;
	size_t room; /* what the answer that is read may still bring */
};

static int on_piece(const void *data, size_t len, void *arg, struct err *err)
{
	struct piece *p = arg;
	struct buf b;
	int r;

	if (len > p->room)
		return err_set_id(err, ERRID_HTTP_ANSWER, "more than was asked for");
	p->room -= len;
	p->got += len;
	if (!p->terminal)
		return render_write(p->fd, data, len, err);
	buf_init(&b, len * 8 + 64);
	term_filter(&p->filter, data, len, &b);
	r = render_write(p->fd, buf_str(&b), b.len, err);
	buf_done(&b);
	return r;
}

/* 0, or EXIT_FAILED when not all of it could be read. */
static int log_pieces(struct client *c, job_id_t id, const char *stream, struct piece *p,
		      struct err *err)
{
	int code = 0;

	for (;;) {
		uint64_t expected = 0;
		cleanup_free char *target =
			xasprintf("/v1/jobs/%" PRId64 "/output?stream=%s&offset=%" PRIu64
				  "&limit=%zu",
				  id, stream, p->got, UPLOAD_PART_MAX_BYTES);
		const struct client_request rq = {
			.method = "GET", .target = target, .ret_expected = &expected};
		uint64_t before = p->got;

		p->room = UPLOAD_PART_MAX_BYTES;
		if (client_raw(c, &rq, on_piece, p, err) < 0) {
			if (err->id != ERRID_STORE_DAMAGED || expected <= p->got)
				return -1;
			/* the rest is worth having */
			cmd_tell(err->id, err->msg);
			err_clear(err);
			code = EXIT_FAILED;
			p->got = expected;
		}
		if (p->got == before)
			return code;
	}
}

static int log_stream(struct client *c, job_id_t id, const char *stream, int fd,
		      struct err *err)
{
	struct piece p = {.fd = fd, .terminal = render_is_terminal(fd)};
	int r = log_pieces(c, id, stream, &p, err);
	struct err ignored = ERR_INIT;
	cleanup_buf struct buf b = {.max = 256};

	if (!p.terminal || !p.got)
		return r;
	/* the job's colours end with its output, whatever is said next */
	term_filter_end(&p.filter, &b);
	return render_write(fd, buf_str(&b), b.len, r < 0 ? &ignored : err) < 0 ? -1 : r;
}

static int logs(struct jobs_args *a, struct client *c, const char *socket,
		struct err *err)
{
	struct follow f;
	int r = 0, more = 0;

	if (last_job_take(c, false, &a->id, err) < 0)
		return -1;
	if (!a->follow) {
		if (!str_eq(a->stream, "stderr"))
			r = log_stream(c, a->id, "stdout", STDOUT_FILENO, err);
		if (r >= 0 && !str_eq(a->stream, "stdout"))
			more = log_stream(c, a->id, "stderr",
					  a->stream ? STDOUT_FILENO : STDERR_FILENO, err);
		return r < 0 || more < 0 ? -1 : r | more;
	}
	if (follow_init(&f, c, socket, err) < 0)
		return -1;
	f.id = a->id;
	f.json = a->json;
	f.only = a->stream;
	r = follow_job(&f, err);
	if (r == 0 && !f.job)
		r = 128 + f.stopped_by;
	else if (r == 0 && f.damaged)
		r = EXIT_FAILED;
	follow_done(&f);
	return r;
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
		if (get_job(c, a->id, &j, err) < 0 ||
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
		       "none is named."};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct jobs_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return finish(connect_to(&p, &c, &err) < 0 ? -1 : show(&a, c, &err), &err,
		      a.json);
}

int cmd_logs(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"follow", 'f', NULL, 0, "until the job ends", 0},
		{"only", 'o', "stdout|stderr", 0, "one stream, on stdout", 0},
		{"json", 'j', NULL, 0, "with -f: one JSON object a line", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = jobs_parse,
		.args_doc = "[JOB]",
		.doc = "A job's output (of the last one, when none is named): raw to a "
		       "pipe, without dangerous "
		       "escapes on a terminal."};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct jobs_args a = {.json_follows = true};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return finish(connect_to(&p, &c, &err) < 0 ? -1 : logs(&a, c, p.api_sock, &err),
		      &err, a.json);
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
		       "ended."};
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct jobs_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return finish(connect_to(&p, &c, &err) < 0 ? -1 : cancel(&a, c, p.api_sock, &err),
		      &err, a.json);
}
