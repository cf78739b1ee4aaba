/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A call is: its request read whole, the URL put together (a
 * portal's base is ours, so that no request chooses where the credential goes), the name
 * resolved and every address vetted, one attempt by curl or a few, the reply's head judged
 * line by line, its bytes redacted and handed on as far as the vessel has room, an end.
 *
 * Each call has one timer for what it waits for just now and one for all of it. While the
 * vessel gives no room curl is paused, and with it the server: what is buffered here is what
 * the redactor holds (of a stream, an event), and what one piece of curl's made it let go.
 * curl's callbacks only judge and copy; what ends a call is done from the loop.
 */
#include "vessel/egress/http.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/net/httpc_multi.h"
#include "common/str.h"
#include "common/worker/pulse.h"
#include "vessel/egress/easy.h"
#include "vessel/egress/link.h"
#include "vessel/egress/redact_reply.h"
#include "vessel/egress/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIRST_BYTE_USEC (120 * USEC_PER_SEC)
#define IDLE_USEC (60 * USEC_PER_SEC)
#define TOTAL_USEC (600 * USEC_PER_SEC)
#define REPLY_MAX_BYTES ((uint64_t)64 << 20)
#define RETRY_WAIT_USEC (500 * USEC_PER_MSEC) /* doubled each time */
#define RETRY_WAIT_MAX_USEC (20 * USEC_PER_SEC)
/* What one piece of curl's lets go: an event that it completes, escaped anew. */
#define PENDING_MAX_BYTES ((size_t)16 << 20)
/* curl goes on when there is so much room: not for a few bytes at a time. */
#define RESUME_BYTES ((uint32_t)64 << 10)
#define OUT_MAX ((size_t)EGRESS_CALLS_MAX * (EGRESS_WINDOW_BYTES + EGRESS_FRAME_MAX))

enum waiting { FOR_REQUEST, FOR_NAME, FOR_HEAD, FOR_BODY, FOR_RETRY };

struct http;

struct call {
	struct http *http;
	struct call *prev, *next;
	uint32_t id;
	job_id_t job; /* 0: of none */
	int64_t epoch;
	struct egress_wire_request request;
	struct buf body;
	struct url url;
	struct addr_policy *policy; /* with the request's own exact addresses */
	struct resolve_query *query;
	struct addr addrs[RESOLVE_ADDRS_MAX];
	size_t n_addrs;
	struct egress_easy *easy;
	struct egress_reply reply;
	struct redact_reply *redact; /* NULL: the reply has no head yet */
	struct buf pending;	     /* redacted, and the vessel has no room */
	struct loop_timer *timer, *total;
	enum waiting waiting;
	uint32_t window;
	struct err why; /* what made a callback end the attempt */
	enum reason reason;
	uint64_t bytes_up, bytes_down;
	uint64_t room; /* of the reply, as far as the vessel has said */
	unsigned attempts, redactions;
	bool paused, head_sent, sent, again;
	bool room_is_last, room_is_asked;
	bool complete; /* the reply is here as a whole, of which pending is the rest */
};

struct http {
	const struct egress_http_config *cfg;
	struct loop *loop;
	struct egress_link *link;
	struct httpc_multi *curl;
	struct resolver *resolver;
	struct loop_timer *beat;
	struct call *calls;
	unsigned n_calls;
	struct reading *note; /* of what is parsed just now */
	bool in_turn;	      /* it is of curl's turn */
	struct {	      /* of the request that comes next */
		uint32_t call;
		job_id_t job;
		int64_t epoch;
	} whose;
};

static bool reads_reply(const struct call *c)
{
	return reading_begin(c->http->note, c->job, c->epoch, READING_REPLY);
}

/* ---- life and end of a call ---- */

static void drop_attempt(struct call *c)
{
	curl_off_t up = 0;

	if (!c->easy)
		return;
	if (curl_easy_getinfo(c->easy->curl, CURLINFO_SIZE_UPLOAD_T, &up) == CURLE_OK)
		c->bytes_up += (uint64_t)up;
	c->sent = c->sent || egress_easy_sent(c->easy);
	httpc_multi_remove(c->http->curl, c->easy->curl);
	egress_easy_free(c->easy);
	c->easy = NULL;
}

static void call_free(struct call *c)
{
	drop_attempt(c);
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

static void tell_redactions(struct call *c, bool in_header, unsigned count)
{
	if (count == 0)
		return;
	c->redactions += count;
	egress_redacted_add(egress_link_out(c->http->link), c->id, in_header, count);
}

/* why NULL: the reply came to its end. */
static void end(struct call *c, const struct err *why)
{
	struct http *h = c->http;
	struct egress_end e = {.err = why, .reason = c->reason};
	struct err copy;

	if (why) { /* it may be the call's own */
		copy = *why;
		e.err = &copy;
	}
	drop_attempt(c);
	e.bytes_up = c->bytes_up;
	e.bytes_down = c->bytes_down;
	e.attempts = c->attempts;
	e.sent = c->sent;
	e.redactions = c->redactions;
	egress_end_add(egress_link_out(h->link), c->id, &e);
	call_free(c);
	egress_link_flush(h->link);
}

static void on_total(void *arg)
{
	struct call *c = arg;
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_EGRESS_TIMEOUT, "for all of it");
	end(c, &err);
}

static void attempt(struct call *c);

static void on_timer(void *arg)
{
	struct call *c = arg;
	struct err err = ERR_INIT;

	if (c->waiting == FOR_RETRY) {
		attempt(c);
		return;
	}
	(void)err_set_id(&err, ERRID_EGRESS_TIMEOUT,
			 c->waiting == FOR_BODY ? "between two pieces of the reply"
						: "before the reply began");
	end(c, &err);
}

static void wait_for(struct call *c, enum waiting what, usec_t usec)
{
	c->waiting = what;
	loop_timer_arm(c->timer, usec);
}

static usec_t idle_usec(const struct call *c)
{
	usec_t given = c->request.rq.limits.idle_usec;

	return given ? given : IDLE_USEC;
}

/* ---- the reply ---- */

/* A header's value without the credential. */
static char *redacted(struct call *c, const char *value)
{
	struct redact_stream s;
	cleanup_buf struct buf b;
	size_t len;

	buf_init(&b, 2 * strlen(value) + 64);
	redact_begin(&s, c->http->cfg->redact);
	redact_feed(&s, value, strlen(value), &b);
	redact_end(&s, &b);
	tell_redactions(c, true, s.hits);
	redact_done(&s);
	return b.data ? buf_take(&b, &len) : xstrdup("");
}

/* As the vessel judges it, by the same function. */
static bool is_stream(const struct egress_reply *r)
{
	for (size_t i = 0; i < r->n_kept; i++)
		if (strcasecmp(r->kept[i].name, "Content-Type") == 0)
			return headers_is_type(r->kept[i].value, "text/event-stream");
	return false;
}

static int send_head(struct call *c, struct err *err)
{
	struct egress_header h[HEADERS_MAX];
	const struct egress_reply *r = &c->reply;
	struct egress_head head = {.status = r->status, .headers = h};
	char *owned[HEADERS_MAX + 1] = {NULL};
	int done;

	for (; head.n_headers < r->n_kept; head.n_headers++) {
		size_t i = head.n_headers;

		owned[i] = redacted(c, r->kept[i].value);
		h[i] = (struct egress_header){r->kept[i].name, owned[i]};
	}
	if (r->location && r->status >= 300 && r->status < 400)
		head.location = owned[HEADERS_MAX] = redacted(c, r->location);
	done = egress_head_add(egress_link_out(c->http->link), c->id, &head, err);
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++)
		free(owned[i]);
	c->head_sent = done == 0;
	c->redact = redact_reply_new(c->http->cfg->redact, is_stream(r));
	return done;
}

