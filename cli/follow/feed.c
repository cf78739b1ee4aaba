/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See feed.h.
 */
#include "cli/follow/feed.h"

#include "cli/base/cmd.h"
#include "cli/follow/detach.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define AGAIN_USEC (200 * USEC_PER_MSEC)
/* While a person waits, whose keys mean nothing here: not longer. */
#define TTY_ANSWER_MSEC 3000

void feed_init(struct feed *f)
{
	*f = (struct feed){.name = ""};
	/* and the first of the two keys for leaving, which was held back */
	buf_init(&f->data, STREAM_WINDOW_BYTES + 1);
}

void feed_done(struct feed *f)
{
	if (f->tty && f->data.data)
		explicit_bzero(f->data.data, f->data.len);
	buf_done(&f->data);
	client_free(f->client);
	f->client = NULL;
}

/* At most max bytes, which must have room. */
static int read_some(struct feed *f, size_t max, struct err *err)
{
	cleanup_free char *part = xmalloc(max + 1);
	ssize_t n;

	do
		n = read(f->tty ? f->tty->person.fd : STDIN_FILENO, part, max);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return err_sys(err, "read stdin");
	f->at_end = n == 0 && !f->tty;
	/* A terminal that is closed; of its session only the leader is told, who may take no notice. */
	if (n == 0 && f->tty) {
		f->is_over = true;
		(void)raise(SIGHUP);
	}
	if (n <= 0)
		return 0;
	if (f->stays)
		n = (ssize_t)detach_keys(&f->is_prefixed, part, (size_t)n, &f->is_left);
	buf_add(&f->data, part, (size_t)n);
	if (f->tty) {
		term_filter_typed(&f->tty->filter, part, (size_t)n);
		explicit_bzero(part, (size_t)n);
	}
	return 0;
}

static void make_name(struct feed *f)
{
	uint8_t name[(STREAM_NAME_SIZE - 1) / 2];

	random_bytes(name, sizeof(name));
	hex_encode(name, sizeof(name), f->name);
}

void feed_at(struct feed *f, struct tty *tty)
{
	f->tty = tty;
	f->cols = TTY_COLS_DEFAULT;
	f->rows = TTY_ROWS_DEFAULT;
	if (tty)
		tty_size(tty, &f->cols, &f->rows);
	make_name(f);
}

void feed_join(struct feed *f, struct tty *tty)
{
	feed_at(f, tty);
	f->stays = f->is_joining = f->window_due = f->redraw_due = true;
}

int feed_peek(struct feed *f, usec_t patience, size_t max, bool *ret_whole,
	      struct err *err)
{
	const usec_t until = clock_boot_usec() + patience;

	while (!f->at_end && f->data.len < max) {
		struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
		usec_t now = clock_boot_usec();
		int left = now < until ? (int)((until - now) / USEC_PER_MSEC) + 1 : 0;
		int n = poll(&p, 1, left);

		if (n < 0 && errno != EINTR)
			return err_sys(err, "poll stdin");
		if (n == 0)
			break;
		if (n > 0 && read_some(f, max - f->data.len, err) < 0)
			return -1;
	}
	*ret_whole = f->at_end;
	if (f->at_end)
		return 0;
	make_name(f);
	return 0;
}

int feed_open(struct feed *f, const char *socket, job_id_t job, struct err *err)
{
	f->job = job;
	return client_new(socket, &f->client, err);
}

/* Read, and not with the vessel. */
static size_t unsent(const struct feed *f)
{
	return f->data.len - (size_t)(f->received - f->base);
}

int feed_fd(const struct feed *f)
{
	if (f->at_end || f->is_over || !f->room || unsent(f) > 0)
		return -1;
	if (!f->tty)
		return STDIN_FILENO;
	return f->tty->person.lent ? f->tty->person.fd : -1;
}

/* Whoever writes to it learns that nobody reads, as in a pipe. */
static int stop(struct feed *f, struct err *err)
{
	cleanup_close int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	f->is_over = true;
	if (f->tty)
		return 0; /* nobody writes to it */
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
		return err_sys(err, "/dev/null");
	return 0;
}

static int take_place(struct feed *f, const struct json *data, struct err *err)
{
	uint64_t taken, received, room;
	uint64_t end = f->is_joining ? INT64_MAX : f->base + f->data.len;
	bool open, ended;

	if (json_get_bool(data, "moved", true, &f->is_moved, err) < 0)
		return err_wrap(err, "how far stdin is");
	if (f->is_moved) {
		f->is_over = true;
		return 0;
	}
	/* An event can have waited while a part was answered, and knows less than that answer. */
	if (f->is_known && json_get_u64(data, "taken", true, 0, end, &taken, err) == 0 &&
	    json_get_u64(data, "received", true, 0, end, &received, err) == 0 &&
	    (taken < f->taken || received < f->received))
		return 0;
	if (err_is_set(err) ||
	    json_get_u64(data, "taken", true, f->taken, end, &taken, err) < 0 ||
	    json_get_u64(data, "received", true, taken, end, &received, err) < 0 ||
	    json_get_u64(data, "room", true, 0, STREAM_WINDOW_BYTES, &room, err) < 0 ||
	    json_get_bool(data, "open", true, &open, err) < 0 ||
	    json_get_bool(data, "ended", true, &ended, err) < 0)
		return err_wrap(err, "how far stdin is");
	f->is_known = true;
	/* what others had typed lies before ours; a vessel that ended may have lost some of it */
	if (f->is_joining || received < f->base)
		f->base = received;
	f->is_joining = false;
	if (taken > f->base) {
		buf_consume(&f->data, (size_t)(taken - f->base));
		f->base = taken;
	}
	f->taken = taken;
	f->received = received;
	f->room = (size_t)room;
	if (ended && !f->at_end && !f->is_over && f->tty)
		return err_set_id(
			err, ERRID_RUN_STREAM,
			"the vessel heard nothing of us for too long, and takes "
			"no keys any more");
	if (ended && !f->at_end && !f->is_over)
		cmd_tell(ERRID_RUN_STREAM,
			 "the job's stdin has ended: the vessel heard nothing of us for "
			 "too long");
	f->is_told = ended;
	return !open && !f->is_over ? stop(f, err) : 0;
}

