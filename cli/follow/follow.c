/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See follow.h.
 */
#include "cli/follow/follow.h"

#include "cli/base/cmd.h"
#include "cli/follow/follow_words.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#define RESUME_TIMEOUT (60 * USEC_PER_SEC)
/* Of a vessel that has not answered once: as long as one takes to be started again. */
#define FIRST_TIMEOUT (5 * USEC_PER_SEC)
/* While a terminal is lent, at which no key says that one has waited enough. */
#define LENT_TIMEOUT SAY_AFTER
/* Until a person is told why nothing comes: longer than a restart of the vessel takes. */
#define SAY_AFTER (3 * USEC_PER_SEC)
/* Between two streams, twice as long after each that brought nothing. */
#define NAP_LEAST_MSEC 100
#define NAP_MOST_MSEC 800
/* While our output waits for its reader, what the events say of stdin waits behind it. */
#define BEHIND_MSEC 250
#define PIECE_MAX ((size_t)256 << 10)
/* A person who cancels waits for no answer longer than this; the vessel is asked again. */
#define CANCEL_ANSWER_MSEC 1000
#define CANCEL_AGAIN_USEC (500 * USEC_PER_MSEC)

int follow_init(struct follow *f, struct client *c, const char *socket, struct err *err)
{
	sigset_t mask;

	*f = (struct follow){.client = c,
			     .socket = socket,
			     .sigfd = -1,
			     .ask_at = clock_boot_usec() + SAY_AFTER};
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return err_sys(err, "sigprocmask");
	f->sigfd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (f->sigfd < 0)
		return err_sys(err, "signalfd");
	f->terminal[0] = render_is_terminal(STDOUT_FILENO);
	f->terminal[1] = render_is_terminal(STDERR_FILENO);
	return 0;
}

int follow_at_terminal(struct follow *f, struct feed *feed, struct err *err)
{
	f->feed = feed;
	f->tty = feed->tty;
	return tty_catch_signals(f->sigfd, err);
}

void follow_from(struct follow *f, int64_t epoch, const uint64_t bytes[2])
{
	/* as the id of the last event would say it */
	(void)snprintf(f->last_id, sizeof(f->last_id), "%" PRId64 "-%" PRIu64 "-%" PRIu64,
		       epoch, bytes[0], bytes[1]);
	f->offset[0] = bytes[0];
	f->offset[1] = bytes[1];
}

void follow_done(struct follow *f)
{
	json_free(f->job);
	f->job = NULL;
	fd_close(&f->sigfd);
}

/* ---- output ---------------------------------------------------------------- */

static bool is_wanted(const struct follow *f, int which)
{
	return !f->quiet && !f->keep &&
	       (!f->only || str_eq(f->only, which ? "stderr" : "stdout"));
}

static int out_fd(const struct follow *f, int which)
{
	return which && !f->only ? STDERR_FILENO : STDOUT_FILENO;
}

/* Before words of our own: the job may have chosen a colour for them. */
static const char *plain(const struct follow *f)
{
	return f->terminal[1] ? "\x1b[0m" : "";
}

static int on_wake(void *arg, struct err *err);
static int cancel_again(struct follow *f, struct err *err);

static int side_fd(void *arg)
{
	const struct follow *f = arg;

	return f->feed ? feed_fd(f->feed) : -1;
}

static int on_side(bool ready, void *arg, struct err *err)
{
	struct follow *f = arg;

	if (f->cancels && !f->is_begun && f->ask_at && clock_boot_usec() >= f->ask_at) {
		f->ask_at = 0; /* once */
		follow_say_waiting(f->socket, f->id, plain(f));
	}
	if (cancel_again(f, err) < 0)
		return -1;
	/* a job that is only watched may say nothing for hours after its last reader went */
	if (!f->cancels && !f->quiet && render_is_read(err) < 0)
		return -1;
	if (f->feed && feed_turn(f->feed, ready, err) < 0)
		return -1;
	return f->feed && f->feed->is_left ? err_set(err, ERR_TIMEOUT, "left by its keys")
					   : 0;
}

