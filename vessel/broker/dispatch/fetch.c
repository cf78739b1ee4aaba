/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A fetch: one URL for a job, by the worker that has no key, or, where a rule says so and
 * at the place of a key, by that key's. What a URL, a header and a reply may be is
 * fetch.h's, what the ward says fetch_ward.h's; here they meet the steps.
 */
#include "common/cleanup.h"
#include "common/log.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/dispatch/unescaped.h"
#include "vessel/broker/gate/reply.h"
#include "vessel/broker/intents/fetch_git.h"
#include "vessel/broker/intents/fetch_keys.h"
#include "vessel/broker/intents/fetch_ward.h"
#include "vessel/broker/intents/git_refs.h"
#include <string.h>

#define INTENT_DEPTH_MAX 6
#define URL_MAX_BYTES (2 * (size_t)URL_BYTES_MAX)

struct fetch_own {
	struct json *intent;
	struct fetch fetch;
	struct fetch_reply reply;
	struct gate_restore *put_back;
	struct git_refs refs; /* of GIT_PUSH_REFS */
	struct buf url;	      /* as it is sent */
	char path[URL_BYTES_MAX + 1];
	bool has_key; /* by the rules that permitted it */
};

static int read_intent(struct dispatch_call *c, struct err *err)
{
	struct fetch_own *own = c->own;
	size_t max = (size_t)c->d->cfg.broker->egress.request_max_bytes, len;
	const void *body = httpd_req_body(c->req, &len);

	if (json_parse(body, len, INTENT_DEPTH_MAX, &own->intent, err) < 0 ||
	    json_get_u64(own->intent, "seq", true, 1, INT64_MAX, &c->books.seq, err) < 0)
		return -1;
	return fetch_read(own->intent, max, &own->fetch, &c->reason, err);
}

static int fetch_intent(struct dispatch_call *c, struct err *err)
{
	struct fetch_own *own = c->own;

	if (c->hops == 0 && read_intent(c, err) < 0)
		return -1;
	fetch_ward_ask(&own->fetch, own->path, &c->ward);
	buf_done(&own->url);
	buf_init(&own->url, URL_MAX_BYTES);
	fetch_target(&own->fetch, &own->url);
	return buf_ok(&own->url) ? 0 : err_set(err, ERR_INTERNAL, "a URL does not fit");
}

/* The job asked for another host than the one that is refused. */
static int say_where(const struct fetch_own *own, struct err *err)
{
	const struct err was = *err;
	cleanup_buf struct buf origin = {.max = URL_MAX_BYTES};

	url_write_origin(&own->fetch.url, &origin);
	return err_set_id(err, was.id, "%.100s; a redirect leads to %s", was.msg,
			  buf_str(&origin));
}

static bool has_key(const struct dispatch_call *c, const struct ward_verdict *v)
{
	const struct fetch_own *own = c->own;
	const char *target;

	return fetch_key(&own->fetch, c->d->cfg.broker, v, &target) != NULL;
}

static int fetch_judged(struct dispatch_call *c, int r, struct err *err)
{
	struct fetch_own *own = c->own;
	bool odd = false;

	if (fetch_ward_judge(&own->fetch, c->d->cfg.broker, &c->ward, r, &c->verdict,
			     c->d->labels, c->lease.job, dispatch_now(c->d), &odd,
			     &c->reason, err) < 0)
		return c->hops ? say_where(own, err) : -1;
	if (odd)
		dispatch_log_odd_name(c, own->fetch.url.host);
	own->has_key = has_key(c, &c->verdict);
	return c->verdict.git == GIT_NONE
		       ? 0
		       : fetch_git_request(&own->fetch, c->verdict.git, &c->reason, err);
}

static int fetch_still(const struct dispatch_call *c, int r, const struct ward_verdict *v,
		       struct err *err)
{
	struct fetch_own *own = c->own;
	enum reason why = REASON_NONE;

	if (fetch_ward_judge_url(&own->fetch.url, c->d->cfg.broker, &c->ward, r, v, &why,
				 err) < 0)
		return -1;
	return own->has_key && !has_key(c, v)
		       ? err_set(err, ERR_DENIED, "its key is for another place now")
		       : 0;
}

static void fetch_estimate(struct dispatch_call *c)
{
	struct fetch_own *own = c->own;

	/* a redirect may take the body along */
	c->up_reserved =
		dispatch_up_most(c, own->fetch.body_len) * (1 + FETCH_REDIRECTS_MAX);
	c->want.base.n[BUDGET_BYTES] = (int64_t)(c->up_reserved + DISPATCH_ROOM_BYTES);
}

static enum gate_part_kind body_kind(const struct dispatch_call *c)
{
	switch (c->verdict.git) {
	case GIT_FETCH:
		return GATE_PART_GIT_FETCH;
	case GIT_PUSH:
		return GATE_PART_GIT_PUSH;
	case GIT_NONE:
	case GIT_REFS:
	case GIT_PUSH_REFS:
	case GIT_REQUEST_MAX_:
		break;
	}
	return GATE_PART_TEXT;
}