/* Not now, and perhaps later: the events will say so, or we ask again. */
static bool may_wait(const struct err *err)
{
	return err->id == ERRID_HTTP_AWAY || err->id == ERRID_RUN_STATE ||
	       err->code == ERR_UNAVAILABLE || err->code == ERR_TIMEOUT;
}

static int come_again(struct feed *f, const struct err *why, const char *what,
		      struct err *err)
{
	if (!may_wait(why)) {
		*err = *why;
		return err_wrap(err, "%s", what);
	}
	f->again = clock_boot_usec() + AGAIN_USEC;
	return 0;
}

static int send_part(struct feed *f, struct err *err)
{
	size_t at = (size_t)(f->received - f->base), n = unsent(f);
	bool is_last = n <= STREAM_PART_MAX_BYTES && f->at_end;
	cleanup_json struct json *j = NULL;
	cleanup_free char *target = NULL;
	struct client_request rq = {.method = "PUT", .raw = true};
	struct err why = ERR_INIT;

	if (n > STREAM_PART_MAX_BYTES)
		n = STREAM_PART_MAX_BYTES;
	rq.target = target =
		xasprintf("/v1/jobs/%" PRId64 "/stdin/%s?offset=%" PRIu64 "%s", f->job,
			  f->name, f->received, is_last ? "&end=1" : "");
	rq.body = buf_str(&f->data) + at;
	rq.body_len = n;
	rq.timeout_ms = f->tty ? TTY_ANSWER_MSEC : 0;
	if (client_json(f->client, &rq, &j, NULL, &why) == 0)
		return take_place(f, j, err);
	return come_again(f, &why, "stdin", err);
}

static int send_window(struct feed *f, struct err *err)
{
	cleanup_json struct json *j = NULL;
	cleanup_free char *target =
		xasprintf("/v1/jobs/%" PRId64 "/tty/%s?cols=%u&rows=%u", f->job, f->name,
			  f->cols, f->rows - (f->redraw_due && f->rows > 1));
	const struct client_request rq = {
		.method = "PUT", .target = target, .timeout_ms = TTY_ANSWER_MSEC};
	struct err why = ERR_INIT;

	if (client_json(f->client, &rq, &j, NULL, &why) < 0)
		return come_again(f, &why, "the window's size", err);
	if (f->redraw_due)
		f->again = clock_boot_usec() + AGAIN_USEC;
	f->window_due = f->redraw_due;
	f->redraw_due = false;
	return 0;
}

static int send_all(struct feed *f, struct err *err)
{
	f->again = 0;
	if (f->window_due && f->is_known && !f->is_over && send_window(f, err) < 0)
		return -1;
	while (!f->is_over && !f->again &&
	       ((unsent(f) > 0 && f->room > 0) ||
		(f->at_end && !f->is_told && unsent(f) == 0)))
		if (send_part(f, err) < 0)
			return -1;
	return 0;
}

int feed_turn(struct feed *f, bool ready, struct err *err)
{
	size_t max = f->room < STREAM_PART_MAX_BYTES ? f->room : STREAM_PART_MAX_BYTES;

	if (f->again && clock_boot_usec() >= f->again)
		return send_all(f, err);
	if (!ready || feed_fd(f) < 0)
		return 0;
	return read_some(f, max, err) < 0 ? -1 : send_all(f, err);
}

int feed_window(struct feed *f, struct err *err)
{
	unsigned cols, rows;

	tty_size(f->tty, &cols, &rows);
	f->window_due |= cols != f->cols || rows != f->rows;
	f->cols = cols;
	f->rows = rows;
	return f->window_due && !f->again ? send_all(f, err) : 0;
}

int feed_replies(struct feed *f, struct err *err)
{
	char said[256];
	size_t room =
		f->data.len < STREAM_WINDOW_BYTES ? STREAM_WINDOW_BYTES - f->data.len : 0;
	size_t n = term_filter_replies(&f->tty->filter, said,
				       room < sizeof(said) ? room : sizeof(said));

	if (!n || f->at_end)
		return 0;
	buf_add(&f->data, said, n);
	return f->is_known && !f->again ? send_all(f, err) : 0;
}

int feed_place(struct feed *f, const struct json *data, struct err *err)
{
	return take_place(f, data, err) < 0 ? -1 : send_all(f, err);
}

int feed_ask(struct feed *f, struct err *err)
{
	if (!f->is_known || f->is_over || f->is_told || f->room > 0)
		return 0;
	return send_part(f, err) < 0 ? -1 : send_all(f, err);
}

void feed_pause(struct feed *f)
{
	f->is_known = false;
	f->room = 0;
	f->again = 0;
	f->window_due = f->tty != NULL;
}