static bool is_read(const struct call *c)
{
	return !str_eq(c->request.rq.method, "POST");
}

/* Before anything went back, and only what did not or may not have been carried out. */
static bool may_try_again(const struct call *c, unsigned status)
{
	if (c->attempts > c->request.rq.retries || c->head_sent)
		return false;
	if (status == 0)
		return is_read(c) || !c->sent;
	/* longer than we would wait: that is for the caller to do */
	if (c->reply.has_retry_after &&
	    c->reply.retry_after * USEC_PER_SEC > RETRY_WAIT_MAX_USEC)
		return false;
	return status == 429 || status == 503 ||
	       (is_read(c) && (status == 502 || status == 504));
}

static uint64_t reply_max(const struct call *c)
{
	uint64_t given = c->request.rq.limits.reply_max_bytes;

	return given ? given : REPLY_MAX_BYTES;
}

/* May so much more be read? -1: never; 0: not yet. Asks for room in good time. */
static int room_for(struct call *c, size_t len)
{
	uint64_t max = c->room_is_last && c->room < reply_max(c) ? c->room : reply_max(c);
	uint64_t down = c->bytes_down + len;

	if (down > max)
		return err_set_id(&c->why, ERRID_EGRESS_TOO_LARGE, "more than %llu bytes",
				  (unsigned long long)max);
	if (!c->room_is_last && !c->room_is_asked && down > c->room / 2) {
		c->room_is_asked = true;
		egress_frame_add(egress_link_out(c->http->link), EGRESS_F_MORE, c->id,
				 NULL, 0);
		egress_link_flush(c->http->link);
	}
	return down <= c->room;
}

