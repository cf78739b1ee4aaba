/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * Exchanges: from a request that a front end has read to the last byte of its answer.
 *
 *	waiting ── one ends ──> its turn to be parsed ──> asked ── the vessel's head ──> streaming
 *	   └────────── refusal ──────────────┴── refusal, whole, in the job's words
 *
 * What is more than may be under way, or than may lie here rebuilt, waits in the order in which it
 * came; what is more than may wait is refused.
 *
 * A front end hands a request over and keeps its bytes until the exchange speaks. Parsing
 * is paced per job (struct pace): a burst is free, beyond it bytes cost time, so that a
 * job which sends large bodies for ever takes a small share of the loop.
 */
#include "tomb/broker/proxy.h"
#include "tomb/broker/proxy_gemini.h"
#include "tomb/broker/proxy_priv.h"
#include "tomb/broker/proxy_routes.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/proto/broker_limits.h"
#include "common/str.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* Longer than any provider takes; the job's own time limit ends it before. */
#define CALL_USEC ((usec_t)3600 * USEC_PER_SEC)
#define ANSWER_MAX_BYTES ((size_t)4 << 30)
#define REFUSAL_MAX_BYTES 8192
/* Of one job, all its requests and answers together. */
#define UP_MAX_BYTES ((uint64_t)1 << 30)
#define DOWN_MAX_BYTES ((uint64_t)16 << 30)
/* Rebuilt intents that lie here at once. */
#define INTENTS_MAX_BYTES ((size_t)16 << 20)

/* What may be parsed: a burst, then so much a second; each request costs a little. */
#define PACE_BURST_BYTES ((uint64_t)8 << 20)
#define PACE_BYTES_PER_SEC ((uint64_t)1 << 20)
#define PACE_REQUEST_BYTES 1024

struct pace {
	usec_t full_at; /* when the whole burst is there again */
};

struct proxy {
	struct proxy_config cfg;
	char *phantom;
	struct proxy_http *http;
	struct proxy_floor *floor;
	struct exchange *first, *last; /* in the order in which they came */
	unsigned n_active, n_waiting;
	size_t intents_bytes; /* rebuilt, or to be: as much as came */
	uint64_t seq;
	uint64_t up_bytes, down_bytes;
	struct pace pace;
};

struct exchange {
	struct proxy *proxy;
	struct exchange *prev, *next;
	const struct client_ops *ops;
	void *client;
	struct ask ask; /* its pointers: until it is asked */
	struct intent_header *headers;
	struct loop_timer *turn;
	enum { WAITS, ACTIVE, TOO_MANY } place; /* active: one of inflight_max */
	struct httpc_call *call;
	size_t weight; /* of its intent, as far as it is known */
	size_t intent_bytes;
	int status;	   /* of the vessel's answer; 0: none yet */
	bool streaming;	   /* the head went to the client */
	struct buf reason; /* of a refusal */
	char retry_after[16];
};

const struct proxy_config *proxy_config_of(const struct proxy *p)
{
	return &p->cfg;
}

void proxy_count_refused(const struct proxy *p, const struct err *err)
{
	uint32_t *count = &p->cfg.refused->count[err->id];

	if (*count < UINT32_MAX)
		++*count;
}

void proxy_refuse(const struct proxy *p, const struct err *err, int status,
		  const char *request_id, struct proxy_refusal *ret)
{
	proxy_count_refused(p, err);
	refusal_of_err(ret, err, status, request_id);
}

static int check_key(const struct proxy *p, enum proxy_dialect d,
		     const char *authorization, const char *api_key, struct err *err)
{
	const char *key = api_key;

	if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0)
		key = authorization + 7;
	if (!key)
		return err_set_id(err, ERRID_BROKER_KEY,
				  d == DIALECT_GEMINI
					  ? "no key was sent in x-goog-api-key (in the "
					    "URL it is not taken)"
					  : "no key was sent");
	/* The length is no secret, the rest is compared in constant time. */
	if (strlen(key) != strlen(p->phantom) ||
	    !mem_eq_ct(key, p->phantom, strlen(p->phantom)))
		return err_set_id(err, ERRID_BROKER_KEY, "another key");
	return 0;
}

int proxy_admit(const struct proxy *p, const struct proxy_route *r,
		const char *authorization, const char *api_key, struct err *err)
{
	switch (r->what) {
	case NOT_SERVED:
		return err_set_id(err, ERRID_BROKER_API, "%s", r->instead);
	case PACKAGE_NPM:
	case PACKAGE_PYPI:
	case PACKAGE_CARGO:
	case PACKAGE_GO:
		return p->cfg.packages ? 0
				       : err_set_id(err, ERRID_BROKER_PACKAGES,
						    "egress is not registry");
	case FETCH:
		return 0;
	case ASK_CHAT:
	case ASK_RESPONSES:
	case ASK_EMBEDDINGS:
	case ASK_MESSAGES:
	case ASK_COUNT_TOKENS:
	case ASK_GEMINI:
	case LIST_MODELS:
	case SHOW_MODEL:
		break;
	}
	return check_key(p, r->dialect, authorization, api_key, err);
}

