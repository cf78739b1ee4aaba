/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych attach: a person's terminal to that of a job which stays when nobody is at it (lych run --tty
 * --detach). Whatever ends the command but the job's own end leaves the job as it is.
 */
#include "cli/jobs/attach.h"

#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/follow/follow.h"
#include "cli/follow/job_end.h"
#include "cli/jobs/last_job.h"
#include "cli/jobs/log_order.h"
#include "common/cleanup.h"
#include "common/json/tty_read.h"
#include "common/mem.h"
#include <argp.h>
#include <inttypes.h>

enum { KEY_TAKE = 256 };

static error_t attach_parse(int key, char *arg, struct argp_state *state)
{
	struct attach *a = state->input;

	switch (key) {
	case KEY_TAKE:
		a->takes = true;
		return 0;
	case ARGP_KEY_ARG:
		return cmd_take_job(&a->id, arg, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Before the person's terminal is touched. */
static int check_job(struct client *c, job_id_t id, struct err *err)
{
	cleanup_json struct json *job = NULL;
	const struct json *spec = NULL;
	struct tty_wish tty = {0};
	struct job_end end;

	if (job_get(c, id, JOB_GET_MSEC, &job, err) < 0 ||
	    job_end_read(job, &end, err) < 0 ||
	    json_get_obj(job, "spec", true, &spec, err) < 0 ||
	    tty_read(spec, &tty, err) < 0)
		return -1;
	if (!tty.stays)
		return err_set_id(err, ERRID_TTY_STAYS, "job %" PRId64, id);
	if (job_state_is_final(end.state))
		return err_set_id(err, ERRID_RUN_STATE,
				  "job %" PRId64 " has ended: 'lych logs %" PRId64 "'",
				  id, id);
	return 0;
}

/* As many of its last lines as the window has; all of it, when that can't be told. */
static int begin_at_last_lines(struct follow *f, struct client *c, unsigned rows,
			       struct err *err)
{
	cleanup_log_reader struct log_reader r = {.client = c, .id = f->id};
	cleanup_log_order struct log_order order = {0};
	uint64_t from[2];

	if (log_order_get(&r, &order, err) < 0)
		return -1;
	log_order_only(&order, 0);
	if (log_order_tail(&r, &order, rows, err) < 0)
		return -1;
	from[0] = order.n ? order.piece[0].from : order.bytes[0];
	from[1] = order.bytes[1];
	follow_from(f, order.epoch, from);
	return 0;
}

static void tell_left(const struct follow *f, const struct feed *feed)
{
	cleanup_free char *text = xasprintf(
		"%s; job %" PRId64 " goes on: 'lych attach%s %" PRId64 "'",
		feed->is_moved ? "somebody else is at its terminal now" : "left", f->id,
		feed->is_moved ? " --take" : "", f->id);

	cmd_tell(ERRID_NONE, text);
}

/* What to exit with, or -1. */
static int follow_it(struct follow *f, struct feed *feed, struct err *err)
{
	struct job_end end;
	int r = follow_job(f, err);

	if (r < 0)
		return err_wrap(err, "job %" PRId64 " is followed no more, and goes on",
				f->id);
	if (f->job && job_end_read(f->job, &end, err) < 0)
		return -1;
	if (f->job) {
		job_end_explain(&end, f->id);
		return job_end_exit_code(&end);
	}
	tell_left(f, feed);
	return f->stopped_by ? 128 + f->stopped_by : 0;
}

int attach_to(struct client *c, const char *socket, struct tty *tty,
	      const struct attach *a, struct err *err)
{
	cleanup_feed struct feed feed;
	struct follow f;
	int r = 0;

	feed_init(&feed);
	feed_join(&feed, tty);
	if (a->is_new) {
		feed.redraw_due = false;
		feed.window_due = feed.cols != a->cols || feed.rows != a->rows;
	}
	if (follow_init(&f, c, socket, err) < 0)
		return -1;
	f.id = a->id;
	f.takes = a->takes;
	f.unanswered = false;
	if (!a->is_new)
		r = begin_at_last_lines(&f, c, feed.rows, err);
	if (r == 0)
		r = feed_open(&feed, socket, a->id, err);
	if (r == 0)
		r = follow_at_terminal(&f, &feed, err);
	if (r == 0)
		r = follow_it(&f, &feed, err);
	else if (a->is_new)
		r = err_wrap(err, "job %" PRId64 " was begun, and goes on", a->id);
	follow_done(&f);
	return r;
}

static int attach(struct attach *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	struct tty tty = TTY_NONE;

	if (tty_open(&tty, err) < 0 || paths_resolve(&p, err) < 0 ||
	    client_new(p.api_sock, &c, err) < 0 ||
	    last_job_take(c, false, &a->id, err) < 0 || check_job(c, a->id, err) < 0)
		return -1;
	return attach_to(c, p.api_sock, &tty, a, err);
}

int cmd_attach(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"take", KEY_TAKE, NULL, 0, "from whoever is at it, who is told", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = attach_parse,
		.args_doc = "[JOB]",
		.doc = "Your terminal to that of a job (the last one, when none is "
		       "named) "
		       "which was begun by 'lych run --tty --detach' or by 'lych agent'. "
		       "Ctrl-] and then d "
		       "leaves it, and so does a closed terminal, a signal, or a lost "
		       "vessel: the job goes on, and can be attached to again. 'lych "
		       "logs "
		       "-f' watches without typing.\v"
		       "Examples:\n"
		       "  lych run --tty --detach --timeout 8h --dir . -- bash\n"
		       "  lych attach\n"
		       "  lych attach --take 2"};
	struct attach a = {0};
	struct err err = ERR_INIT;
	int r;

	cmd_parse(&argp, argc, argv, 0, &a);
	r = attach(&a, &err);
	return r < 0 ? cmd_fail(&err, false) : r;
}