/* Of n bytes, which a pipe with any room takes whole; how many. */
static ssize_t write_some(struct follow *f, int fd, const char *data, size_t n,
			  struct err *err)
{
	if (f->tty && fd == f->tty->person.fd) {
		/* its shell's by now, which we are not to wait for */
		if (f->interrupts && !person_is_in_front(&f->tty->person))
			return (ssize_t)n;
		return tty_write(f->tty, data, n, err);
	}
	return render_write(fd, data, n, err) < 0 ? -1 : (ssize_t)n;
}

/* In pieces that a pipe with any room takes whole: who waits for a reader hears an interrupt, and feeds
 * the job on. A terminal that takes nothing is not waited for behind an interrupt. */
static int write_out(struct follow *f, int fd, const char *data, size_t len,
		     struct err *err)
{
	while (len) {
		struct pollfd p[] = {{.fd = fd, .events = POLLOUT},
				     {.fd = f->sigfd, .events = POLLIN},
				     {.fd = side_fd(f), .events = POLLIN}};
		ssize_t n = 0;
		int r = poll(p, ARRAY_SIZE(p), f->feed ? BEHIND_MSEC : -1);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_sys(err, "poll");
		if (r == 0 && f->tty && f->interrupts) {
			f->tty->is_cut = true;
			return 0;
		}
		if (r == 0 && feed_ask(f->feed, err) < 0)
			return -1;
		if (p[1].revents && on_wake(f, err) < 0)
			return -1;
		if (p[2].revents && on_side(true, f, err) < 0)
			return -1;
		if (p[0].revents)
			n = write_some(f, fd, data, len < PIPE_BUF ? len : PIPE_BUF, err);
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Through the filter, whose answers are typed for it. */
static int put_tty(struct follow *f, const char *data, size_t len, struct err *err)
{
	char shown[TERM_FILTER_ROOM(TTY_PIECE)];

	/* one that took nothing behind an interrupt is not waited for again, piece by piece */
	if (f->interrupts && (!f->tty->person.lent || f->tty->is_cut))
		return 0;
	if (tty_lend(f->tty, err) < 0 || feed_window(f->feed, err) < 0)
		return -1;
	while (len) {
		size_t n = len < TTY_PIECE ? len : TTY_PIECE;
		size_t m = tty_filter(f->tty, data, n, shown);

		if (write_out(f, f->tty->person.fd, shown, m, err) < 0 ||
		    feed_replies(f->feed, err) < 0)
			return -1;
		data += n;
		len -= n;
	}
	return 0;
}

static int put(struct follow *f, int which, const void *data, size_t len, struct err *err)
{
	int fd = out_fd(f, which);
	struct buf shown;
	int r;

	if (f->tty && which == 0)
		return put_tty(f, data, len, err);
	if (!f->terminal[fd == STDERR_FILENO])
		return write_out(f, fd, data, len, err);
	buf_init(&shown, PIECE_MAX * 8);
	log_filter(&f->filter[which], data, len, &shown);
	r = write_out(f, fd, buf_str(&shown), shown.len, err);
	buf_done(&shown);
	return r;
}

static int put_end(struct follow *f, struct err *err)
{
	for (int i = 0; i < 2; i++) {
		struct buf shown;
		int r;

		int fd = out_fd(f, i);

		if (f->tty && i == 0)
			continue;
		if (!is_wanted(f, i) || !f->terminal[fd == STDERR_FILENO] || f->json ||
		    !f->offset[i])
			continue;
		buf_init(&shown, 256);
		log_filter_end(&f->filter[i], &shown);
		r = render_write(fd, buf_str(&shown), shown.len, err);
		buf_done(&shown);
		if (r < 0)
			return -1;
	}
	return 0;
}

static int put_event(struct follow *f, const char *event, const struct json *data,
		     struct err *err)
{
	struct buf b;
	struct jsonw w;
	int r;

	buf_init(&b, (size_t)8 << 20);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "event", event);
	jsonw_key(&w,
		  str_eq(event, "output") || str_eq(event, "damaged") ? event : "job");
	json_write(data, &w);
	jsonw_obj_end(&w);
	buf_addc(&b, '\n');
	r = write_out(f, STDOUT_FILENO, buf_str(&b), b.len, err);
	buf_done(&b);
	return r;
}

/* Which stream, and where in it; another attempt begins anew. */
static int read_place(struct follow *f, const struct json *data, int *ret_which,
		      uint64_t *ret_offset, struct err *err)
{
	const char *stream;
	int which;

	if (json_get_str(data, "stream", true, 16, &stream, err) < 0 ||
	    json_get_u64(data, "offset", true, 0, INT64_MAX, ret_offset, err) < 0)
		return -1;
	*ret_which = which = str_eq(stream, "stderr");
	if (*ret_offset == 0 && f->offset[which] > 0) {
		(void)fprintf(stderr,
			      "%s\nlych: another attempt of the job begins; its %s "
			      "starts over\n",
			      plain(f), stream);
		f->offset[which] = 0;
	}
	if (*ret_offset > f->offset[which])
		return err_set_id(err, ERRID_HTTP_ANSWER, "a gap in the job's %s",
				  stream);
	return 0;
}

static int on_damaged(struct follow *f, const struct json *data, struct err *err)
{
	const char *code, *detail;
	uint64_t offset, bytes;
	int which;

	if (read_place(f, data, &which, &offset, err) < 0 ||
	    json_get_u64(data, "bytes", true, 0, INT64_MAX - offset, &bytes, err) < 0 ||
	    json_get_str(data, "error_code", true, 64, &code, err) < 0 ||
	    json_get_str(data, "detail", true, 2048, &detail, err) < 0)
		return -1;
	f->damaged = true;
	f->offset[which] = offset + bytes;
	if (f->json)
		return put_event(f, "damaged", data, err);
	cmd_tell(err_id_from_text(code), detail);
	return 0;
}

/* Another attempt begins anew. */
static void keep_bytes(struct follow *f, int which, const char *data, size_t len)
{
	struct buf *b = f->keep[which];
	size_t room;

	if (f->offset[which] == 0)
		buf_reset(b);
	room = b->max - b->len;
	buf_add(b, data, len < room ? len : room);
}

static int on_output(struct follow *f, const struct json *data, struct err *err)
{
	cleanup_free char *bytes = NULL;
	const char *text;
	uint64_t offset;
	size_t len, known;
	int which;

	if (read_place(f, data, &which, &offset, err) < 0 ||
	    json_get_str(data, "data", true, PIECE_MAX * 2, &text, err) < 0 ||
	    base64_decode(text, strlen(text), &bytes, &len, err) < 0)
		return -1;
	if (offset + len <= f->offset[which])
		return 0;
	known = (size_t)(f->offset[which] - offset);
	if (f->keep)
		keep_bytes(f, which, bytes + known, len - known);
	if (is_wanted(f, which) &&
	    (f->json ? put_event(f, "output", data, err)
		     : put(f, which, bytes + known, len - known, err)) < 0)
		return -1;
	f->offset[which] = offset + len;
	return 0;
}

static int keep_end(struct follow *f, const struct json *data, struct err *err)
{
	struct buf b;
	struct jsonw w;
	int r;

	buf_init(&b, (size_t)8 << 20);
	jsonw_init(&w, &b);
	json_write(data, &w);
	r = json_parse(buf_str(&b), b.len, JSON_DEPTH_DEFAULT, &f->job, err);
	buf_done(&b);
	return r < 0 ? -1 : 1;
}

/* What a terminal is to do before the job says something, which it may never. */
static int on_begun(struct follow *f, const char *event, const struct json *data,
		    struct err *err)
{
	if (f->interrupts)
		return 0;
	if (!str_eq(event, "stdin") &&
	    !(str_eq(event, "state") && str_eq(render_text_of(data, "state"), "running")))
		return 0;
	return tty_lend(f->tty, err) < 0 ? -1 : feed_window(f->feed, err);
}

static int on_event(const char *event, const struct json *data, void *arg,
		    struct err *err)
{
	struct follow *f = arg;

