/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * Theory of operation. A call is: its request read whole; the name resolved, every address
 * vetted, one attempt by curl or a few (http_attempt.c); the reply's head judged line by line,
 * its bytes redacted and handed on as far as the vessel has room (http_reply.c); an end.
 * Here are the vessel's frames, and the beginning and the end of a call.
 *
 * Each call has one timer for what it waits for just now and one for all of it. While the
 * vessel gives no room curl is paused, and with it the server: what is buffered here is what
 * the redactor holds (of a stream, an event), and what one piece of curl's made it let go.
 * curl's callbacks only judge and copy; what ends a call is done from the loop.
 */
#include "vessel/egress/http_priv.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"

#include <stdlib.h>

/* What one piece of curl's lets go: an event that it completes, escaped anew. */
#define PENDING_MAX_BYTES ((size_t)16 << 20)
/* curl goes on when there is so much room: not for a few bytes at a time. */
#define RESUME_BYTES ((uint32_t)64 << 10)
#define OUT_MAX ((size_t)EGRESS_CALLS_MAX * (EGRESS_WINDOW_BYTES + EGRESS_FRAME_MAX))

/* ---- life and end of a call ---- */

bool http_call_reads_reply(const struct call *c)
{
	return reading_begin(c->http->note, c->job, c->epoch, READING_REPLY);
}

static void call_free(struct call *c)
{
	http_attempt_drop(c);
	resolve_cancel(c->query);
	if (c->prev)
		c->prev->next = c->next;
	else
		c->http->calls = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->http->n_calls--;
	loop_timer_free(c->timer);
	loop_timer_free(c->total);
	egress_reply_done(&c->reply);
	redact_reply_free(c->redact);
	buf_done(&c->pending);
	buf_done(&c->body);
	free(c->request.memory);
	free(c->policy);
	free(c);
}

/* why NULL: the reply came to its end. */
void http_call_end(struct call *c, const struct err *why)
{
	struct http *h = c->http;
	struct egress_end e = {.err = why, .reason = c->reason};
	struct err copy;

	if (why) { /* it may be the call's own */
		copy = *why;
		e.err = &copy;
	}
	http_attempt_drop(c);
	e.bytes_up = c->bytes_up;
	e.bytes_down = c->bytes_down;
	e.attempts = c->attempts;
	e.sent = c->sent;
	e.redactions = c->redactions;
	egress_end_add(egress_link_out(h->link), c->id, &e);
	call_free(c);
	egress_link_flush(h->link);
}

/* The vessel has it all, or takes the rest when it has room. */
void http_call_end_when_sent(struct call *c)
{
	if (c->pending.len == 0)
		http_call_end(c, NULL);
	else
		egress_link_flush(c->http->link);
}

static void on_total(void *arg)
{
	struct call *c = arg;
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_EGRESS_TIMEOUT, "for all of it");
	http_call_end(c, &err);
}

static void on_timer(void *arg)
{
	struct call *c = arg;
	struct err err = ERR_INIT;

	if (c->waiting == FOR_RETRY) {
		http_attempt_start(c);
		return;
	}
	(void)err_set_id(&err, ERRID_EGRESS_TIMEOUT,
			 c->waiting == FOR_BODY ? "between two pieces of the reply"
						: "before the reply began");
	http_call_end(c, &err);
}

void http_call_wait(struct call *c, enum waiting what, usec_t usec)
{
	c->waiting = what;
	loop_timer_arm(c->timer, usec);
}

/* ---- frames ---- */

static struct call *find(struct http *h, uint32_t id)
{
	struct call *c = h->calls;

	while (c && c->id != id)
		c = c->next;
	return c;
}

static int broken(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_EGRESS_WORKER, "the vessel: %s", what);
}

/* Files of the host may have changed: their texts are taken as they are now. */
static void look_at_sources(struct http *h)
{
	const struct sources *s = h->cfg->sources;
	unsigned now = sources_generation(s);
	cleanup_free char *resolv = NULL, *hosts = NULL, *roots = NULL;
	struct resolve_config config;
	size_t len;

	if (now == h->generation)
		return;
	h->generation = now;
	resolv = sources_get(s, SOURCE_RESOLV, &len);
	hosts = sources_get(s, SOURCE_HOSTS, &len);
	resolve_config_read(&config, resolv, hosts);
	resolver_set(h->resolver, &config);
	resolve_config_done(&config);
	roots = sources_get(s, SOURCE_ROOTS, &len);
	egress_roots_set(h->cfg->roots, roots, len);
}

static int on_request(struct http *h, const struct egress_frame *f, struct err *err)
{
	struct call *c;

	look_at_sources(h);
	if (find(h, f->call) || h->n_calls >= EGRESS_CALLS_MAX)
		return broken(err, "a call too many");
	c = xnew(struct call);
	c->http = h;
	c->id = f->call;
	if (h->whose.call == f->call) {
		c->job = h->whose.job;
		c->epoch = h->whose.epoch;
		h->whose.call = 0;
	}
	c->next = h->calls;
	if (c->next)
		c->next->prev = c;
	h->calls = c;
	h->n_calls++;
	c->window = EGRESS_WINDOW_BYTES;
	c->policy = xmalloc(sizeof(*c->policy));
	*c->policy = *h->cfg->addresses;
	c->timer = loop_timer_new(h->loop, on_timer, c);
	c->total = loop_timer_new(h->loop, on_total, c);
	buf_init(&c->pending, PENDING_MAX_BYTES);
	buf_init(&c->body, EGRESS_BODY_MAX_BYTES);
	if (egress_request_parse(f->data, f->len, &c->request, err) < 0) {
		call_free(c);
		return -1;
	}
	c->room = c->request.rq.limits.reply_room_bytes;
	c->room_is_last = c->room == 0;
	if (c->room_is_last)
		c->room = http_reply_max(c);
	if (c->request.rq.body_len == 0)
		http_attempt_begin(c);
	return 0;
}

