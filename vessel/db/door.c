/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See door.h.
 */
#include "vessel/db/door.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/pg/pgconn.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* As long as a tomb with a login of its own waits. */
#define CALL_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define CONNECTIONS 2
#define LIST_MAX ((size_t)8 << 10)

struct op;
struct door_tomb {
	struct door *door;
	struct pg *pg; /* NULL before door_log_in() */
	struct op *open;
	char name[TOMB_NAME_SIZE];
};

struct door {
	struct loop *loop;
	const char *socket_dir;
	struct door_tomb tomb[DOOR_TOMBS_MAX];
	size_t n;
	void (*on_state)(struct door_tomb *t, bool up, const struct err *why, void *arg);
	void *arg;
};

/* clang-format off */
static const struct pg_stmt stmt_claim = {"door_claim",
	"SELECT job_id, epoch, token, attempt, spec"
	" FROM tomb_api.claim($1::text, $2::int, $3::int, $4::uuid, $5::uuid)", 5};
static const struct pg_stmt stmt_extend = {"door_extend",
	"SELECT job_id, status FROM tomb_api.extend($1::uuid, $2::bigint[], $3::bigint[],"
	" $4::uuid[], $5::int)", 5};
static const struct pg_stmt stmt_ack = {"door_ack",
	"SELECT tomb_api.ack($1::bigint, $2::bigint, $3::uuid, $4::bytea)", 4};
static const struct pg_stmt stmt_fail = {"door_fail",
	"SELECT tomb_api.fail($1::bigint, $2::bigint, $3::uuid, $4::boolean, $5::text,"
	" $6::bytea)", 6};
static const struct pg_stmt stmt_release = {"door_release",
	"SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid, $4::boolean)", 4};
/* clang-format on */

static void state_changed(bool up, const struct err *why, void *arg)
{
	struct door_tomb *t = arg;

	if (t->door->on_state)
		t->door->on_state(t, up, why, t->door->arg);
}

/* One open call: whom to tell. */
struct op {
	union {
		door_claim_done *claim;
		door_extend_done *extend;
		door_end_done *end;
	} done;
	void *arg;
	struct door_tomb *tomb;
	pg_done *reply;
	struct op *next;
};

static struct op *op_new(struct door_tomb *t, pg_done *reply, void *arg)
{
	struct op *op = xnew(struct op);

	op->arg = arg;
	op->tomb = t;
	op->reply = reply;
	op->next = t->open;
	t->open = op;
	return op;
}

static void op_free(struct op **op)
{
	struct op **at = &(*op)->tomb->open;

	while (*at != *op)
		at = &(*at)->next;
	*at = (*op)->next;
	free(*op);
}
#define cleanup_op __attribute__((cleanup(op_free)))

/* Whoever waits for an answer of connections that are gone. */
static void fail_all(struct door_tomb *t, const char *why)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_RUN_DB, "%s", why);
	while (t->open)
		t->open->reply(NULL, &err, t->open);
}

static void call(struct op *op, const struct pg_stmt *stmt, const struct pg_param *params,
		 unsigned how)
{
	struct err err = ERR_INIT;

	if (op->tomb->pg) {
		pg_call(op->tomb->pg, stmt, params, CALL_TIMEOUT_USEC, how, op->reply,
			op);
		return;
	}
	(void)err_set_id(&err, ERRID_RUN_DB, "the tomb has not logged in yet");
	op->reply(NULL, &err, op);
}

static int add_tomb(struct door *d, const char *name, struct err *err)
{
	struct door_tomb *t = &d->tomb[d->n];

	if (d->n >= DOOR_TOMBS_MAX)
		return err_set_id(err, ERRID_CORE_USAGE, "more than %d tombs",
				  DOOR_TOMBS_MAX);
	if (!tomb_name_is_usable(name) || str_copy(t->name, sizeof(t->name), name) < 0 ||
	    door_find(d, name))
		return err_set_id(err, ERRID_CORE_USAGE,
				  "'%s': a tomb's name is [a-z][a-z0-9_]{0,31}, once",
				  name);
	t->door = d;
	d->n++;
	return 0;
}

int door_new(struct loop *l, const struct door_config *cfg, struct door **ret,
	     struct err *err)
{
	struct door *d = xnew(struct door);

