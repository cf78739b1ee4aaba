/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See queue_vessel.h.
 */
#include "tomb/queue/queue_vessel.h"

#include "common/base64.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/httpc.h"
#include "common/proto/job_spec.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The vessel waits 10 s for its database. */
#define CALL_TIMEOUT_USEC (15 * USEC_PER_SEC)
#define HINT_TIMEOUT_USEC ((DOOR_HINT_SEC + 10) * USEC_PER_SEC)
#define HINT_AGAIN_MIN_USEC (50 * USEC_PER_MSEC)
#define HINT_AGAIN_MAX_USEC (2 * USEC_PER_SEC)
/* Apart from the connections that carry data: a hint, a claim, an extend, ends. */
#define CONNECTIONS 6
#define REPLY_DEPTH 4
#define SMALL_REPLY_MAX_BYTES 16384
#define CLAIM_REPLY_MAX_BYTES (DOOR_CLAIM_MAX * (SPEC_MAX_BYTES / 3 * 4 + 4096))
#define REQUEST_MAX_BYTES 16384

struct queue_vessel {
	struct loop *loop;
	struct httpc *http;
	const struct vessel_peer *peer;
	char *queue;
	struct uuid boot;
	void (*on_hint)(void *arg);
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
	struct call *calls;
	struct loop_timer *hint_again;
	usec_t hint_pause;
	uint64_t hint_seq;
	bool up, told;
};

/* One call under way: in a list, so that it can be dropped. */
struct call {
	struct call *next;
	struct queue_vessel *q;
	void (*reply)(struct call *c, const struct httpc_reply *r, const struct err *err);
	union {
		queue_claim_done *claim;
		queue_extend_done *extend;
		queue_end_done *end;
	} done;
	void *arg;
	/* What could not even be sent is told from the loop, not from the caller's
	 * stack. */
	struct loop_timer *failed;
	struct err why;
	size_t n;
	struct lease_key keys[];
};

static struct call *call_new(struct queue_vessel *q, const struct lease_key *keys,
			     size_t n, void *arg)
{
	struct call *c = xmalloc(sizeof(*c) + n * sizeof(*keys));

	*c = (struct call){.q = q, .arg = arg, .n = n, .next = q->calls};
	for (size_t i = 0; i < n; i++)
		c->keys[i] = keys[i];
	q->calls = c;
	return c;
}

static void call_free(struct call *c)
{
	for (struct call **p = &c->q->calls; *p; p = &(*p)->next) {
		if (*p == c) {
			*p = c->next;
			break;
		}
	}
	loop_timer_free(c->failed);
	explicit_bzero(c->keys, c->n * sizeof(c->keys[0]));
	free(c);
}

/* ---- the vessel's answers ---- */

static int claimed_one(const struct json *obj, struct queue_claimed *ret, char **ret_spec,
		       struct err *err)
{
	static const char *const keys[] = {"job", "epoch", "token", "attempt", "spec"};
	const char *token = NULL, *spec = NULL;
	int64_t attempt = 0;

	if (json_as_obj(obj, err) < 0 ||
	    json_check_keys(obj, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_i64(obj, "job", true, 1, INT64_MAX, &ret->key.job, err) < 0 ||
	    json_get_i64(obj, "epoch", true, 1, INT64_MAX, &ret->key.epoch, err) < 0 ||
	    json_get_i64(obj, "attempt", true, 0, INT32_MAX, &attempt, err) < 0 ||
	    json_get_str(obj, "token", true, sizeof(ret->key.token.s), &token, err) < 0 ||
	    json_get_str(obj, "spec", true, SPEC_MAX_BYTES / 3 * 4 + 4, &spec, err) < 0 ||
	    uuid_parse(token, &ret->key.token, err) < 0 ||
	    base64_decode(spec, strlen(spec), ret_spec, &ret->spec_len, err) < 0)
		return -1;
	ret->attempt = (int)attempt;
	ret->spec = *ret_spec;
	return 0;
}

int queue_vessel_parse_claim(const void *body, size_t len, struct vessel_claimed *ret,
			     struct err *err)
{
	static const char *const keys[] = {"jobs"};
	cleanup_json struct json *j = NULL;
	const struct json *jobs = NULL;

