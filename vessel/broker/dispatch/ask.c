/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * An ask: one request to a model, through the portal that offers it.
 */
#include "vessel/broker/intents/ask.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/gate/reply.h"
#include "vessel/broker/intents/ask_cost.h"
#include "vessel/broker/intents/ask_reply.h"
#include "vessel/egress/headers.h"
#include <string.h>

#define INTENT_DEPTH_MAX 28
/* Of texts to be embedded, reserved beside what they are. */
#define GROWTH_TOKENS 1024u
/* An event that was held back, and what came with its end. */
#define PIECE_MAX_BYTES (4 * ASK_EVENT_MAX_BYTES)

struct ask_own {
	struct json *intent;
	const char *version, *beta; /* Anthropic's fields, of the intent; NULL: none */
	const char *named; /* the model, of Gemini's path; NULL: the request names it */
	const struct json *request;
	struct ask ask;
	struct ask_cost cost;
	struct ask_prices prices;
	uint64_t input, cap; /* tokens: reserved for the request; written into it */
	const struct conf_portal *portal;
	const struct conf_model *model;
	struct ask_reply *reply;
	struct gate_reply *put_right;
};

static int bad(struct err *err, const char *what)
{
	return err_set_id(err, ERRID_BROKER_REQUEST, "%s", what);
}

static const enum portal_api talks[PORTAL_KIND_MAX_] = {
	[PORTAL_OPENAI] = API_CHAT,
	[PORTAL_ANTHROPIC] = API_MESSAGES,
	[PORTAL_GEMINI] = API_GENERATE,
};

/* A dialect is the kind of API, in whose words the job is answered; without the name of one
 * of its parts it is the one that holds a conversation. */
static bool find_api(const char *dialect, const char *name, enum portal_api *ret)
{
	enum portal_kind kind;

	if (!dispatch_find_dialect(dialect, &kind))
		return false;
	if (!name) {
		*ret = talks[kind];
		return true;
	}
	for (unsigned a = 0; a < PORTAL_API_MAX_; a++)
		if (portal_api_kind((enum portal_api)a) == kind &&
		    str_eq(portal_api_name((enum portal_api)a), name)) {
			*ret = (enum portal_api)a;
			return true;
		}
	return false;
}

