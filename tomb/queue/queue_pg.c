/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See queue_pg.h.
 */
#include "tomb/queue/queue_pg.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/pg/pgconn.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A claim waits longer than it is worth, an end as long as it takes: it is sent again. */
#define CALL_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define EXTEND_MAX 64
#define CLAIM_MAX 32
#define LIST_MAX ((size_t)8 << 10)

struct queue_pg {
	struct pg *pg;
	char *queue;
	struct uuid boot;
	char ttl[16];
};

static const struct pg_stmt stmt_claim = {"tomb_claim",
					  "SELECT job_id, epoch, token, attempt, spec "
					  "FROM tomb_api.claim($1::text, $2::int, "
					  "$3::int, $4::uuid, $5::uuid)",
					  5};
static const struct pg_stmt stmt_extend = {
	"tomb_extend",
	"SELECT job_id, status FROM tomb_api.extend($1::uuid, $2::bigint[], "
	"$3::bigint[], "
	"$4::uuid[], $5::int)",
	5};
static const struct pg_stmt stmt_ack = {
	"tomb_ack", "SELECT tomb_api.ack($1::bigint, $2::bigint, $3::uuid, $4::bytea)",
	4};
static const struct pg_stmt stmt_fail = {
	"tomb_fail",
	"SELECT tomb_api.fail($1::bigint, $2::bigint, $3::uuid, $4::boolean, $5::text, "
	"$6::bytea)",
	6};
static const struct pg_stmt stmt_release = {
	"tomb_release",
	"SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid, $4::boolean)", 4};

static struct pg_param param_text(const char *s)
{
	return (struct pg_param){.data = s, .len = strlen(s)};
}

/* ---- claim ---- */

struct claim_wait {
	queue_claim_done *done;
	void *arg;
};

static int claim_row(const struct pg_result *res, size_t row, struct queue_claimed *ret,
		     struct err *err)
{
	ret->key.job = pg_i64(res, row, 0);
	ret->key.epoch = pg_i64(res, row, 1);
	ret->attempt = (int)pg_i64(res, row, 3);
	ret->spec = pg_bytes(res, row, 4, &ret->spec_len);
	if (ret->key.job <= 0 || ret->key.epoch <= 0 || !ret->spec)
		return err_set(err, ERR_UPSTREAM, "claim: a malformed row");
	return uuid_parse(pg_text(res, row, 2), &ret->key.token, err);
}

static void claim_reply(const struct pg_result *res, const struct err *err, void *arg)
{
	struct claim_wait *w = arg;
	struct queue_claimed jobs[CLAIM_MAX];
	struct err bad = ERR_INIT;
	size_t n = err ? 0 : pg_rows(res);

	if (n > CLAIM_MAX) {
		(void)err_set(&bad, ERR_UPSTREAM, "claim: %zu rows", n);
		err = &bad;
		n = 0;
	}
	for (size_t i = 0; i < n && !err; i++)
		if (claim_row(res, i, &jobs[i], &bad) < 0)
			err = &bad;
	w->done(jobs, err ? 0 : n, err, w->arg);
	free(w);
}

static void claim_call(struct queue_pg *q, unsigned n, const struct uuid *boot,
		       const struct uuid *claim_id, queue_claim_done *done, void *arg)
{
	struct claim_wait *w = xnew(struct claim_wait);
	char count[16];
	struct pg_param params[5];

	w->done = done;
	w->arg = arg;
	(void)snprintf(count, sizeof(count), "%u", n < CLAIM_MAX ? n : CLAIM_MAX);
	params[0] = param_text(q->queue);
	params[1] = param_text(count);
	params[2] = param_text(q->ttl);
	params[3] = param_text(boot->s);
	params[4] = param_text(claim_id->s);
	pg_call(q->pg, &stmt_claim, params, CALL_TIMEOUT_USEC, PG_RESEND, claim_reply, w);
}