/* ---- pacing ---- */

/* Takes len bytes of the job's share; how long to wait until it has them. */
static usec_t pace_take(struct pace *p, size_t len, usec_t now)
{
	const usec_t burst = PACE_BURST_BYTES * USEC_PER_SEC / PACE_BYTES_PER_SEC;
	usec_t cost =
		((uint64_t)len + PACE_REQUEST_BYTES) * USEC_PER_SEC / PACE_BYTES_PER_SEC;

	if (p->full_at < now)
		p->full_at = now;
	p->full_at += cost;
	return p->full_at - now > burst ? p->full_at - now - burst : 0;
}

/* ---- the end of an exchange ---- */

/* One alone always fits. */
static bool has_room(const struct proxy *p, size_t len)
{
	return p->intents_bytes == 0 || p->intents_bytes + len <= INTENTS_MAX_BYTES;
}

static void set_intent_bytes(struct exchange *x, size_t len)
{
	x->proxy->intents_bytes += len;
	x->proxy->intents_bytes -= x->intent_bytes;
	x->intent_bytes = len;
}

/* Start what waits and may, and nothing before what came sooner. */
static void start_next(struct proxy *p)
{
	usec_t now = clock_boot_usec();

	for (struct exchange *x = p->first;
	     x && p->n_waiting > 0 && p->n_active < p->cfg.inflight_max; x = x->next) {
		if (x->place != WAITS)
			continue;
		if (!has_room(p, x->weight))
			return;
		x->place = ACTIVE;
		p->n_waiting--;
		p->n_active++;
		set_intent_bytes(x, x->weight);
		loop_timer_arm(x->turn, pace_take(&p->pace, x->ask.len, now));
	}
}

/* It became more than there is room for. */
static void wait_again(struct exchange *x, size_t len)
{
	x->place = WAITS;
	x->proxy->n_active--;
	x->proxy->n_waiting++;
	x->weight = len;
	set_intent_bytes(x, 0);
}

static void exchange_free(struct exchange *x)
{
	struct proxy *p = x->proxy;

	if (x->prev)
		x->prev->next = x->next;
	else
		p->first = x->next;
	if (x->next)
		x->next->prev = x->prev;
	else
		p->last = x->prev;
	p->n_active -= x->place == ACTIVE;
	p->n_waiting -= x->place == WAITS;
	set_intent_bytes(x, 0);
	httpc_cancel(x->call);
	loop_timer_free(x->turn);
	free(x->headers);
	buf_done(&x->reason);
	free(x);
	start_next(p);
}

static void exchange_refuse(struct exchange *x, const struct proxy_refusal *r)
{
	const struct client_ops *ops = x->ops;
	enum proxy_dialect d = x->ask.dialect;
	void *client = x->client;

	exchange_free(x);
	ops->refuse(client, r, d);
}

static void exchange_fail(struct exchange *x, const struct err *err)
{
	struct proxy_refusal r;
	struct request_id id;

	request_id_new(&random_real, &id);
	proxy_refuse(x->proxy, err, err_http_status(err), id.s, &r);
	exchange_refuse(x, &r);
}

void exchange_abandon(struct exchange *x)
{
	exchange_free(x);
}

/* ---- the vessel's answer ---- */

/* The status that a provider, a web server or a registry gave; 0: it is a refusal. */
static int upstream_status(struct httpc_call *call, int status)
{
	const char *text = httpc_header(call, "Lychgate-Upstream-Status");
	struct err ignored = ERR_INIT;
	uint64_t n = 0;

	if (status != 200)
		return 0;
	if (!text)
		return 200;
	return parse_u64(text, 200, 599, &n, &ignored) == 0 ? (int)n : 0;
}

static void on_head(struct httpc_call *call, int status, void *arg)
{
	struct exchange *x = arg;
	const char *retry = httpc_header(call, "Retry-After");
	int upstream = upstream_status(call, status);

	x->status = status;
	/* The vessel has it: the copies here are not needed any more. */
	set_intent_bytes(x, 0);
	start_next(x->proxy);
	if (!upstream) {
		if (retry && str_copy(x->retry_after, sizeof(x->retry_after), retry) < 0)
			x->retry_after[0] = '\0';
		return;
	}
	x->streaming = true;
	x->ops->head(x->client, upstream, call);
}