	d->loop = l;
	d->socket_dir = cfg->socket_dir;
	d->on_state = cfg->on_state;
	d->arg = cfg->arg;
	for (size_t i = 0; i < cfg->n_tombs; i++) {
		if (add_tomb(d, cfg->tombs[i], err) < 0) {
			door_free(d);
			return -1;
		}
	}
	*ret = d;
	return 0;
}

int door_log_in(struct door *d, const char *tomb, const char *password, struct err *err)
{
	struct door_tomb *t = door_find(d, tomb);
	const struct pg_config pg = {
		.socket_dir = d->socket_dir,
		.dbname = "lychgate",
		.user = t->name,
		.password = password,
		.application_name = "lych-vessel-door",
		.connections = CONNECTIONS,
		.on_state = state_changed,
		.arg = t,
	};

	pg_free(t->pg);
	t->pg = NULL;
	fail_all(t, "the tomb logs in anew");
	state_changed(false, NULL, t);
	return pg_new(d->loop, &pg, &t->pg, err);
}

void door_free(struct door *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++) {
		pg_free(d->tomb[i].pg);
		fail_all(&d->tomb[i], "the vessel stops");
	}
	free(d);
}

struct door_tomb *door_find(const struct door *d, const char *name)
{
	for (size_t i = 0; d && i < d->n; i++)
		if (str_eq(d->tomb[i].name, name))
			return (struct door_tomb *)(uintptr_t)&d->tomb[i];
	return NULL;
}

const char *door_tomb_name(const struct door_tomb *t)
{
	return t->name;
}

bool door_tomb_is_up(const struct door_tomb *t)
{
	return t->pg && pg_is_up(t->pg);
}

static struct pg_param text_param(const char *s)
{
	return (struct pg_param){.data = s};
}

/* What the functions themselves refuse has no name of its own: it is the tomb's mistake. */
static const struct err *named(const struct err *err, struct err *ret)
{
	if (!err || err->id != ERRID_NONE ||
	    (err->code != ERR_DENIED && err->code != ERR_INVALID))
		return err;
	(void)err_set_id(
		ret, err->code == ERR_DENIED ? ERRID_RUN_FOREIGN_QUEUE : ERRID_SPEC_RANGE,
		"%s", err->msg);
	return ret;
}

/* ---- claim ---- */

static void claim_reply(const struct pg_result *res, const struct err *err, void *arg)
{
	cleanup_op struct op *op = arg;
	struct door_claimed jobs[DOOR_CLAIM_MAX];
	struct err bad = ERR_INIT;
	size_t n = err ? 0 : pg_rows(res);

	err = named(err, &bad);
	if (n > DOOR_CLAIM_MAX) {
		(void)err_set(&bad, ERR_UPSTREAM, "claim: %zu rows", n);
		err = &bad;
		n = 0;
	}
	for (size_t i = 0; i < n; i++) {
		jobs[i] = (struct door_claimed){
			.job = pg_i64(res, i, 0),
			.epoch = pg_i64(res, i, 1),
			.token = pg_text(res, i, 2),
			.attempt = (int)pg_i64(res, i, 3),
		};
		jobs[i].spec = pg_bytes(res, i, 4, &jobs[i].spec_len);
	}
	op->done.claim(jobs, n, err, op->arg);
}

void door_claim(struct door_tomb *t, const struct door_claim *rq, door_claim_done *done,
		void *arg)
{
	char n[16], ttl[16];
	const struct pg_param params[] = {text_param(rq->queue), text_param(n),
					  text_param(ttl), text_param(rq->boot.s),
					  text_param(rq->claim.s)};
	struct op *op = op_new(t, claim_reply, arg);

	op->done.claim = done;
	(void)snprintf(n, sizeof(n), "%u", rq->n);
	(void)snprintf(ttl, sizeof(ttl), "%u", rq->ttl_sec);
	call(op, &stmt_claim, params, PG_RESEND);
}

/* ---- extend ---- */

