/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A call is in one of four states; what moves it on from within a worker's
 * callback is put off to the loop (`later`), so that a worker's call is never cancelled, and
 * this one never freed, under a callback of it.
 */
#include "tests/support/fetch_call.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/fetch_keys.h"

#include <assert.h>
#include <string.h>

enum state {
	DECIDE, /* the ward is asked when the loop comes round */
	PERMIT, /* the owner has it */
	RUN,	/* a worker has it */
	OVER,	/* on_end when the loop comes round */
};

struct fetch_call {
	const struct fetch_env *env;
	char *identity;
	job_id_t job;
	struct fetch f;
	struct fetch_verdict verdict;
	const struct fetch_hooks *hooks;
	void *arg;
	enum state state;
	struct loop_timer *later;
	struct egress_call *out; /* NULL: none */
	struct fetch_reply reply;
	uint64_t up, down;
	struct err err;
	enum reason reason;
};

static void go_on(struct fetch_call *c, enum state state)
{
	c->state = state;
	loop_timer_arm(c->later, 0);
}

/* err untouched: it went well. */
static void finish(struct fetch_call *c)
{
	go_on(c, OVER);
}

/* A worker's call that is not wanted any more. */
static void cut(struct fetch_call *c)
{
	if (!c->out)
		return;
	egress_cancel(c->out);
	c->out = NULL;
	c->hooks->settle(c->up, c->down, true, c->arg);
}

static void call_free(struct fetch_call *c)
{
	fetch_reply_done(&c->reply);
	fetch_done(&c->f);
	loop_timer_free(c->later);
	free(c->identity);
	free(c);
}

/* ---- what a worker says ---- */

static void on_head(const struct egress_head *head, void *arg)
{
	struct fetch_call *c = arg;
	struct header_offer fields[EGRESS_HEADERS_MAX];
	size_t n = 0;
	int redirect;

	if (c->state != RUN)
		return;
	redirect =
		fetch_redirect(&c->f, head->status, head->location, &c->reason, &c->err);
	if (redirect != 0) {
		go_on(c, redirect > 0 ? DECIDE : OVER);
		return;
	}
	for (; n < head->n_headers && n < EGRESS_HEADERS_MAX; n++)
		fields[n] = (struct header_offer){head->headers[n].name,
						  head->headers[n].value};
	c->reply.any_bytes = c->verdict.ward.replies == WARD_BINARY;
	if (fetch_reply_begin(&c->reply, &c->f, head->status, fields, n, &c->reason,
			      &c->err) < 0)
		finish(c);
	else
		c->hooks->on_head(head->status, &c->reply.headers, c->arg);
}

static bool on_body(const void *data, size_t len, void *arg)
{
	struct fetch_call *c = arg;
	cleanup_buf struct buf text;

	c->down += len;
	if (c->state != RUN)
		return true;
	/* Latin-1 may double, and a character may have been held. */
	buf_init(&text, 2 * len + 8);
	if (fetch_reply_text(&c->reply, data, len, &text, &c->reason, &c->err) < 0) {
		finish(c);
		return true;
	}
	assert(buf_ok(&text));
	return text.len == 0 || c->hooks->on_text(text.data, text.len, c->arg);
}

static void on_end(const struct egress_end *end, void *arg)
{
	struct fetch_call *c = arg;

	c->out = NULL;
	c->hooks->settle(end->bytes_up, end->bytes_down, end->sent, c->arg);
	if (c->state != RUN)
		return;
	if (end->err) {
		c->err = *end->err;
		c->reason = end->reason;
	} else {
		(void)!fetch_reply_end(&c->reply, &c->reason, &c->err);
	}
	finish(c);
}

/* ---- one request ---- */

static void set_limits(const struct conf_egress *e, const struct fetch *f,
		       struct egress_request *rq)
{
	rq->limits = (struct egress_limits){
		.connect_usec = e->connect_usec,
		.first_byte_usec = e->first_byte_usec,
		.idle_usec = e->idle_usec,
		.total_usec = e->total_usec,
		.reply_max_bytes = e->response_max_bytes,
	};
	rq->retries = f->method == FETCH_GET || f->method == FETCH_HEAD ? e->retries : 0;
}