static void on_body(struct httpc_call *call, const void *data, size_t len, void *arg)
{
	struct exchange *x = arg;
	const struct client_ops *ops = x->ops;
	void *client = x->client;

	if (!x->streaming) {
		if (x->reason.len + len <= REFUSAL_MAX_BYTES)
			buf_add(&x->reason, data, len);
		return;
	}
	x->proxy->down_bytes += len;
	if (x->proxy->down_bytes > DOWN_MAX_BYTES) {
		exchange_free(x);
		ops->cut(client);
		return;
	}
	ops->data(client, data, len);
	if (ops->backlog(client) > PROXY_BACKLOG_PAUSE_BYTES)
		httpc_pause(call);
}

static void on_end(const struct err *why, void *arg)
{
	struct exchange *x = arg;
	const struct client_ops *ops = x->ops;
	void *client = x->client;
	struct proxy_refusal r;
	struct err err = ERR_INIT;

	x->call = NULL;
	if (x->streaming) {
		exchange_free(x);
		if (why)
			ops->cut(client);
		else
			ops->end(client);
	} else if (why) {
		(void)err_set_id(&err, ERRID_BROKER_AWAY, "%s", why->msg);
		exchange_fail(x, &err);
	} else {
		refusal_of_reply(&r, x->status, buf_str(&x->reason), x->reason.len);
		/* agents take a 403 for a wrong key, say so, and stop; it is the request that
		 * is not acceptable */
		if (r.status == 403 && x->ask.dialect != DIALECT_PLAIN)
			r.status = 400;
		memcpy(r.retry_after, x->retry_after, sizeof(r.retry_after));
		exchange_refuse(x, &r);
	}
}

void exchange_drained(struct exchange *x)
{
	if (x->call)
		httpc_resume(x->call);
}

/* ---- asking ---- */

/* The part of the dialect's API; NULL: the one that holds a conversation. */
static const char *api_of(enum proxy_what what)
{
	return what == ASK_RESPONSES	  ? "responses"
	       : what == ASK_EMBEDDINGS	  ? "embeddings"
	       : what == ASK_COUNT_TOKENS ? "count_tokens"
					  : NULL;
}

static int write_ask(struct exchange *x, uint64_t seq, struct buf *out, struct err *err)
{
	const struct ask *a = &x->ask;
	struct gemini_call gemini;
	struct intent_ask q = {
		.dialect = a->dialect,
		.api = api_of(a->what),
		.headers = a->headers,
		.n_headers = a->n_headers,
		.body = a->body,
		.len = a->len,
	};

	if (a->what == ASK_GEMINI) {
		if (gemini_call_read(a->url, a->alt, &gemini, err) < 0)
			return -1;
		q.api = gemini.api;
		q.model = gemini.model;
		q.stream = gemini.stream;
	}
	return intent_ask(seq, &q, out, err);
}

static int write_fetch(struct exchange *x, uint64_t seq, struct buf *out, struct err *err)
{
	const struct ask *a = &x->ask;
	const struct intent_fetch f = {
		.method = a->method,
		.url = a->url,
		.headers = a->headers,
		.n_headers = a->n_headers,
		.body = a->body,
		.len = a->len,
	};

	return intent_fetch(seq, &f, out, err);
}

static int write_package(struct exchange *x, uint64_t seq, struct buf *out,
			 struct err *err)
{
	const struct ask *a = &x->ask;
	const struct intent_package g = {
		.registry = a->what == PACKAGE_NPM     ? "npm"
			    : a->what == PACKAGE_PYPI  ? "pypi"
			    : a->what == PACKAGE_CARGO ? "cargo"
						       : "go",
		.path = a->url,
		.headers = a->headers,
		.n_headers = a->n_headers,
	};

	return intent_package(seq, &g, out, err);
}

static int write_intent(struct exchange *x, struct buf *out, struct buf *target,
			struct err *err)
{
	const struct ask *a = &x->ask;
	uint64_t seq = ++x->proxy->seq;

	switch (a->what) {
	case ASK_CHAT:
	case ASK_RESPONSES:
	case ASK_EMBEDDINGS:
	case ASK_MESSAGES:
	case ASK_COUNT_TOKENS:
	case ASK_GEMINI:
		buf_adds(target, "/work/v1/ask");
		return write_ask(x, seq, out, err);
	case LIST_MODELS:
		return intent_models(a->dialect, NULL, target, err);
	case SHOW_MODEL:
		return intent_models(a->dialect, a->url, target, err);
	case FETCH:
		buf_adds(target, "/work/v1/fetch");
		return write_fetch(x, seq, out, err);
	case PACKAGE_NPM:
	case PACKAGE_PYPI:
	case PACKAGE_CARGO:
	case PACKAGE_GO:
		buf_adds(target, "/work/v1/package");
		return write_package(x, seq, out, err);
	case NOT_SERVED:
		break;
	}
	return err_set(err, ERR_INTERNAL, "unknown request");
}