	f->events++;
	f->is_begun |= !str_eq(event, "state") ||
		       !str_eq(render_text_of(data, "state"), "queued");
	if (f->tty && on_begun(f, event, data, err) < 0)
		return -1;
	if (str_eq(event, "output"))
		return on_output(f, data, err);
	if (str_eq(event, "damaged"))
		return on_damaged(f, data, err);
	if (str_eq(event, "stdin") && f->feed)
		return feed_place(f->feed, data, err) < 0 ? -1 : f->feed->is_moved;
	if (f->json && put_event(f, event, data, err) < 0)
		return -1;
	return str_eq(event, "end") ? keep_end(f, data, err) : 0;
}

/* ---- signals --------------------------------------------------------------- */

/* A vessel that goes away (a restart) is waited for, once it has answered. Our own
 * output that fails (ERRID_CORE_OUTPUT) is none of these. */
static bool may_resume(const struct err *err)
{
	return err->id == ERRID_HTTP_AWAY || err->code == ERR_UNAVAILABLE ||
	       err->code == ERR_TIMEOUT;
}

int follow_cancel(const struct follow *f, struct err *err)
{
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;
	cleanup_free char *target = xasprintf("/v1/jobs/%" PRId64 "/cancel", f->id);
	const struct client_request rq = {
		.method = "POST", .target = target, .timeout_ms = CANCEL_ANSWER_MSEC};

	return client_new(f->socket, &c, err) < 0 ||
			       client_json(c, &rq, &j, NULL, err) < 0
		       ? -1
		       : 0;
}

static void say_cancelling(const struct follow *f)
{
	(void)fprintf(stderr,
		      "%s\nlych: cancelling job %" PRId64
		      "; once more to stop waiting for its end\n",
		      plain(f), f->id);
}

/* A vessel that does not answer now has not heard it: it is asked again, and meanwhile a terminal that no key
 * is for is the person's. */
static int cancel(struct follow *f, struct err *err)
{
	struct err why = ERR_INIT;

	f->cancel_at = 0;
	if (follow_cancel(f, &why) == 0)
		return 0;
	if (!may_resume(&why))
		return err_wrap(&why, "cancel"), *err = why, -1;
	if (f->tty && f->tty->person.lent) {
		tty_give_back(f->tty);
		say_cancelling(f);
	}
	f->cancel_at = clock_boot_usec() + CANCEL_AGAIN_USEC;
	return 0;
}

static int cancel_again(struct follow *f, struct err *err)
{
	bool due = f->cancel_at && clock_boot_usec() >= f->cancel_at;

	return due ? cancel(f, err) : 0;
}

/* The terminal's own affairs. */
static int on_tty_signal(struct follow *f, int signal, struct err *err)
{
	if (signal == SIGTSTP && tty_suspend(f->tty, err) < 0)
		return -1;
	if (signal == SIGCONT)
		person_lend_again(&f->tty->person);
	return feed_window(f->feed, err);
}

static int on_wake(void *arg, struct err *err)
{
	struct follow *f = arg;
	struct signalfd_siginfo si;

	while (read(f->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (f->tty && !person_signal_ends((int)si.ssi_signo)) {
			if (on_tty_signal(f, (int)si.ssi_signo, err) < 0)
				return -1;
			continue;
		}
		f->stopped_by = (int)si.ssi_signo;
		if (!f->cancels || f->interrupts++ > 0)
			return err_set(err, ERR_TIMEOUT, "stopped by a signal");
		if (f->tty)
			f->feed->is_over = true; /* no key is for it any more */
		if (!f->tty || !f->tty->person.lent)
			say_cancelling(f);
		if (cancel(f, err) < 0)
			return -1;
	}
	return 0;
}

/* By the person, who does not wait for the job's end; or for another who is at its terminal now. */
static bool is_left(const struct follow *f)
{
	return (f->stopped_by && (!f->cancels || f->interrupts > 1)) ||
	       (f->feed && (f->feed->is_left || f->feed->is_moved));
}

/* An interrupt is heard at once; that it could not be passed on, the next stream shows. */
static void nap(struct follow *f, int msec)
{
	struct pollfd p = {.fd = f->sigfd, .events = POLLIN};
	struct err ignored = ERR_INIT;

	if (poll(&p, 1, msec) > 0)
		(void)!on_wake(f, &ignored);
}

/* ---- the stream, resumed --------------------------------------------------- */

/* For a stream that comes back. */
static usec_t patience(const struct follow *f)
{
	return f->tty ? LENT_TIMEOUT : RESUME_TIMEOUT;
}

static int follow_streams(struct follow *f, struct err *err)
{
	const struct client_events ev = {.on_event = on_event,
					 .on_wake = on_wake,
					 .on_side = on_side,
					 .side_fd = side_fd,
					 .arg = f,
					 .wake_fd = f->sigfd,
					 .last_id = f->last_id};
	cleanup_free char *target =
		xasprintf("/v1/jobs/%" PRId64 "/events?attended=%d%s%s%s", f->id,
			  f->cancels, f->feed ? "&stdin=" : "",
			  f->feed ? f->feed->name : "", f->takes ? "&take=1" : "");
	usec_t deadline =
		clock_boot_usec() + (f->unanswered ? FIRST_TIMEOUT : patience(f));
	usec_t quiet_until = clock_boot_usec() + SAY_AFTER;
	int rest_msec = NAP_LEAST_MSEC;
	bool told = false;

	while (!f->job && !is_left(f)) {
		uint64_t before = f->events;
		struct err why = ERR_INIT;
		unsigned interrupts = f->interrupts;
		int r = cancel_again(f, &why) < 0
				? -1
				: client_stream(f->client, target, &ev, &why);

		if (f->feed)
			feed_pause(f->feed);
		if (f->job || is_left(f))
			break;
		if (r < 0 && !may_resume(&why)) {
			*err = why;
			return -1;
		}
		/* A connection that stood for a while counts from its end. */
		if (f->events > before || f->interrupts > interrupts) {
			deadline = clock_boot_usec() + patience(f);
			quiet_until = clock_boot_usec() + SAY_AFTER;
			told = false;
		}
		if (r < 0 && !f->tty && !told && clock_boot_usec() >= quiet_until) {
			follow_say_away(f->id, plain(f));
			told = true;
		}
		if (clock_boot_usec() >= deadline) {
			*err = why;
			if (!err_is_set(err))
				return err_set_id(
					err, ERRID_HTTP_AWAY,
					"the event stream ends again and again");
			return -1;
		}
		if (f->events > before)
			rest_msec = NAP_LEAST_MSEC;
		nap(f, rest_msec);
		if (rest_msec < NAP_MOST_MSEC)
			rest_msec *= 2;
	}
	return 0;
}

int follow_job(struct follow *f, struct err *err)
{
	struct err ignored = ERR_INIT;
	int r = follow_streams(f, err);

	if (f->tty)
		tty_give_back(f->tty);
	/* the job's colours end with its output, whatever is said next */
	if (put_end(f, r < 0 ? &ignored : err) < 0)
		return -1;
	if (f->job && !f->quiet)
		f->damaged |= follow_tell_missing(f->job, f->offset);
	return r;
}