void fetch_call_go(struct fetch_call *c)
{
	static const struct egress_ops ops = {on_head, on_body, on_end, NULL};
	const struct conf_broker *b = c->env->broker;
	const char *path = NULL;
	const char *key = fetch_key(&c->f, b, &c->verdict.ward, &path);
	const struct conf_addresses *addresses = c->verdict.ward.addresses;
	struct egress_header fields[HEADERS_MAX];
	struct egress_request rq = {
		.portal = key,
		.method = fetch_method_name(c->f.method),
		.headers = fields,
		.body = c->f.body,
		.body_len = c->f.body_len,
	};
	cleanup_buf struct buf url;

	assert(c->state == PERMIT);
	c->state = RUN;
	c->up = c->f.body_len;
	c->down = 0;
	buf_init(&url, URL_BYTES_MAX);
	fetch_target(&c->f, &url);
	rq.target = key ? path : buf_str(&url);
	for (; rq.n_headers < c->f.headers.n; rq.n_headers++)
		fields[rq.n_headers] =
			(struct egress_header){c->f.headers.h[rq.n_headers].name,
					       c->f.headers.h[rq.n_headers].value};
	if (addresses && !key) {
		rq.addresses = (const char *const *)addresses->v;
		rq.n_addresses = addresses->n;
	}
	set_limits(&b->egress, &c->f, &rq);
	if (egress_start(c->env->egress, &rq, &ops, c, &c->out, &c->err) == 0)
		return;
	c->out = NULL;
	c->hooks->settle(0, 0, false, c->arg);
	finish(c);
}

void fetch_call_refuse(struct fetch_call *c, const struct err *why)
{
	assert(c->state == PERMIT && err_is_set(why));
	c->err = *why;
	finish(c);
}

/* ---- the whole ---- */

static void decide(struct fetch_call *c)
{
	const struct conf_broker *b = c->env->broker;
	struct fetch_verdict *v = &c->verdict;
	char path[URL_BYTES_MAX + 1];
	usec_t now = clock_boot_usec();
	struct ward_ask ask;
	int r;

	fetch_ward_ask(&c->f, path, &ask);
	ask.identity = c->identity;
	r = ward_take(c->env->rates, b, &ask, now, &v->ward, NULL, &c->err);
	if (fetch_ward_judge(&c->f, b, &ask, r, &v->ward, c->env->labels, c->job, now,
			     &v->odd_name, &c->reason, &c->err) < 0) {
		finish(c);
		return;
	}
	c->state = PERMIT;
	c->hooks->permit(c, &c->f, v, c->arg);
}

static void on_later(void *arg)
{
	struct fetch_call *c = arg;
	const struct fetch_hooks *hooks = c->hooks;
	void *owner = c->arg;
	struct err err;
	enum reason reason;

	cut(c);
	if (c->state == DECIDE) {
		decide(c);
		return;
	}
	err = c->err;
	reason = c->reason;
	call_free(c);
	hooks->on_end(err_is_set(&err) ? &err : NULL, reason, owner);
}

struct fetch_call *fetch_call_new(const struct fetch_env *env, const char *identity,
				  job_id_t job, struct fetch *f,
				  const struct fetch_hooks *hooks, void *arg)
{
	struct fetch_call *c = xnew(struct fetch_call);

	c->env = env;
	c->identity = xstrdup(identity);
	c->job = job;
	c->f = *f;
	f->headers = (struct headers){NULL, 0};
	f->body = NULL;
	c->hooks = hooks;
	c->arg = arg;
	c->later = loop_timer_new(env->loop, on_later, c);
	go_on(c, DECIDE);
	return c;
}

void fetch_call_resume(struct fetch_call *c)
{
	if (c->out)
		egress_resume(c->out);
}

void fetch_call_cancel(struct fetch_call *c)
{
	if (!c)
		return;
	cut(c);
	call_free(c);
}