static int read_intent(struct dispatch_call *c, enum portal_api *ret_api,
		       bool *ret_stream, struct err *err)
{
	struct ask_own *own = c->own;
	static const char *const keys[] = {"seq",     "dialect", "api",	 "stream",
					   "request", "version", "beta", "model"};
	const char *dialect, *api = NULL;
	size_t len;
	const void *body = httpd_req_body(c->req, &len);

	if (json_parse(body, len, INTENT_DEPTH_MAX, &own->intent, err) < 0 ||
	    json_check_keys(own->intent, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(own->intent, "seq", true, 1, INT64_MAX, &c->books.seq, err) <
		    0 ||
	    json_get_str(own->intent, "dialect", true, 16, &dialect, err) < 0 ||
	    json_get_str(own->intent, "api", false, 16, &api, err) < 0 ||
	    json_get_bool(own->intent, "stream", true, ret_stream, err) < 0 ||
	    json_get_obj(own->intent, "request", true, &own->request, err) < 0 ||
	    json_get_str(own->intent, "model", false, ASK_MODEL_MAX_BYTES, &own->named,
			 err) < 0)
		return -1;
	return find_api(dialect, api, ret_api) ? 0 : bad(err, "dialect");
}

/* Only what the tomb would have written itself. */
static int read_fields(struct dispatch_call *c, enum portal_kind dialect, struct err *err)
{
	struct ask_own *own = c->own;
	char betas[BROKER_BETAS_SIZE];

	if (json_get_str(own->intent, "version", false, BROKER_BETAS_SIZE, &own->version,
			 err) < 0 ||
	    json_get_str(own->intent, "beta", false, BROKER_BETAS_SIZE, &own->beta, err) <
		    0)
		return -1;
	if (dialect != PORTAL_ANTHROPIC && (own->version || own->beta))
		return bad(err, "version and beta belong to another dialect");
	if ((dialect == PORTAL_GEMINI) != (own->named != NULL))
		return bad(err, "model: beside the request in Gemini's dialect alone");
	if (own->version && !broker_version_is_valid(own->version))
		return bad(err, "version");
	if (own->beta && (!broker_betas(own->beta, betas) || !str_eq(betas, own->beta)))
		return bad(err, "beta");
	return 0;
}

/* The portal that offers the model; where none has the API, one of another kind, so that the
 * ward is asked about it before the job is told. */
static int find_portal(struct ask_own *own, const struct conf_broker *b, struct err *err)
{
	const char *model = own->ask.model;

	own->portal = conf_portal_of_model(b, own->ask.dialect, model, &own->model);
	for (unsigned k = 0; k < PORTAL_KIND_MAX_ && !own->portal; k++)
		own->portal =
			conf_portal_of_model(b, (enum portal_kind)k, model, &own->model);
	return own->portal ? 0 : err_set_id(err, ERRID_BROKER_MODEL, "%s", model);
}

static int ask_intent(struct dispatch_call *c, struct err *err)
{
	struct ask_own *own = c->own;
	enum portal_api api = API_CHAT;
	bool stream = false;

	if (read_intent(c, &api, &stream, err) < 0 ||
	    read_fields(c, portal_api_kind(api), err) < 0 ||
	    ask_read(own->request, api, stream, &own->ask, err) < 0 ||
	    (own->named && ask_name(&own->ask, own->named, err) < 0) ||
	    ask_cost_read(own->request, api, &own->cost, err) < 0)
		return -1;
	ask_strip(&own->ask, json_obj_child(own->intent, "request"));
	if (find_portal(own, c->d->cfg.broker, err) < 0)
		return -1;
	if (str_fmt(c->target, sizeof(c->target), "portal:%s", own->portal->name) < 0)
		return err_set(err, ERR_INTERNAL, "a portal's name is too long");
	ward_ask_portal(own->portal, NULL, &c->ward);
	return 0;
}

/* Only who may ask at all learns what a portal has, and what costs how much. */
static int ask_judged(struct dispatch_call *c, int r, struct err *err)
{
	struct ask_own *own = c->own;
	char apis[PORTAL_APIS_TEXT_SIZE];

	if (r < 0)
		return -1;
	if (!conf_portal_has(own->portal, own->ask.api)) {
		conf_portal_apis(own->portal, apis);
		return err_set_id(err, ERRID_BROKER_API,
				  "the portal '%s' offers '%.64s' without %s; it has: %s",
				  own->portal->name, own->ask.model,
				  portal_api_name(own->ask.api), apis);
	}
	if (ask_prices_of(&own->cost, own->beta, own->portal, own->model, &own->prices,
			  err) < 0)
		return -1;
	return ask_output(&own->cost, own->model, &c->want.least, &c->want.most, err);
}

/* Tokens of the input and money for them, and for each token of an answer its part. */
static void ask_estimate(struct dispatch_call *c)
{
	struct ask_own *own = c->own;
	struct budget_amounts *base = &c->want.base, *unit = &c->want.unit;
	size_t len;

	(void)httpd_req_body(c->req, &len);
	len += ASK_FINISH_BYTES;
	own->input = ask_input_most(&own->cost, &own->prices, own->model, len);
	/* without an answer nothing else pays for texts that grow as they are replaced */
	if (own->ask.api == API_EMBEDDINGS)
		own->input += GROWTH_TOKENS;
	c->up_reserved = dispatch_up_most(c, len);
	base->n[BUDGET_TOKENS] = (int64_t)own->input;
	base->n[BUDGET_MONEY] =
		(int64_t)ask_price_input(&own->cost, &own->prices, own->input);
	base->n[BUDGET_BYTES] = (int64_t)(c->up_reserved + DISPATCH_ROOM_BYTES);
	unit->n[BUDGET_TOKENS] = (int64_t)(own->cost.choices * BUDGET_UNIT);
	unit->n[BUDGET_MONEY] = (int64_t)(own->cost.choices * own->prices.output);
}

static struct gate_parts *ask_parts(struct dispatch_call *c)
{
	struct ask_own *own = c->own;
	struct gate_parts *p = gate_parts_new();

	gate_parts_add_json(p, own->request);
	gate_job_mark_issued(c->job->gate, c->target, own->request, p, 0);
	/* behind the request: it is written from its own parts */
	if (own->beta)
		gate_parts_add(p, GATE_PART_HEADER, "anthropic-beta", own->beta,
			       strlen(own->beta));
	return p;
}

static int ask_write(struct dispatch_call *c, const struct gate_answer *a,
		     struct err *err)
{
	struct ask_own *own = c->own;
	struct jsonw w;

	jsonw_init(&w, &c->body);
	if (a->verdict == GATE_ANONYMISE)
		gate_parts_write_json(a->parts, 0, own->request, &w);
	else
		json_write(own->request, &w);
	return buf_ok(&c->body) ? 0 : bad(err, "the request is too large");
}

static uint64_t parts_of(uint64_t n, uint64_t each)
{
	return (n + each - 1) / each;
}

/* Of an answer's tokens, how many pay for what the request has grown by since they were
 * reserved: what stands for a text that was taken out may be longer. */
static uint64_t growth(const struct dispatch_call *c)
{
	struct ask_own *own = c->own;
	uint64_t input = ask_input_most(&own->cost, &own->prices, own->model,
					c->body.len + ASK_FINISH_BYTES),
		 price = (uint64_t)c->want.unit.n[BUDGET_MONEY], tokens, money, for_money;

	if (input <= own->input)
		return 0;
	tokens = parts_of(input - own->input, own->cost.choices);
	money = ask_price_input(&own->cost, &own->prices, input) -
		(uint64_t)c->want.base.n[BUDGET_MONEY];
	for_money = !money		 ? 0
		    : !price		 ? c->units
		    : money > UINT32_MAX ? c->units
					 : parts_of(money * BUDGET_UNIT, price);
	return tokens > for_money ? tokens : for_money;
}

static int put_cap(struct dispatch_call *c, struct err *err)
{
	struct ask_own *own = c->own;
	uint64_t less = growth(c);

	if (less > 0 && c->units < less + c->want.least)
		return err_set_id(err, ERRID_BUDGET_TOKENS,
				  "what stands for its private texts is longer");
	own->cap = c->units - less;
	ask_finish(&own->ask, own->portal->output_cap, own->cap, &c->body);
	return buf_ok(&c->body) ? 0 : bad(err, "the request is too large");
}

static int ask_start(struct dispatch_call *c, struct err *err)
{
	struct ask_own *own = c->own;
	struct egress_header headers[4] = {
		{"content-type", "application/json"},
		{"accept", "application/json, text/event-stream"}};
	size_t n_headers = 2;
	char target[ASK_TARGET_SIZE];
	const struct conf_egress *e = &c->d->cfg.broker->egress;

	bool began = dispatch_reads(c, READING_REQUEST);
	int r = put_cap(c, err);

	dispatch_has_read(c->d, began);
	if (r < 0 || ask_target(&own->ask, own->portal->url.path, target, err) < 0)
		return -1;
	if (own->version)
		headers[n_headers++] =
			(struct egress_header){"anthropic-version", own->version};
	if (own->beta)
		headers[n_headers++] =
			(struct egress_header){"anthropic-beta", own->beta};
	const struct egress_request rq = {
		.portal = own->portal->name,
		.method = "POST",
		.target = target,
		.headers = headers,
		.n_headers = n_headers,
		.body = c->body.data,
		.body_len = c->body.len,
		.limits = {.reply_max_bytes = e->response_max_bytes},
	};

	return dispatch_send(c, &rq, err);
}

static void ask_describe(const struct dispatch_call *c, struct jsonw *w)
{
	struct ask_own *own = c->own;

	if (!own->ask.model)
		return;
	jsonw_kstr(w, "model", own->ask.model);
	jsonw_kstr(w, "api", portal_api_name(own->ask.api));
	jsonw_kbool(w, "stream", own->ask.stream);
	if (own->beta)
		jsonw_kstr(w, "beta", own->beta);
	/* at most: what is left by then may be less */
	jsonw_ku64(w, "max_output", c->want.most * own->cost.choices);
}

/* ---- the reply ---- */

static const char *header_of(const struct egress_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_headers; i++)
		if (str_eq(h->headers[i].name, name))
			return h->headers[i].value;
	return "";
}