static size_t take_header(struct call *c, char *line, size_t len)
{
	int r = egress_reply_line(&c->reply, line, len, &c->why);

	/* a head is short: what is over the room is taken from what follows */
	if (r >= 0 && room_for(c, len) < 0)
		r = -1;
	c->bytes_down += len;
	if (r < 0)
		return 0;
	if (r == 0)
		return len;
	if (may_try_again(c, c->reply.status)) {
		c->again = true;
		return 0;
	}
	if (send_head(c, &c->why) < 0)
		return 0;
	wait_for(c, FOR_BODY, idle_usec(c));
	egress_link_flush(c->http->link);
	return len;
}

/* curl calls these in the turn of a socket, and elsewhere too. */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct call *c = arg;
	bool began = reads_reply(c);
	size_t taken = take_header(c, line, size * n);

	reading_end(c->http->note, began);
	return taken;
}

/* As much of what is redacted as the vessel has room for. */
static void drain(struct call *c)
{
	size_t n = c->pending.len < c->window ? c->pending.len : c->window;

	if (n == 0)
		return;
	egress_frame_add_data(egress_link_out(c->http->link), c->id, c->pending.data, n);
	c->window -= (uint32_t)n;
	buf_consume(&c->pending, n);
}

/* Through the redactor; data NULL: nothing follows. */
static int hand_on(struct call *c, const void *data, size_t len)
{
	unsigned before = redact_reply_hits(c->redact);
	int r = data ? redact_reply_feed(c->redact, data, len, &c->pending, &c->why)
		     : redact_reply_end(c->redact, &c->pending, &c->why);

	tell_redactions(c, false, redact_reply_hits(c->redact) - before);
	if (r == 0)
		drain(c);
	return r;
}

static size_t take_body(struct call *c, const char *data, size_t len)
{
	int room = room_for(c, len);

	if (room < 0)
		return 0;
	if (c->window == 0 || room == 0) {
		c->paused = true;
		loop_timer_disarm(c->timer);
		return CURL_WRITEFUNC_PAUSE;
	}
	c->bytes_down += len;
	wait_for(c, FOR_BODY, idle_usec(c));
	if (hand_on(c, data, len) < 0)
		return 0;
	egress_link_flush(c->http->link);
	return len;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct call *c = arg;
	bool began = reads_reply(c);
	size_t taken = take_body(c, data, size * n);

	reading_end(c->http->note, began);
	return taken;
}

/* ---- attempts ---- */

static void try_again(struct call *c)
{
	unsigned doubled = c->attempts < 8 ? c->attempts - 1 : 7;
	usec_t usec = c->reply.has_retry_after ? c->reply.retry_after * USEC_PER_SEC
					       : RETRY_WAIT_USEC << doubled;

	drop_attempt(c);
	c->again = false;
	err_clear(&c->why);
	wait_for(c, FOR_RETRY, usec < RETRY_WAIT_MAX_USEC ? usec : RETRY_WAIT_MAX_USEC);
}