static void extend_reply(const struct pg_result *res, const struct err *err, void *arg)
{
	cleanup_op struct op *op = arg;
	struct door_word words[DOOR_EXTEND_MAX];
	struct err bad = ERR_INIT;
	size_t n = err ? 0 : pg_rows(res);

	err = named(err, &bad);
	/* More rows than were asked about cannot be; the tomb finds out what is missing.
	 */
	if (n > DOOR_EXTEND_MAX)
		n = DOOR_EXTEND_MAX;
	for (size_t i = 0; i < n; i++)
		words[i] = (struct door_word){.job = pg_i64(res, i, 0),
					      .status = pg_text(res, i, 1)};
	op->done.extend(words, n, err, op->arg);
}

void door_extend(struct door_tomb *t, const struct door_extend *rq,
		 door_extend_done *done, void *arg)
{
	cleanup_buf struct buf jobs = {.max = LIST_MAX}, epochs = {.max = LIST_MAX},
			       tokens = {.max = LIST_MAX};
	struct op *op = op_new(t, extend_reply, arg);
	char ttl[16];

	op->done.extend = done;
	for (size_t i = 0; i < rq->n; i++) {
		const char *sep = i ? "," : "{";

		buf_addf(&jobs, "%s%" PRId64, sep, rq->lease[i].job);
		buf_addf(&epochs, "%s%" PRId64, sep, rq->lease[i].epoch);
		buf_addf(&tokens, "%s%s", sep, rq->lease[i].token.s);
	}
	buf_addc(&jobs, '}');
	buf_addc(&epochs, '}');
	buf_addc(&tokens, '}');
	(void)snprintf(ttl, sizeof(ttl), "%u", rq->ttl_sec);
	const struct pg_param params[] = {text_param(rq->boot.s),
					  text_param(buf_str(&jobs)),
					  text_param(buf_str(&epochs)),
					  text_param(buf_str(&tokens)), text_param(ttl)};
	/* Not resent: the tomb counts the deadline from when it asked. */
	call(op, &stmt_extend, params, 0);
}

/* ---- ack, fail, release ---- */

static void end_reply(const struct pg_result *res, const struct err *err, void *arg)
{
	cleanup_op struct op *op = arg;
	struct err bad = ERR_INIT;

	err = named(err, &bad);
	if (!err && pg_rows(res) != 1) {
		(void)err_set(&bad, ERR_UPSTREAM, "%zu answers of the queue",
			      pg_rows(res));
		err = &bad;
	}
	op->done.end(err ? "" : pg_text(res, 0, 0), err, op->arg);
}

/* The three parameters that all of them begin with. */
struct lease_text {
	char job[24], epoch[24];
};

static void end_call(struct door_tomb *t, const struct pg_stmt *stmt,
		     const struct queue_lease *l, struct pg_param *params,
		     door_end_done *done, void *arg)
{
	struct lease_text text;
	struct op *op = op_new(t, end_reply, arg);

	op->done.end = done;
	(void)snprintf(text.job, sizeof(text.job), "%" PRId64, l->job);
	(void)snprintf(text.epoch, sizeof(text.epoch), "%" PRId64, l->epoch);
	params[0] = text_param(text.job);
	params[1] = text_param(text.epoch);
	params[2] = text_param(l->token.s);
	call(op, stmt, params, PG_RESEND);
}

void door_ack(struct door_tomb *t, const struct queue_lease *l, const void *result,
	      size_t len, door_end_done *done, void *arg)
{
	struct pg_param params[4];

	params[3] = (struct pg_param){.data = result, .len = len, .binary = true};
	end_call(t, &stmt_ack, l, params, done, arg);
}

void door_fail(struct door_tomb *t, const struct queue_lease *l,
	       const struct door_fail *f, door_end_done *done, void *arg)
{
	struct pg_param params[6];

	params[3] = text_param(f->retry ? "t" : "f");
	params[4] = text_param(fail_class_name(f->why));
	params[5] = (struct pg_param){.data = f->result, .len = f->len, .binary = true};
	end_call(t, &stmt_fail, l, params, done, arg);
}

void door_release(struct door_tomb *t, const struct queue_lease *l, bool died,
		  door_end_done *done, void *arg)
{
	struct pg_param params[4];

	params[3] = text_param(died ? "t" : "f");
	end_call(t, &stmt_release, l, params, done, arg);
}