/* Registered terms and canaries are looked for in what its reader gets out of it, too. */
static void add_unescaped(struct gate_parts *p, const struct fetch_own *own)
{
	cleanup_buf struct buf read;

	buf_init(&read, own->fetch.body_len);
	if (unescaped(own->fetch.body, own->fetch.body_len, &read))
		gate_parts_add(p, GATE_PART_ECHO, "body", buf_str(&read), read.len);
}

static struct gate_parts *fetch_parts(struct dispatch_call *c)
{
	struct fetch_own *own = c->own;
	struct gate_parts *p = gate_parts_new();

	gate_parts_add(p, GATE_PART_URL, "url", own->url.data, own->url.len);
	for (size_t i = 0; i < own->fetch.headers.n; i++) {
		const struct header *h = &own->fetch.headers.h[i];
		char line[HEADER_NAME_MAX + HEADER_VALUE_MAX + 4];

		if (str_fmt(line, sizeof(line), "%s: %s", h->name, h->value) == 0)
			gate_parts_add(p, GATE_PART_HEADER, h->name, line, strlen(line));
		else
			p->overflow = true;
	}
	if (own->fetch.body_len && body_kind(c) == GATE_PART_TEXT)
		add_unescaped(p, own);
	if (own->fetch.body_len)
		gate_parts_add(p, body_kind(c), "body", own->fetch.body,
			       own->fetch.body_len);
	return p;
}

/* The body may be anonymised, it is the last part; a URL or a header may not (gate.h). */
static int fetch_write(struct dispatch_call *c, const struct gate_answer *a,
		       struct err *err)
{
	struct fetch_own *own = c->own;

	if (a->verdict == GATE_ANONYMISE && own->fetch.body_len) {
		const struct gate_part *body = &a->parts->part[a->parts->n - 1];

		buf_add(&c->body, body->data, body->len);
	} else {
		buf_add(&c->body, own->fetch.body ? own->fetch.body : "",
			own->fetch.body_len);
	}
	return buf_ok(&c->body)
		       ? 0
		       : err_set_id(err, ERRID_HTTP_BODY, "the body is too large");
}

static int fetch_start(struct dispatch_call *c, struct err *err)
{
	struct fetch_own *own = c->own;
	const struct conf_egress *e = &c->d->cfg.broker->egress;
	struct egress_header headers[HEADERS_MAX];
	const char *target = buf_str(&own->url);
	const char *key = fetch_key(&own->fetch, c->d->cfg.broker, &c->verdict, &target);

	for (size_t i = 0; i < own->fetch.headers.n && i < HEADERS_MAX; i++)
		headers[i] = (struct egress_header){own->fetch.headers.h[i].name,
						    own->fetch.headers.h[i].value};
	/* the worker of a key knows its own */
	const struct conf_addresses *named = key ? NULL : c->verdict.addresses;
	bool is_text = c->verdict.replies == WARD_TEXT && c->verdict.git == GIT_NONE;
	const struct egress_request rq = {
		.portal = key,
		.method = fetch_method_name(own->fetch.method),
		.target = target,
		.headers = headers,
		.n_headers = own->fetch.headers.n,
		.body = c->body.data,
		.body_len = c->body.len,
		.addresses = named ? (const char *const *)named->v : NULL,
		.n_addresses = named ? named->n : 0,
		/* a file, as a registry's */
		.limits = {.reply_max_bytes = is_text ? e->response_max_bytes
						      : e->package_max_bytes},
	};

	return dispatch_send(c, &rq, err);
}

/* Where it goes, without the query: that is the job's text. */
static void fetch_describe(const struct dispatch_call *c, struct jsonw *w)
{
	struct fetch_own *own = c->own;
	const char *target, *key;
	struct buf origin;

	if (c->reason != REASON_NONE)
		jsonw_kstr(w, "reason", reason_word(c->reason));
	if (!own->fetch.url.host[0])
		return;
	buf_init(&origin, URL_MAX_BYTES);
	url_write_origin(&own->fetch.url, &origin);
	jsonw_kstr(w, "method", fetch_method_name(own->fetch.method));
	jsonw_kstr(w, "origin", buf_str(&origin));
	jsonw_ku64(w, "redirects", own->fetch.redirects);
	key = fetch_key(&own->fetch, c->d->cfg.broker, &c->verdict, &target);
	if (key)
		jsonw_kstr(w, "credential", key);
	if (c->verdict.git != GIT_NONE)
		jsonw_kstr(w, "protocol", ward_protocol_name(WARD_GIT));
	if (c->verdict.replies != WARD_TEXT)
		jsonw_kstr(w, "replies", ward_replies_name(c->verdict.replies));
	buf_done(&origin);
}