	*ret = (struct vessel_claimed){0};
	if (json_parse(body, len, REPLY_DEPTH, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_arr(j, "jobs", true, DOOR_CLAIM_MAX, &jobs, err) < 0)
		return err_wrap(err, "claim: the vessel's answer");
	for (size_t i = 0; i < json_arr_len(jobs); i++) {
		if (claimed_one(json_arr_at(jobs, i), &ret->job[i], &ret->spec[i], err) <
		    0) {
			vessel_claimed_done(ret);
			return err_wrap(err, "claim: the vessel's answer");
		}
		ret->n++;
	}
	return 0;
}

void vessel_claimed_done(struct vessel_claimed *c)
{
	for (size_t i = 0; i < DOOR_CLAIM_MAX; i++)
		free(c->spec[i]);
	explicit_bzero(c, sizeof(*c));
}

static int extend_word(const struct json *obj, const struct lease_key *keys, size_t n,
		       enum lease_status *status, bool *seen, struct err *err)
{
	static const char *const names[] = {"job", "status"};
	const char *word = NULL;
	int64_t job = 0;

	if (json_as_obj(obj, err) < 0 ||
	    json_check_keys(obj, names, ARRAY_SIZE(names), err) < 0 ||
	    json_get_i64(obj, "job", true, 1, INT64_MAX, &job, err) < 0 ||
	    json_get_str(obj, "status", true, 16, &word, err) < 0)
		return -1;
	if (!str_eq(word, "ok") && !str_eq(word, "cancel") && !str_eq(word, "lost") &&
	    !str_eq(word, "revoked"))
		return err_set(err, ERR_UPSTREAM, "a word unknown to us");
	for (size_t i = 0; i < n; i++) {
		if (keys[i].job != job || seen[i])
			continue;
		seen[i] = true;
		status[i] = str_eq(word, "ok")	      ? LEASE_OK
			    : str_eq(word, "cancel")  ? LEASE_CANCEL
			    : str_eq(word, "revoked") ? LEASE_REVOKED
						      : LEASE_LOST;
		break;
	}
	return 0;
}

int queue_vessel_parse_extend(const void *body, size_t len, const struct lease_key *keys,
			      size_t n, enum lease_status *status, struct err *err)
{
	static const char *const names[] = {"leases"};
	cleanup_json struct json *j = NULL;
	const struct json *words = NULL;
	bool seen[DOOR_EXTEND_MAX] = {false};

	if (json_parse(body, len, REPLY_DEPTH, &j, err) < 0 ||
	    json_check_keys(j, names, ARRAY_SIZE(names), err) < 0 ||
	    json_get_arr(j, "leases", true, DOOR_EXTEND_MAX, &words, err) < 0)
		return err_wrap(err, "extend: the vessel's answer");
	for (size_t i = 0; i < json_arr_len(words); i++)
		if (extend_word(json_arr_at(words, i), keys, n, status, seen, err) < 0)
			return err_wrap(err, "extend: the vessel's answer");
	/* No word about a lease is not a word against it. */
	for (size_t i = 0; i < n; i++)
		if (!seen[i])
			return err_set(err, ERR_UPSTREAM,
				       "extend: no word about job %" PRId64, keys[i].job);
	return 0;
}

int queue_vessel_parse_end(const void *body, size_t len, enum queue_answer *ret,
			   struct err *err)
{
	static const char *const names[] = {"answer"};
	cleanup_json struct json *j = NULL;
	const char *word = NULL;