/* The vessel has it all, or takes the rest when it has room. */
static void end_when_sent(struct call *c)
{
	if (c->pending.len == 0)
		end(c, NULL);
	else
		egress_link_flush(c->http->link);
}

static void on_done(struct call *c, CURLcode code)
{
	struct err err = ERR_INIT;

	c->sent = c->sent || egress_easy_sent(c->easy);
	if (c->again) {
		try_again(c);
		return;
	}
	if (code == CURLE_OK && !c->reply.complete)
		(void)err_set_id(&c->why, ERRID_EGRESS_REPLY, "it has no head");
	if (code == CURLE_OK && !err_is_set(&c->why) && hand_on(c, NULL, 0) == 0) {
		c->complete = true;
		loop_timer_disarm(c->timer);
		end_when_sent(c);
		return;
	}
	if (err_is_set(&c->why)) {
		end(c, &c->why);
		return;
	}
	if (c->easy->strayed)
		c->reason = REASON_NOT_PINNED;
	(void)egress_easy_err(c->easy, code, &err);
	if (err.id != ERRID_EGRESS_TLS && !c->easy->strayed && c->reply.status == 0 &&
	    may_try_again(c, 0)) {
		try_again(c);
		return;
	}
	end(c, &err);
}

static void on_look(void *arg)
{
	struct http *h = arg;
	CURLcode code;
	CURL *easy;

	while (httpc_multi_next(h->curl, &easy, &code)) {
		struct call *c = NULL;
		bool began;

		(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&c);
		began = reads_reply(c);
		httpc_multi_remove(h->curl, easy);
		on_done(c, code);
		reading_end(h->note, began);
	}
}

/* TLS and HTTP are curl's to parse. */
static void on_turn(CURL *easy, bool begins, void *arg)
{
	struct http *h = arg;

	if (!begins) {
		reading_end(h->note, h->in_turn);
		h->in_turn = false;
		return;
	}
	for (const struct call *c = h->calls; c; c = c->next)
		if (c->easy && c->easy->curl == easy) {
			h->in_turn = reads_reply(c);
			return;
		}
}

static void attempt(struct call *c)
{
	const struct egress_http_config *cfg = c->http->cfg;
	const struct egress_limits *l = &c->request.rq.limits;
	const struct egress_easy_spec spec = {
		.rq = &c->request.rq,
		.url = &c->url,
		.body = buf_str(&c->body),
		.addrs = c->addrs,
		.n_addrs = c->n_addrs,
		.roots = cfg->roots,
		.credential = cfg->credential,
		.anthropic = cfg->portal && cfg->portal->anthropic,
		.on_header = on_header,
		.on_body = on_body,
		.arg = c,
	};
	enum headers_for what = !cfg->portal		 ? HEADERS_FETCH
				: cfg->portal->anthropic ? HEADERS_ANTHROPIC
							 : HEADERS_OPENAI;

	c->attempts++;
	egress_reply_done(&c->reply);
	egress_reply_begin(&c->reply, what);
	if (egress_easy_new(&spec, &c->easy, &c->why) < 0 ||
	    httpc_multi_add(c->http->curl, c->easy->curl) < 0) {
		if (!err_is_set(&c->why))
			(void)err_set_id(&c->why, ERRID_EGRESS_REQUEST,
					 "curl refuses the request");
		end(c, &c->why);
		return;
	}
	wait_for(c, FOR_HEAD, l->first_byte_usec ? l->first_byte_usec : FIRST_BYTE_USEC);
}

/* ---- where it goes ---- */

static void refuse(struct call *c, enum reason reason, const char *why)
{
	log_kv(LOG_WARN_, "a request was not sent", "host", c->url.host, "reason",
	       reason_word(reason), "why", why ? why : "", NULL);
	(void)reason_set(&c->reason, reason, &c->why, "%s", "");
	end(c, &c->why);
}