static void pg_claim(void *ctx, unsigned n, const struct uuid *claim_id,
		     queue_claim_done *done, void *arg)
{
	struct queue_pg *q = ctx;

	claim_call(q, n, &q->boot, claim_id, done, arg);
}

static void pg_recall(void *ctx, const struct uuid *boot, const struct uuid *claim_id,
		      queue_claim_done *done, void *arg)
{
	claim_call(ctx, 0, boot, claim_id, done, arg);
}

/* ---- extend ---- */

struct extend_wait {
	queue_extend_done *done;
	void *arg;
	size_t n;
	job_id_t jobs[EXTEND_MAX];
};

static void extend_reply(const struct pg_result *res, const struct err *err, void *arg)
{
	struct extend_wait *w = arg;
	enum lease_status status[EXTEND_MAX];
	bool seen[EXTEND_MAX] = {false};
	struct err bad = ERR_INIT;

	for (size_t i = 0; !err && i < pg_rows(res); i++) {
		const char *word = pg_text(res, i, 1);

		for (size_t k = 0; k < w->n; k++) {
			if (w->jobs[k] != pg_i64(res, i, 0) || seen[k])
				continue;
			seen[k] = true;
			status[k] = str_eq(word, "ok")	      ? LEASE_OK
				    : str_eq(word, "cancel")  ? LEASE_CANCEL
				    : str_eq(word, "revoked") ? LEASE_REVOKED
							      : LEASE_LOST;
			break;
		}
	}
	/* No word about a lease is not a word against it. */
	for (size_t k = 0; !err && k < w->n; k++)
		if (!seen[k]) {
			(void)err_set(&bad, ERR_UPSTREAM,
				      "extend: no word about job %" PRId64, w->jobs[k]);
			err = &bad;
		}
	w->done(status, err ? 0 : w->n, err, w->arg);
	free(w);
}

static void pg_extend(void *ctx, const struct lease_key *keys, size_t n,
		      queue_extend_done *done, void *arg)
{
	struct queue_pg *q = ctx;
	struct extend_wait *w = xnew(struct extend_wait);
	cleanup_buf struct buf jobs = {.max = LIST_MAX}, epochs = {.max = LIST_MAX},
			       tokens = {.max = LIST_MAX};
	struct pg_param params[5];

	w->done = done;
	w->arg = arg;
	for (size_t i = 0; i < n && i < EXTEND_MAX; i++) {
		const char *sep = i ? "," : "{";

		buf_addf(&jobs, "%s%" PRId64, sep, keys[i].job);
		buf_addf(&epochs, "%s%" PRId64, sep, keys[i].epoch);
		buf_addf(&tokens, "%s%s", sep, keys[i].token.s);
		w->jobs[w->n++] = keys[i].job;
	}
	buf_addc(&jobs, '}');
	buf_addc(&epochs, '}');
	buf_addc(&tokens, '}');
	params[0] = param_text(q->boot.s);
	params[1] = param_text(buf_str(&jobs));
	params[2] = param_text(buf_str(&epochs));
	params[3] = param_text(buf_str(&tokens));
	params[4] = param_text(q->ttl);
	/* Not resent: the deadline counts from when it was sent first. */
	pg_call(q->pg, &stmt_extend, params, CALL_TIMEOUT_USEC, 0, extend_reply, w);
}

/* ---- ack, fail, release ---- */

struct end_wait {
	queue_end_done *done;
	void *arg;
};

static void end_reply(const struct pg_result *res, const struct err *err, void *arg)
{
	struct end_wait *w = arg;
	struct err bad = ERR_INIT;
	enum queue_answer a = ANSWER_MAX_;

	if (!err) {
		a = pg_rows(res) == 1 ? queue_answer_from_name(pg_text(res, 0, 0))
				      : ANSWER_MAX_;
		if (a == ANSWER_MAX_) {
			(void)err_set(&bad, ERR_UPSTREAM,
				      "the queue's answer is unknown to us");
			err = &bad;
		}
	}
	w->done(a, err, w->arg);
	free(w);
}