static int on_data(struct call *c, const struct egress_frame *f, struct err *err)
{
	size_t want = c->request.rq.body_len;

	if (c->waiting != FOR_REQUEST || f->len == 0 || f->len > want - c->body.len)
		return broken(err, "more of a body than it named");
	buf_add(&c->body, f->data, f->len);
	if (c->body.len == want)
		http_attempt_begin(c);
	return 0;
}

/* With room again: the piece that was refused comes anew, and may be refused again. */
static void go_on(struct call *c)
{
	if (!c->paused || c->window < RESUME_BYTES)
		return;
	c->paused = false;
	http_call_wait(c, FOR_BODY, http_reply_idle_usec(c));
	(void)curl_easy_pause(c->easy->curl, CURLPAUSE_CONT);
	httpc_multi_look(c->http->curl);
}

static int on_credit(struct call *c, const struct egress_frame *f, struct err *err)
{
	uint32_t more;

	if (egress_credit_parse(f->data, f->len, &more, err) < 0)
		return -1;
	if (more > EGRESS_WINDOW_BYTES - c->window)
		return broken(err, "more room than there is");
	c->window += more;
	http_reply_drain(c);
	if (c->complete) {
		http_call_end_when_sent(c);
		return 0;
	}
	egress_link_flush(c->http->link);
	go_on(c);
	return 0;
}

static int on_room(struct call *c, const struct egress_frame *f, struct err *err)
{
	uint64_t bytes;
	bool is_last;

	if (egress_room_parse(f->data, f->len, &bytes, &is_last, err) < 0)
		return -1;
	if (bytes < c->room || c->room_is_last)
		return broken(err, "less room than there was");
	c->room = bytes;
	c->room_is_last = is_last;
	c->room_is_asked = false;
	go_on(c);
	return 0;
}

static int take_frame(struct http *h, struct call *c, const struct egress_frame *f,
		      struct err *err)
{
	if (f->type == EGRESS_F_REQUEST)
		return on_request(h, f, err);
	/* its END and these may have crossed each other */
	if (!c && (f->type == EGRESS_F_DATA || f->type == EGRESS_F_CREDIT ||
		   f->type == EGRESS_F_ROOM || f->type == EGRESS_F_CANCEL))
		return 0;
	if (c && f->type == EGRESS_F_DATA)
		return on_data(c, f, err);
	if (c && f->type == EGRESS_F_CREDIT)
		return on_credit(c, f, err);
	if (c && f->type == EGRESS_F_ROOM)
		return on_room(c, f, err);
	if (c && f->type == EGRESS_F_CANCEL && f->len == 0) {
		call_free(c);
		return 0;
	}
	return broken(err, "a frame that is the worker's to send");
}

static int on_frame(const struct egress_frame *f, void *arg, struct err *err)
{
	struct http *h = arg;
	struct call *c = find(h, f->call);
	bool began = false;
	int r;

	if (f->type == EGRESS_F_WHOSE) {
		h->whose.call = f->call;
		return egress_whose_parse(f->data, f->len, &h->whose.job, &h->whose.epoch,
					  err);
	}
	if (f->type == EGRESS_F_REQUEST && h->whose.call == f->call)
		began = reading_begin(h->note, h->whose.job, h->whose.epoch,
				      READING_REQUEST);
	else if (c && f->type == EGRESS_F_DATA)
		began = reading_begin(h->note, c->job, c->epoch, READING_REQUEST);
	else if (c)
		began = http_call_reads_reply(c);
	r = take_frame(h, c, f, err);
	reading_end(h->note, began);
	return r;
}

static void on_closed(const struct err *why, void *arg)
{
	struct http *h = arg;

	if (why)
		log_err(LOG_ERROR_, "the vessel cannot be served", why);
	loop_stop(h->loop, why ? EXIT_FAILURE : 0);
}

static void on_beat(void *arg)
{
	struct http *h = arg;

	egress_pulse_beat(h->cfg->pulse);
	loop_timer_arm(h->beat, WATCH_BEAT_USEC);
}

int egress_http_serve(const struct egress_http_config *cfg)
{
	struct http h = {.cfg = cfg,
			 .generation = cfg->generation,
			 .note = egress_pulse_reading(cfg->pulse)};
	const struct egress_link_ops ops = {on_frame, on_closed, &h};
	struct err err = ERR_INIT;
	int code = -1;

	if (loop_new(&h.loop, &err) == 0 &&
	    httpc_multi_new(h.loop, 0, http_attempt_on_look, &h, &h.curl, &err) == 0) {
		httpc_multi_on_turn(h.curl, http_attempt_on_turn);
		h.resolver = resolver_new(h.loop, cfg->resolve);
		h.link = egress_link_new(h.loop, cfg->fd, OUT_MAX, &ops);
		h.beat = loop_timer_new(h.loop, on_beat, &h);
		loop_timer_arm(h.beat, 0);
		code = loop_run(h.loop, &err);
	}
	while (h.calls)
		call_free(h.calls);
	if (code < 0)
		log_err(LOG_ERROR_, "stopping", &err);
	egress_link_free(h.link);
	loop_timer_free(h.beat);
	resolver_free(h.resolver);
	httpc_multi_free(h.curl);
	loop_free(h.loop);
	return code < 0 ? err_exit_code(&err) : code;
}