/* What an SDK reads; an error's page in HTML helps nobody but whoever probes. */
static int ask_head(struct dispatch_call *c, const struct egress_head *h, struct err *err)
{
	struct ask_own *own = c->own;
	const char *type = header_of(h, "content-type");
	bool is_stream;

	if (headers_is_type(type, "text/event-stream"))
		type = "text/event-stream; charset=utf-8";
	else if (headers_is_type(type, "application/json"))
		type = "application/json";
	else if (headers_is_type(type, "text/plain"))
		type = "text/plain; charset=utf-8";
	else
		return err_set_id(err, ERRID_EGRESS_REPLY,
				  "the portal answered %u with a type that is not text",
				  h->status);
	is_stream = str_starts(type, "text/event-stream");
	own->reply = ask_reply_new(&own->ask, is_stream);
	own->put_right = gate_reply_new(c->job->gate, c->target, is_stream);
	dispatch_stream(c, h, type);
	return 0;
}

static int ask_body(struct dispatch_call *c, const void *data, size_t len,
		    struct buf *out, struct err *err)
{
	struct ask_own *own = c->own;
	cleanup_buf struct buf text;

	buf_init(&text, PIECE_MAX_BYTES);
	ask_reply_feed(own->reply, data, len, &text);
	if (!buf_ok(&text))
		return err_set(err, ERR_INTERNAL, "a piece of a reply does not fit");
	if (ask_reply_least(own->reply) > own->cap * own->cost.choices)
		return err_set_id(err, ERRID_BUDGET_TOKENS,
				  "the provider goes on beyond the cap of the request");
	gate_reply_feed(own->put_right, text.data, text.len, out);
	return 0;
}