static void on_name(enum reason reason, const struct addr *addrs, size_t n,
		    const char *why, void *arg)
{
	struct call *c = arg;

	c->query = NULL;
	if (reason != REASON_NONE) {
		refuse(c, reason, why);
		return;
	}
	assert(n > 0 && n <= RESOLVE_ADDRS_MAX);
	memcpy(c->addrs, addrs, n * sizeof(*addrs));
	c->n_addrs = n;
	attempt(c);
}

static void find_address(struct call *c)
{
	enum reason reason;

	if (c->url.kind == URL_HOST_NAME) {
		c->query = resolve_start(c->http->resolver, c->url.host, c->policy,
					 on_name, c);
		if (!c->query) {
			(void)err_set_id(&c->why, ERRID_EGRESS_BUSY,
					 "too many names at once");
			end(c, &c->why);
			return;
		}
		resolve_whose(c->query, c->http->note, c->job, c->epoch);
		return;
	}
	if (addr_parse(c->url.host, &c->addrs[0]) < 0) {
		refuse(c, REASON_HOST_GRAMMAR, NULL);
		return;
	}
	reason = addr_policy_check(c->policy, &c->addrs[0]);
	if (reason != REASON_NONE) {
		refuse(c, reason, NULL);
		return;
	}
	c->n_addrs = 1;
	attempt(c);
}

/* The whole URL: a portal's is its base and the path, nothing else. */
static int build_url(struct call *c, struct err *err)
{
	const struct egress_portal *portal = c->http->cfg->portal;
	const char *target = c->request.rq.target;
	cleanup_buf struct buf b;

	buf_init(&b, EGRESS_TARGET_MAX_BYTES + URL_BYTES_MAX);
	if ((target[0] == '/') != (portal != NULL))
		return err_set_id(err, ERRID_EGRESS_REQUEST, "%s",
				  portal ? "a portal takes a path" : "it has no host");
	if (portal)
		buf_adds(&b, portal->url);
	buf_adds(&b, target);
	if (!buf_ok(&b))
		return err_set_id(err, ERRID_EGRESS_REQUEST, "its URL is too long");
	return url_parse(b.data, b.len, &c->url, &c->reason, err);
}

static void begin(struct call *c)
{
	const struct egress_request *rq = &c->request.rq;
	usec_t total = rq->limits.total_usec;

	loop_timer_arm(c->total, total ? total : TOTAL_USEC);
	wait_for(c, FOR_NAME, FIRST_BYTE_USEC);
	for (size_t i = 0; i < rq->n_addresses; i++)
		if (addr_policy_allow(c->policy, rq->addresses[i], &c->why) < 0) {
			end(c, &c->why);
			return;
		}
	if (build_url(c, &c->why) < 0) {
		end(c, &c->why);
		return;
	}
	find_address(c);
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

static int on_request(struct http *h, const struct egress_frame *f, struct err *err)
{
	struct call *c;

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
		c->room = reply_max(c);
	if (c->request.rq.body_len == 0)
		begin(c);
	return 0;
}

static int on_data(struct call *c, const struct egress_frame *f, struct err *err)
{
	size_t want = c->request.rq.body_len;

	if (c->waiting != FOR_REQUEST || f->len == 0 || f->len > want - c->body.len)
		return broken(err, "more of a body than it named");
	buf_add(&c->body, f->data, f->len);
	if (c->body.len == want)
		begin(c);
	return 0;
}

/* With room again: the piece that was refused comes anew, and may be refused again. */
static void go_on(struct call *c)
{
	if (!c->paused || c->window < RESUME_BYTES)
		return;
	c->paused = false;
	wait_for(c, FOR_BODY, idle_usec(c));
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
	drain(c);
	if (c->complete) {
		end_when_sent(c);
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
		began = reads_reply(c);
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
	struct http h = {.cfg = cfg, .note = egress_pulse_reading(cfg->pulse)};
	const struct egress_link_ops ops = {on_frame, on_closed, &h};
	struct err err = ERR_INIT;
	int code = -1;

	if (loop_new(&h.loop, &err) == 0 &&
	    httpc_multi_new(h.loop, 0, on_look, &h, &h.curl, &err) == 0) {
		httpc_multi_on_turn(h.curl, on_turn);
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
