/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/work.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/net/json.h"
#include "common/proto.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WORK_TIMEOUT_USEC (15 * USEC_PER_SEC)
#define WORK_BACKOFF_MIN_USEC (50 * USEC_PER_MSEC)
#define WORK_BACKOFF_MAX_USEC (2 * USEC_PER_SEC)

struct work {
	struct loop *loop;
	struct httpc *http;
	char auth[512];
};

struct work_call {
	struct work *work;
	struct httpc_call *http;
	struct loop_timer *again;
	char *target;
	char *body;
	size_t len, reply_max;
	enum http_method method;
	char job[64], epoch[64], token[64];
	usec_t backoff;
	bool repeated;
	work_done *done;
	void *arg;
};

int work_new(struct loop *l, const char *socket_path, const char *bearer,
	     unsigned max_connections, struct work **ret, struct err *err)
{
	struct work *w = xnew(struct work);

	w->loop = l;
	if (str_fmt(w->auth, sizeof(w->auth), "Authorization: Bearer %s", bearer) < 0) {
		work_free(w);
		return err_set_id(err, ERRID_SECRET_FILE, "lychgate_work is too long");
	}
	if (httpc_new(l, socket_path, max_connections, &w->http, err) < 0) {
		work_free(w);
		return -1;
	}
	*ret = w;
	return 0;
}

void work_free(struct work *w)
{
	if (!w)
		return;
	if (w->http)
		httpc_free(w->http);
	explicit_bzero(w->auth, sizeof(w->auth));
	free(w);
}

static void call_free(struct work_call *c)
{
	loop_timer_free(c->again);
	free(c->target);
	free(c->body);
	explicit_bzero(c->token, sizeof(c->token));
	free(c);
}

static void call_try(void *arg);

static void call_later(struct work_call *c)
{
	loop_timer_arm(c->again, c->backoff);
	c->backoff *= 2;
	if (c->backoff > WORK_BACKOFF_MAX_USEC)
		c->backoff = WORK_BACKOFF_MAX_USEC;
}

static void call_done(const struct httpc_reply *reply, void *arg)
{
	struct work_call *c = arg;
	struct work_reply r = {
		.status = reply->status,
		.body = reply->body ? reply->body : "",
		.len = reply->body_len,
		.repeated = c->repeated,
	};

	c->http = NULL;
	/* No answer, or one about the vessel and not about the request. */
	if (reply->status == 0 || reply->status == 429 || reply->status >= 500) {
		c->repeated = true;
		call_later(c);
		return;
	}
	c->done(&r, c->arg);
	call_free(c);
}

static void call_try(void *arg)
{
	struct work_call *c = arg;
	const char *headers[] = {
		c->work->auth, "Lychgate-Version: 1", c->job, c->epoch, c->token, NULL};
	struct httpc_request rq = {
		.method = c->method,
		.target = c->target,
		.headers = headers,
		.body = c->body,
		.body_len = c->len,
		.timeout_usec = WORK_TIMEOUT_USEC,
		.reply_max_bytes = c->reply_max,
	};
	struct err err = ERR_INIT;

	if (httpc_send(c->work->http, &rq, call_done, c, &c->http, &err) < 0) {
		c->http = NULL;
		call_later(c);
	}
}

struct work_call *work_send(struct work *w, const struct lease_key *key,
			    const struct work_request *rq, work_done *done, void *arg)
{
	struct work_call *c = xnew(struct work_call);

	c->work = w;
	c->method = rq->method;
	c->target = xstrdup(rq->target);
	if (rq->len) {
		c->body = xmalloc(rq->len);
		memcpy(c->body, rq->body, rq->len);
		c->len = rq->len;
	}
	c->reply_max = rq->reply_max;
	(void)snprintf(c->job, sizeof(c->job), "Lychgate-Job: %" PRId64, key->job);
	(void)snprintf(c->epoch, sizeof(c->epoch), "Lychgate-Epoch: %" PRId64,
		       key->epoch);
	(void)snprintf(c->token, sizeof(c->token), "Lychgate-Token: %s", key->token.s);
	c->backoff = WORK_BACKOFF_MIN_USEC;
	c->done = done;
	c->arg = arg;
	c->again = loop_timer_new(w->loop, call_try, c);
	call_try(c);
	return c;
}

void work_cancel(struct work_call *call)
{
	if (!call)
		return;
	if (call->http)
		httpc_cancel(call->http);
	call_free(call);
}

bool work_is_lost(int status)
{
	return status == 410 || status == 403;
}

int work_reply_u64(const struct work_reply *r, const char *key, uint64_t *ret,
		   struct err *err)
{
	cleanup_json struct json *obj = NULL;

	if (json_parse(r->body, r->len, 4, &obj, err) < 0 ||
	    json_get_u64(obj, key, true, 0, INT64_MAX, ret, err) < 0)
		return err_wrap(err, "the vessel's answer");
	return 0;
}

int work_reply_err(const struct work_reply *r, const char *what, struct err *err)
{
	cleanup_json struct json *obj = NULL;
	struct err bad = ERR_INIT;
	const char *code = "?", *title = "", *detail = "";
	enum err_id id;

	if (json_parse(r->body, r->len, 4, &obj, &bad) < 0 ||
	    json_get_str(obj, "error_code", false, 32, &code, &bad) < 0 ||
	    json_get_str(obj, "title", false, 512, &title, &bad) < 0)
		return err_set(err, ERR_UPSTREAM, "%s: status %d without a reason", what,
			       r->status);
	if (json_has(obj, "detail") && !json_is_null(obj, "detail") &&
	    json_get_str(obj, "detail", false, 1024, &detail, &bad) < 0)
		detail = "";
	id = err_id_from_text(code);
	if (id == ERRID_NONE)
		return err_set(err, ERR_UPSTREAM, "%s: %s: %.100s: %.200s", what, code,
			       title, detail);
	return err_set_id(err, id, "%s: %.100s: %.200s", what, title, detail);
}