	if (json_parse(body, len, REPLY_DEPTH, &j, err) < 0 ||
	    json_check_keys(j, names, ARRAY_SIZE(names), err) < 0 ||
	    json_get_str(j, "answer", true, 16, &word, err) < 0)
		return err_wrap(err, "the vessel's answer");
	*ret = queue_answer_from_name(word);
	if (*ret == ANSWER_MAX_)
		return err_set(err, ERR_UPSTREAM, "the queue's answer is unknown to us");
	return 0;
}

/* ---- sending ---- */

static void on_failed(void *arg)
{
	struct call *c = arg;

	c->reply(c, NULL, &c->why);
}

static void on_reply(const struct httpc_reply *r, void *arg)
{
	struct call *c = arg;
	struct err err = ERR_INIT;

	if (r->status == 200)
		c->reply(c, r, NULL);
	else if (r->status == 0)
		c->reply(c, NULL, r->err);
	else {
		(void)vessel_reply_err(r->status, r->body, r->body_len, "queue", &err);
		c->reply(c, r, &err);
	}
}

static void call_send(struct call *c, const struct httpc_request *what,
		      const struct lease_key *key)
{
	struct vessel_headers h;
	struct httpc_request rq = *what;

	vessel_headers(&h, c->q->peer, key);
	rq.headers = h.line;
	if (httpc_send(c->q->http, &rq, on_reply, c, NULL, &c->why) < 0) {
		c->failed = loop_timer_new(c->q->loop, on_failed, c);
		loop_timer_arm(c->failed, 0);
	}
	vessel_headers_done(&h);
}

/* ---- claim ---- */

static void claim_reply(struct call *c, const struct httpc_reply *r,
			const struct err *err)
{
	struct vessel_claimed got = {0};
	struct err bad = ERR_INIT;

	if (!err && queue_vessel_parse_claim(r->body, r->body_len, &got, &bad) < 0)
		err = &bad;
	c->done.claim(got.job, err ? 0 : got.n, err, c->arg);
	vessel_claimed_done(&got);
	call_free(c);
}

static void claim_call(struct queue_vessel *q, unsigned n, const struct uuid *boot,
		       const struct uuid *claim_id, queue_claim_done *done, void *arg)
{
	struct call *c = call_new(q, NULL, 0, arg);
	cleanup_buf struct buf body = {.max = REQUEST_MAX_BYTES};
	struct httpc_request rq = {.method = HTTP_M_POST,
				   .target = "/work/v1/claim",
				   .timeout_usec = CALL_TIMEOUT_USEC,
				   .reply_max_bytes = CLAIM_REPLY_MAX_BYTES};
	struct jsonw w;

	c->reply = claim_reply;
	c->done.claim = done;
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "queue", q->queue);
	jsonw_ku64(&w, "n", n < DOOR_CLAIM_MAX ? n : DOOR_CLAIM_MAX);
	jsonw_ku64(&w, "ttl", LEASE_TTL_SEC);
	jsonw_kstr(&w, "boot", boot->s);
	jsonw_kstr(&w, "claim", claim_id->s);
	jsonw_obj_end(&w);
	rq.body = body.data;
	rq.body_len = body.len;
	call_send(c, &rq, NULL);
}

static void vessel_claim(void *ctx, unsigned n, const struct uuid *claim_id,
			 queue_claim_done *done, void *arg)
{
	struct queue_vessel *q = ctx;

	claim_call(q, n, &q->boot, claim_id, done, arg);
}

static void vessel_recall(void *ctx, const struct uuid *boot, const struct uuid *claim_id,
			  queue_claim_done *done, void *arg)
{
	claim_call(ctx, 0, boot, claim_id, done, arg);
}

/* ---- extend ---- */

static void extend_reply(struct call *c, const struct httpc_reply *r,
			 const struct err *err)
{
	enum lease_status status[DOOR_EXTEND_MAX];
	struct err bad = ERR_INIT;

	if (!err && queue_vessel_parse_extend(r->body, r->body_len, c->keys, c->n, status,
					      &bad) < 0)
		err = &bad;
	c->done.extend(status, err ? 0 : c->n, err, c->arg);
	call_free(c);
}

static void vessel_extend(void *ctx, const struct lease_key *keys, size_t n,
			  queue_extend_done *done, void *arg)
{
	struct queue_vessel *q = ctx;
	struct call *c =
		call_new(q, keys, n < DOOR_EXTEND_MAX ? n : DOOR_EXTEND_MAX, arg);
	cleanup_buf struct buf body = {.max = REQUEST_MAX_BYTES};
	struct httpc_request rq = {.method = HTTP_M_POST,
				   .target = "/work/v1/extend",
				   .timeout_usec = CALL_TIMEOUT_USEC,
				   .reply_max_bytes = SMALL_REPLY_MAX_BYTES};
	struct jsonw w;

	c->reply = extend_reply;
	c->done.extend = done;
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "boot", q->boot.s);
	jsonw_ku64(&w, "ttl", LEASE_TTL_SEC);
	jsonw_key(&w, "leases");
	jsonw_arr(&w);
	for (size_t i = 0; i < c->n; i++) {
		jsonw_obj(&w);
		jsonw_ki64(&w, "job", c->keys[i].job);
		jsonw_ki64(&w, "epoch", c->keys[i].epoch);
		jsonw_kstr(&w, "token", c->keys[i].token.s);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	rq.body = body.data;
	rq.body_len = body.len;
	call_send(c, &rq, NULL);
	if (body.data)
		explicit_bzero(body.data, body.len);
}

/* ---- ack, fail, release ---- */

static void end_reply(struct call *c, const struct httpc_reply *r, const struct err *err)
{
	enum queue_answer answer = ANSWER_MAX_;
	struct err bad = ERR_INIT;

	/* Over the socket's own cap: the database would say the same. */
	if (err && r && r->status == 413) {
		answer = ANSWER_TOO_BIG;
		err = NULL;
	} else if (!err &&
		   queue_vessel_parse_end(r->body, r->body_len, &answer, &bad) < 0) {
		err = &bad;
	}
	c->done.end(answer, err, c->arg);
	call_free(c);
}

static void end_call(struct queue_vessel *q, const char *target,
		     const struct lease_key *key, const void *result, size_t len,
		     queue_end_done *done, void *arg)
{
	struct call *c = call_new(q, NULL, 0, arg);
	const struct httpc_request rq = {.method = HTTP_M_POST,
					 .target = target,
					 .body = result,
					 .body_len = len,
					 .timeout_usec = CALL_TIMEOUT_USEC,
					 .reply_max_bytes = SMALL_REPLY_MAX_BYTES};

	c->reply = end_reply;
	c->done.end = done;
	call_send(c, &rq, key);
}

static void vessel_ack(void *ctx, const struct lease_key *key, const void *result,
		       size_t len, queue_end_done *done, void *arg)
{
	end_call(ctx, "/work/v1/ack", key, result, len, done, arg);
}

static void vessel_fail(void *ctx, const struct lease_key *key, bool retry,
			enum fail_class why, const void *result, size_t len,
			queue_end_done *done, void *arg)
{
	char target[96];

	(void)snprintf(target, sizeof(target), "/work/v1/fail?retry=%s%s%s",
		       retry ? "true" : "false",
		       why == FAIL_NONE ? "" : "&class=", fail_class_name(why));
	end_call(ctx, target, key, result, len, done, arg);
}

static void vessel_release(void *ctx, const struct lease_key *key, bool died,
			   queue_end_done *done, void *arg)
{
	end_call(ctx, died ? "/work/v1/release?died=true" : "/work/v1/release", key, NULL,
		 0, done, arg);
}

static const struct queue_ops vessel_ops = {
	.claim = vessel_claim,
	.recall = vessel_recall,
	.extend = vessel_extend,
	.ack = vessel_ack,
	.fail = vessel_fail,
	.release = vessel_release,
};

/* ---- hints: one question, held by the vessel until something changed ---- */

static void hint_ask(void *arg);

static void set_up(struct queue_vessel *q, bool up, const struct err *why)
{
	if (q->told && q->up == up)
		return;
	q->up = up;
	q->told = true;
	q->on_state(up, why, q->arg);
}

static int read_seq(const struct httpc_reply *r, uint64_t *ret, struct err *err)
{
	static const char *const keys[] = {"seq"};
	cleanup_json struct json *j = NULL;

	if (r->status == 0) {
		*err = *r->err;
		return -1;
	}
	if (r->status != 200)
		return vessel_reply_err(r->status, r->body, r->body_len, "queue", err);
	if (json_parse(r->body, r->body_len, REPLY_DEPTH, &j, err) < 0 ||
	    json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(j, "seq", true, 1, INT64_MAX, ret, err) < 0)
		return err_wrap(err, "hints: the vessel's answer");
	return 0;
}

static void hint_reply(const struct httpc_reply *r, void *arg)
{
	struct queue_vessel *q = arg;
	struct err err = ERR_INIT;
	uint64_t seq = 0;

	if (read_seq(r, &seq, &err) < 0) {
		q->hint_seq = 0;
		loop_timer_arm(q->hint_again, q->hint_pause);
		q->hint_pause *= 2;
		if (q->hint_pause > HINT_AGAIN_MAX_USEC)
			q->hint_pause = HINT_AGAIN_MAX_USEC;
		set_up(q, false, &err);
		return;
	}
	bool changed = seq != q->hint_seq;

	q->hint_seq = seq;
	q->hint_pause = HINT_AGAIN_MIN_USEC;
	/* From the loop: curl is in the middle of a call. */
	loop_timer_arm(q->hint_again, 0);
	set_up(q, true, NULL);
	if (changed)
		q->on_hint(q->arg);
}

static void hint_ask(void *arg)
{
	struct queue_vessel *q = arg;
	struct vessel_headers h;
	char target[64];
	struct httpc_request rq = {.method = HTTP_M_GET,
				   .target = target,
				   .headers = h.line,
				   .timeout_usec = HINT_TIMEOUT_USEC,
				   .reply_max_bytes = SMALL_REPLY_MAX_BYTES};
	struct err err = ERR_INIT;

	vessel_headers(&h, q->peer, NULL);
	(void)snprintf(target, sizeof(target), "/work/v1/hints?after=%" PRIu64,
		       q->hint_seq);
	if (httpc_send(q->http, &rq, hint_reply, q, NULL, &err) < 0)
		loop_timer_arm(q->hint_again, q->hint_pause);
}

int queue_vessel_new(struct loop *l, const struct queue_vessel_config *cfg,
		     struct queue_vessel **ret, struct queue *ret_queue, struct err *err)
{
	struct queue_vessel *q = xnew(struct queue_vessel);

	q->loop = l;
	q->peer = cfg->peer;
	q->queue = xstrdup(cfg->queue);
	q->boot = cfg->boot;
	q->on_hint = cfg->on_hint;
	q->on_state = cfg->on_state;
	q->arg = cfg->arg;
	q->hint_pause = HINT_AGAIN_MIN_USEC;
	q->hint_again = loop_timer_new(l, hint_ask, q);
	if (httpc_new(l, cfg->peer->socket_path, CONNECTIONS, &q->http, err) < 0) {
		queue_vessel_free(q);
		return -1;
	}
	loop_timer_arm(q->hint_again, 0);
	*ret = q;
	*ret_queue =
		(struct queue){.ops = &vessel_ops, .ctx = q, .claim_max = DOOR_CLAIM_MAX};
	return 0;
}

void queue_vessel_free(struct queue_vessel *q)
{
	if (!q)
		return;
	if (q->http)
		httpc_free(q->http);
	while (q->calls)
		call_free(q->calls);
	loop_timer_free(q->hint_again);
	free(q->queue);
	free(q);
}