static int count_bytes(struct exchange *x, size_t len, struct err *err)
{
	struct proxy *p = x->proxy;

	p->up_bytes += len;
	if (p->up_bytes > UP_MAX_BYTES || p->down_bytes >= DOWN_MAX_BYTES)
		return err_set_id(err, ERRID_BROKER_BYTES, "%s",
				  p->up_bytes > UP_MAX_BYTES ? "sent" : "received");
	return 0;
}

/* 1: it waits. */
static int send_intent(struct exchange *x, struct err *err)
{
	static const struct httpc_stream_ops ops = {on_head, on_body, on_end};
	cleanup_buf struct buf intent, target;
	struct vessel_headers h;
	struct httpc_request rq;
	int r;

	buf_init(&intent, INTENT_MAX_BYTES);
	buf_init(&target, INTENT_TARGET_MAX_BYTES);
	if (write_intent(x, &intent, &target, err) < 0)
		return -1;
	set_intent_bytes(x, 0);
	if (!has_room(x->proxy, intent.len)) {
		wait_again(x, intent.len);
		return 1;
	}
	set_intent_bytes(x, intent.len);
	if (count_bytes(x, intent.len, err) < 0)
		return -1;
	vessel_headers(&h, x->proxy->cfg.peer, &x->proxy->cfg.key);
	rq = (struct httpc_request){
		.method = x->ask.what == LIST_MODELS || x->ask.what == SHOW_MODEL
				  ? HTTP_M_GET
				  : HTTP_M_POST,
		.target = buf_str(&target),
		.headers = h.line,
		.body = buf_str(&intent),
		.body_len = intent.len,
		.timeout_usec = CALL_USEC,
		.reply_max_bytes = ANSWER_MAX_BYTES,
	};
	r = httpc_stream(x->proxy->cfg.vessel, &rq, &ops, x, &x->call, err);
	vessel_headers_done(&h);
	return r;
}

static void on_turn(void *arg)
{
	struct exchange *x = arg;
	struct err err = ERR_INIT;

	if (x->place == TOO_MANY) {
		(void)err_set_id(&err, ERRID_BROKER_INFLIGHT, "%u are under way, %u wait",
				 x->proxy->n_active, x->proxy->n_waiting);
		exchange_fail(x, &err);
	} else if (send_intent(x, &err) < 0) {
		exchange_fail(x, &err);
	}
}

struct exchange *exchange_begin(struct proxy *p, const struct ask *a,
				const struct client_ops *ops, void *client)
{
	struct exchange *x = xnew(struct exchange);

	x->proxy = p;
	x->ops = ops;
	x->client = client;
	x->ask = *a;
	if (a->n_headers > 0) {
		x->headers = xcalloc(a->n_headers, sizeof(*x->headers));
		memcpy(x->headers, a->headers, a->n_headers * sizeof(*x->headers));
		x->ask.headers = x->headers;
	}
	buf_init(&x->reason, REFUSAL_MAX_BYTES);
	x->turn = loop_timer_new(p->cfg.loop, on_turn, x);
	x->prev = p->last;
	if (x->prev)
		x->prev->next = x;
	else
		p->first = x;
	p->last = x;
	x->weight = a->len;
	if (p->n_waiting >= broker_waiting_max(p->cfg.inflight_max)) {
		x->place = TOO_MANY;
		loop_timer_arm(x->turn, 0);
		return x;
	}
	p->n_waiting++;
	start_next(p);
	return x;
}

/* ---- life ---- */

static struct proxy *proxy_new(const struct proxy_config *cfg)
{
	struct proxy *p = xnew(struct proxy);

	p->cfg = *cfg;
	p->phantom = xstrdup(cfg->phantom);
	p->cfg.phantom = p->phantom;
	return p;
}

int proxy_new_http(const struct proxy_config *cfg, int listen_fd, struct proxy **ret,
		   struct err *err)
{
	struct proxy *p = proxy_new(cfg);

	if (proxy_http_new(p, listen_fd, &p->http, err) < 0) {
		proxy_free(p);
		return -1;
	}
	*ret = p;
	return 0;
}

int proxy_new_floor(const struct proxy_config *cfg, int fd, struct proxy **ret,
		    struct err *err)
{
	struct proxy *p = proxy_new(cfg);

	if (proxy_floor_new(p, fd, &p->floor, err) < 0) {
		proxy_free(p);
		return -1;
	}
	*ret = p;
	return 0;
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	/* Each lets go of its exchanges first. */
	proxy_http_free(p->http);
	proxy_floor_free(p->floor);
	assert(!p->first);
	explicit_bzero(p->phantom, strlen(p->phantom));
	explicit_bzero(&p->cfg.key, sizeof(p->cfg.key));
	free(p->phantom);
	free(p);
}