/* How a text of that type writes what stands in it. */
static enum gate_form form_of(const char *type)
{
	return strstr(type, "json") || strstr(type, "javascript") ||
			       headers_is_type(type, "text/event-stream")
		       ? GATE_FORM_JSON
		       : GATE_FORM_TEXT;
}

static int fetch_head(struct dispatch_call *c, const struct egress_head *h,
		      struct err *err)
{
	struct fetch_own *own = c->own;
	struct header_offer offers[EGRESS_HEADERS_MAX];
	struct egress_header back[HEADERS_MAX];
	struct egress_head clean = {.status = h->status, .headers = back};
	const char *type = NULL;
	int r;

	for (size_t i = 0; i < h->n_headers && i < EGRESS_HEADERS_MAX; i++)
		offers[i] =
			(struct header_offer){h->headers[i].name, h->headers[i].value};
	own->reply.any_bytes = c->verdict.replies == WARD_BINARY;
	if (c->verdict.git != GIT_NONE &&
	    fetch_git_reply(c->verdict.git, h->status, offers, h->n_headers,
			    &own->reply.any_bytes, &c->reason, err) < 0)
		return -1;
	r = fetch_redirect(&own->fetch, h->status, h->location, &c->reason, err);
	if (r != 0)
		return r < 0 ? -1 : DISPATCH_REDIRECTS;
	if (fetch_reply_begin(&own->reply, &own->fetch, h->status, offers, h->n_headers,
			      &c->reason, err) < 0)
		return -1;
	for (size_t i = 0; i < own->reply.headers.n && i < HEADERS_MAX; i++) {
		const struct header *one = &own->reply.headers.h[i];

		back[clean.n_headers++] = (struct egress_header){one->name, one->value};
	}
	type = headers_get(&own->reply.headers, "content-type");
	type = type ? type : "text/plain; charset=utf-8";
	if (!own->reply.any_bytes)
		own->put_back = gate_restore_new(c->job->gate, form_of(type));
	dispatch_stream(c, &clean, type);
	return 0;
}

/* What a server says that it can do is told to the job, but for what the gate could not read. */
static bool is_edited(const struct dispatch_call *c)
{
	const struct fetch_own *own = c->own;

	return c->verdict.git == GIT_PUSH_REFS && own->reply.any_bytes;
}

/* The job has it from the reply itself. */
static void log_told(const struct dispatch_call *c, const struct err *told)
{
	if (err_is_set(told))
		log_kv(LOG_INFO_, "a reply ends with an error in its place", "target",
		       c->target, "error", err_text(told), "why", told->msg, NULL);
}

/* What the job sent anonymised comes back as it was, but for bytes, of which none is touched; whole
 * characters reach that step. */
static int fetch_body(struct dispatch_call *c, const void *data, size_t len,
		      struct buf *out, struct err *err)
{
	struct fetch_own *own = c->own;
	cleanup_buf struct buf text = {0};
	struct err told = ERR_INIT;

	if (is_edited(c)) {
		git_refs_feed(&own->refs, data, len, out, &c->reason, &told);
		log_told(c, &told);
		return 0;
	}
	if (!own->put_back || gate_job_is_clean(c->job->gate))
		return fetch_reply_text(&own->reply, data, len, out, &c->reason, err);
	/* Latin-1 grows to the double; four bytes may wait from before */
	buf_init(&text, 2 * len + 8);
	if (fetch_reply_text(&own->reply, data, len, &text, &c->reason, err) < 0)
		return -1;
	gate_restore_feed(own->put_back, text.data, text.len, out);
	return buf_ok(&text) ? 0 : err_set(err, ERR_INTERNAL, "a text does not fit");
}

static int fetch_end(struct dispatch_call *c, struct buf *out, struct err *err)
{
	struct fetch_own *own = c->own;
	struct err told = ERR_INIT;

	if (is_edited(c)) {
		git_refs_end(&own->refs, out, &c->reason, &told);
		log_told(c, &told);
		return 0;
	}
	if (own->put_back)
		gate_restore_end(own->put_back, out);
	return fetch_reply_end(&own->reply, &c->reason, err);
}

static void fetch_free(struct dispatch_call *c)
{
	struct fetch_own *own = c->own;

	fetch_done(&own->fetch);
	fetch_reply_done(&own->reply);
	gate_restore_free(own->put_back);
	git_refs_done(&own->refs);
	buf_done(&own->url);
	json_free(own->intent);
}

const struct dispatch_kind dispatch_kind_fetch = {
	.name = "fetch",
	.own_size = sizeof(struct fetch_own),
	.read = fetch_intent,
	.judged = fetch_judged,
	.still = fetch_still,
	.estimate = fetch_estimate,
	.parts = fetch_parts,
	.write = fetch_write,
	.start = fetch_start,
	.describe = fetch_describe,
	.head = fetch_head,
	.body = fetch_body,
	.end = fetch_end,
	.done = fetch_free,
};