static int ask_end(struct dispatch_call *c, struct buf *out, struct err *err)
{
	struct ask_own *own = c->own;
	cleanup_buf struct buf text;

	buf_init(&text, PIECE_MAX_BYTES);
	ask_reply_end(own->reply, &text);
	if (!buf_ok(&text))
		return err_set(err, ERR_INTERNAL, "the end of a reply does not fit");
	gate_reply_feed(own->put_right, text.data, text.len, out);
	gate_reply_end(own->put_right, out);
	return 0;
}

/* By its provider, which says so before it begins; what stands between us and it may say
 * something else when it is done with it. */
static bool was_refused(unsigned status)
{
	return (status >= 400 && status < 500 && status != 408 && status != 499) ||
	       status == 500 || status == 501 || status == 503 || status == 529;
}

/* An error of the provider costs nothing. What is known of a whole reply costs what it says;
 * of any other all that was reserved, for it may have been carried out to its end. */
static void ask_actual(const struct dispatch_call *c, struct budget_amounts *ret)
{
	struct ask_own *own = c->own;
	struct ask_usage u = {0};
	uint64_t money;

	if (was_refused(c->status))
		return;
	if (own->reply)
		u = ask_reply_usage(own->reply);
	/* this dialect does not tell what of the rest was written */
	if (own->ask.dialect == PORTAL_OPENAI && own->cost.writes_cache)
		u.tokens.cache_write = u.tokens.input;
	money = ask_price(&own->prices, &u.tokens);
	ret->n[BUDGET_TOKENS] = (int64_t)(u.tokens.input + u.tokens.output);
	ret->n[BUDGET_MONEY] = (int64_t)money;
	if (u.is_known && dispatch_is(c, IS_WHOLE)) {
		c->d->fig.tokens_in += u.tokens.input;
		c->d->fig.tokens_out += u.tokens.output;
		return;
	}
	for (unsigned i = BUDGET_TOKENS; i <= BUDGET_MONEY; i++)
		if (ret->n[i] < c->estimate.n[i])
			ret->n[i] = c->estimate.n[i];
}

static void ask_done(struct dispatch_call *c)
{
	struct ask_own *own = c->own;

	ask_reply_free(own->reply);
	gate_reply_free(own->put_right);
	json_free(own->intent);
}

const struct dispatch_kind dispatch_kind_ask = {
	.name = "ask",
	.own_size = sizeof(struct ask_own),
	.read = ask_intent,
	.judged = ask_judged,
	.estimate = ask_estimate,
	.parts = ask_parts,
	.write = ask_write,
	.start = ask_start,
	.describe = ask_describe,
	.head = ask_head,
	.body = ask_body,
	.end = ask_end,
	.actual = ask_actual,
	.done = ask_done,
};
