/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See work.h.
 */
#include "tomb/queue/work.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
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
	const struct vessel_peer *peer;
};

struct work_call {
	struct work *work;
	struct httpc_call *http;
	struct loop_timer *again;
	char *target;
	char *body;
	size_t len, reply_max;
	enum http_method method;
	struct lease_key key;
	usec_t backoff;
	bool repeated;
	work_done *done;
	void *arg;
};

int work_new(struct loop *l, const struct vessel_peer *peer, unsigned max_connections,
	     struct work **ret, struct err *err)
{
	struct work *w = xnew(struct work);

	w->loop = l;
	w->peer = peer;
	if (httpc_new(l, peer->socket_path, max_connections, &w->http, err) < 0) {
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
	free(w);
}

static void call_free(struct work_call *c)
{
	loop_timer_free(c->again);
	free(c->target);
	free(c->body);
	explicit_bzero(&c->key, sizeof(c->key));
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
	struct vessel_headers h;
	struct httpc_request rq = {
		.method = c->method,
		.target = c->target,
		.headers = h.line,
		.body = c->body,
		.body_len = c->len,
		.timeout_usec = WORK_TIMEOUT_USEC,
		.reply_max_bytes = c->reply_max,
	};
	struct err err = ERR_INIT;

	vessel_headers(&h, c->work->peer, &c->key);
	if (httpc_send(c->work->http, &rq, call_done, c, &c->http, &err) < 0) {
		c->http = NULL;
		call_later(c);
	}
	vessel_headers_done(&h);
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
	c->key = *key;
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

int work_lost_err(const struct work_reply *r, const char *what, struct err *err)
{
	struct err said = ERR_INIT;

	(void)work_reply_err(r, what, &said);
	return err_set_id(
		err, said.id == ERRID_RUN_REVOKED ? ERRID_RUN_REVOKED : ERRID_RUN_STALE,
		"%s", what);
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
	return vessel_reply_err(r->status, r->body, r->len, what, err);
}