static struct end_wait *end_wait_new(queue_end_done *done, void *arg)
{
	struct end_wait *w = xnew(struct end_wait);

	w->done = done;
	w->arg = arg;
	return w;
}

/* The three parameters that all of them begin with. */
struct key_text {
	char job[24], epoch[24];
};

static void key_params(const struct lease_key *key, struct key_text *t,
		       struct pg_param *params)
{
	(void)snprintf(t->job, sizeof(t->job), "%" PRId64, key->job);
	(void)snprintf(t->epoch, sizeof(t->epoch), "%" PRId64, key->epoch);
	params[0] = param_text(t->job);
	params[1] = param_text(t->epoch);
	params[2] = param_text(key->token.s);
}

static void pg_ack(void *ctx, const struct lease_key *key, const void *result, size_t len,
		   queue_end_done *done, void *arg)
{
	struct queue_pg *q = ctx;
	struct key_text t;
	struct pg_param params[4];

	key_params(key, &t, params);
	params[3] = (struct pg_param){.data = result, .len = len, .binary = true};
	pg_call(q->pg, &stmt_ack, params, CALL_TIMEOUT_USEC, PG_RESEND, end_reply,
		end_wait_new(done, arg));
}

static void pg_fail(void *ctx, const struct lease_key *key, bool retry,
		    enum fail_class why, const void *result, size_t len,
		    queue_end_done *done, void *arg)
{
	struct queue_pg *q = ctx;
	struct key_text t;
	struct pg_param params[6];

	key_params(key, &t, params);
	params[3] = param_text(retry ? "t" : "f");
	params[4] = param_text(fail_class_name(why));
	params[5] = (struct pg_param){.data = result, .len = len, .binary = true};
	pg_call(q->pg, &stmt_fail, params, CALL_TIMEOUT_USEC, PG_RESEND, end_reply,
		end_wait_new(done, arg));
}

static void pg_release(void *ctx, const struct lease_key *key, bool died,
		       queue_end_done *done, void *arg)
{
	struct queue_pg *q = ctx;
	struct key_text t;
	struct pg_param params[4];

	key_params(key, &t, params);
	params[3] = param_text(died ? "t" : "f");
	pg_call(q->pg, &stmt_release, params, CALL_TIMEOUT_USEC, PG_RESEND, end_reply,
		end_wait_new(done, arg));
}

static const struct queue_ops pg_ops = {
	.claim = pg_claim,
	.recall = pg_recall,
	.extend = pg_extend,
	.ack = pg_ack,
	.fail = pg_fail,
	.release = pg_release,
};

int queue_pg_new(struct loop *l, const struct queue_pg_config *cfg, struct queue_pg **ret,
		 struct queue *ret_queue, struct err *err)
{
	struct queue_pg *q = xnew(struct queue_pg);
	struct pg_config pc = {
		.socket_dir = cfg->socket_dir,
		.dbname = "lychgate",
		.user = cfg->role,
		.password = cfg->password,
		.application_name = "lych-tomb",
		.connections = 2,
		.listen_channel = "lych",
		.on_notify = cfg->on_hint,
		.on_state = cfg->on_state,
		.arg = cfg->arg,
	};

	q->queue = xstrdup(cfg->queue);
	q->boot = cfg->boot;
	(void)snprintf(q->ttl, sizeof(q->ttl), "%d", LEASE_TTL_SEC);
	if (pg_new(l, &pc, &q->pg, err) < 0) {
		queue_pg_free(q);
		return -1;
	}
	*ret = q;
	*ret_queue = (struct queue){.ops = &pg_ops, .ctx = q, .claim_max = CLAIM_MAX};
	return 0;
}

void queue_pg_free(struct queue_pg *q)
{
	if (!q)
		return;
	pg_free(q->pg);
	free(q->queue);
	free(q);
}
