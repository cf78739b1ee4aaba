/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * One call of vessel/db/queue.h is one SQL function of vessel_api. Every one of them
 * may be sent again after a lost connection: submit by request_id, cancel and the
 * reconciler's calls because a second time changes nothing more, the rest reads.
 */
#include "vessel/db/queue.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/pg/pgconn.h"
#include "common/str.h"
#include "vessel/db/queue_priv.h"

#define CONNECTIONS 4
_Static_assert(QUEUE_TOMBS_MAX < PG_PARTIES, "a turn for each tomb");

/* clang-format off */
static const struct pg_stmt stmt_submit = {"submit",
	"SELECT job_id, existing, status FROM vessel_api.enqueue($1, $2, $3::bytea, $4::int,"
	" $5::boolean, $6::int, $7::int, $8::boolean)", 8};
static const struct pg_stmt stmt_cancel = {"cancel",
	"SELECT * FROM vessel_api.cancel($1::bigint)", 1};
static const struct pg_stmt stmt_lease_check = {"lease_check",
	"SELECT vessel_api.lease_check($1::bigint, $2::bigint, $3::uuid, $4::boolean)", 4};
static const struct pg_stmt stmt_set_phase = {"set_phase",
	"SELECT vessel_api.set_phase($1::bigint, $2::bigint, $3::uuid, $4)", 4};
static const struct pg_stmt stmt_has_blob = {"has_blob",
	"SELECT vessel_api.has_blob($1::bigint, $2)", 2};
static const struct pg_stmt stmt_reap = {"reap",
	"SELECT job_id FROM vessel_api.reap($1::uuid, $2::int, $3::int)", 3};
static const struct pg_stmt stmt_retain = {"retain",
	"SELECT * FROM vessel_api.retain($1::int, $2::int)", 2};
static const struct pg_stmt stmt_live_blobs = {"live_blobs",
	"SELECT * FROM vessel_api.live_blobs($1)", 1};
static const struct pg_stmt stmt_beat = {"beat", "SELECT vessel_api.vessel_beat($1::uuid)", 1};
static const struct pg_stmt stmt_bye = {"bye", "SELECT vessel_api.vessel_bye($1::uuid)", 1};
static const struct pg_stmt stmt_tombs = {"tombs",
	"SELECT name, generation FROM vessel_api.tombs()", 0};
static const struct pg_stmt stmt_lease_owner = {"lease_owner",
	"SELECT * FROM vessel_api.lease_owner($1::bigint, $2::bigint, $3::uuid)", 3};
static const struct pg_stmt stmt_schema = {"schema", "SELECT vessel_api.schema_version()", 0};
static const struct pg_stmt stmt_health = {"health", "SELECT vessel_api.health()", 0};
static const struct pg_stmt stmt_check = {"check_queue", "SELECT vessel_api.check_queue()", 0};
/* clang-format on */

/* One open call: what to tell whom. */
struct op {
	union {
		queue_submit_done *submit;
		queue_state_done *state;
		queue_done *plain;
		queue_count_done *count;
		queue_ids_done *ids;
		queue_shas_done *shas;
		queue_text_done *text;
		queue_tombs_done *tombs;
	} done;
	void *arg;
	unsigned want, first; /* schema: the version, and the oldest to upgrade */
};

static struct op *op_new(void *arg)
{
	struct op *op = xnew(struct op);

	op->arg = arg;
	return op;
}

static void notified(void *arg)
{
	struct queue *q = arg;

	if (q->on_change)
		q->on_change(q->arg);
}

static void state_changed(bool up, const struct err *why, void *arg)
{
	struct queue *q = arg;

	if (q->on_state)
		q->on_state(up, why, q->arg);
}

int queue_new(struct loop *l, const struct queue_config *cfg, struct queue **ret,
	      struct err *err)
{
	struct queue *q = xnew(struct queue);
	const struct pg_config pg = {
		.socket_dir = cfg->socket_dir,
		.dbname = "lychgate",
		.user = "lych_vessel",
		.password = cfg->password,
		.application_name = "lych-vessel",
		.connections = CONNECTIONS,
		.listen_channel = "lych",
		.on_notify = notified,
		.on_state = state_changed,
		.arg = q,
	};

	q->on_change = cfg->on_change;
	q->on_state = cfg->on_state;
	q->arg = cfg->arg;
	if (pg_new(l, &pg, &q->pg, err) < 0) {
		free(q);
		return -1;
	}
	*ret = q;
	return 0;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	pg_free(q->pg);
	free(q);
}

bool queue_is_up(const struct queue *q)
{
	return pg_is_up(q->pg);
}

/* ---- submit ------------------------------------------------------------------ */

static void submit_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	job_id_t id = 0;
	bool existing = false;

	if (!err) {
		const char *status = pg_text(res, 0, 2);

		id = pg_i64(res, 0, 0);
		existing = pg_bool(res, 0, 1);
		if (str_eq(status, "conflict"))
			(void)err_set_id(&mine, ERRID_RUN_CONFLICT,
					 "this request_id stands for another job");
		else if (str_eq(status, "full"))
			(void)err_set_id(&mine, ERRID_RUN_QUEUE_FULL,
					 "the queue has reached its limit");
		else if (str_eq(status, "tainted"))
			(void)err_set_id(&mine, ERRID_RUN_TAINTED,
					 existing ? "this request_id is its"
						  : "it made what this one names");
		else if (!str_eq(status, "ok") || id <= 0)
			(void)err_set(&mine, ERR_INTERNAL, "enqueue answered nonsense");
		if (err_is_set(&mine))
			err = &mine;
	}
	op->done.submit(err ? 0 : id, existing, err, op->arg);
	free(op);
}

void queue_submit(struct queue *q, const struct queue_submit *s, queue_submit_done *done,
		  void *arg)
{
	struct op *op = op_new(arg);
	struct number priority = number(s->priority),
		      runtime = number(s->max_runtime_sec),
		      waiting = number(s->max_waiting);
	const struct pg_param params[] = {
		text_param(s->queue),
		text_param(s->request_id),
		{.data = s->spec, .len = s->spec_len, .binary = true},
		text_param(priority.s),
		text_param(s->retry_on_lost ? "t" : "f"),
		text_param(runtime.s),
		text_param(waiting.s),
		text_param(s->attended ? "t" : "f"),
	};

	op->done.submit = done;
	pg_call(q->pg, &stmt_submit, params, QUEUE_CALL_USEC, PG_RESEND, submit_done, op);
}

/* ---- cancel ---------------------------------------------------------------------- */

static void cancel_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	enum job_state now = JOB_LOST;

	if (!err && pg_rows(res) == 0) {
		(void)err_set_id(&mine, ERRID_RUN_NOT_FOUND, "no job has this id");
		err = &mine;
	} else if (!err && !job_state_from_name(pg_text(res, 0, 0), &now)) {
		(void)err_set(&mine, ERR_INTERNAL, "cancel answered nonsense");
		err = &mine;
	}
	op->done.state(now, err, op->arg);
	free(op);
}

void queue_cancel(struct queue *q, job_id_t id, queue_state_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id);
	const struct pg_param params[] = {text_param(job.s)};

	op->done.state = done;
	pg_call(q->pg, &stmt_cancel, params, QUEUE_CALL_USEC, PG_RESEND, cancel_done, op);
}

/* ---- leases ------------------------------------------------------------------------ */

bool queue_set_refused(const char *answer, struct err *err)
{
	if (str_eq(answer, "stale"))
		(void)err_set_id(err, ERRID_RUN_STALE,
				 "this attempt is cancelled or has ended, or its "
				 "lease ran out");
	else if (str_eq(answer, "revoked"))
		(void)err_set_id(err, ERRID_RUN_REVOKED, "the lease was taken back");
	else if (str_eq(answer, "denied"))
		(void)err_set_id(err, ERRID_RUN_DENIED,
				 "job, epoch and token do not belong together");
	else
		return false;
	return true;
}

static void lease_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;

	if (!err) {
		const char *answer = pg_text(res, 0, 0);

		if (!queue_set_refused(answer, &mine) && !str_eq(answer, "ok"))
			(void)err_set_id(&mine, ERRID_RUN_DENIED,
					 "job, epoch and token do not belong together");
		if (err_is_set(&mine))
			err = &mine;
	}
	op->done.plain(err, op->arg);
	free(op);
}

void queue_lease_check(struct queue *q, const struct queue_lease *l, bool strict,
		       queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(l->job), epoch = number(l->epoch);
	const struct pg_param params[] = {
		text_param(job.s),
		text_param(epoch.s),
		text_param(l->token.s),
		text_param(strict ? "t" : "f"),
	};

	op->done.plain = done;
	pg_call(q->pg, &stmt_lease_check, params, QUEUE_CALL_USEC,
		PG_RESEND | PG_YIELD | PG_OF(l->party), lease_done, op);
}

void queue_set_phase(struct queue *q, const struct queue_lease *l, const char *phase,
		     queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(l->job), epoch = number(l->epoch);
	const struct pg_param params[] = {
		text_param(job.s),
		text_param(epoch.s),
		text_param(l->token.s),
		text_param(phase),
	};

	op->done.plain = done;
	pg_call(q->pg, &stmt_set_phase, params, QUEUE_CALL_USEC,
		PG_RESEND | PG_YIELD | PG_OF(l->party), lease_done, op);
}

static void has_blob_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;

	if (!err && !pg_bool(res, 0, 0)) {
		(void)err_set_id(&mine, ERRID_STORE_BLOB, "this job names no such blob");
		err = &mine;
	}
	op->done.plain(err, op->arg);
	free(op);
}

void queue_job_has_blob(struct queue *q, const struct queue_lease *l,
			const char *sha256_hex, queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(l->job);
	const struct pg_param params[] = {text_param(job.s), text_param(sha256_hex)};

	op->done.plain = done;
	pg_call(q->pg, &stmt_has_blob, params, QUEUE_CALL_USEC,
		PG_RESEND | PG_YIELD | PG_OF(l->party), has_blob_done, op);
}

static void owner_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	const char *owner = NULL;

	if (!err && pg_rows(res) != 1) {
		(void)err_set_id(&mine, ERRID_RUN_DENIED,
				 "job, epoch and token do not belong together");
		err = &mine;
	} else if (!err) {
		owner = pg_text(res, 0, 0);
	}
	op->done.text(owner, owner ? strlen(owner) : 0, err, op->arg);
	free(op);
}

void queue_lease_owner(struct queue *q, const struct queue_lease *l,
		       queue_text_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(l->job), epoch = number(l->epoch);
	const struct pg_param params[] = {text_param(job.s), text_param(epoch.s),
					  text_param(l->token.s)};

	op->done.text = done;
	pg_call(q->pg, &stmt_lease_owner, params, QUEUE_CALL_USEC,
		PG_RESEND | PG_YIELD | PG_OF(l->party), owner_done, op);
}

static void tombs_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct queue_tomb list[QUEUE_TOMBS_MAX];
	size_t n = err ? 0 : pg_rows(res);

	if (n > QUEUE_TOMBS_MAX)
		n = QUEUE_TOMBS_MAX;
	for (size_t i = 0; i < n; i++) {
		int64_t generation = pg_i64(res, i, 1);

		list[i].name = pg_text(res, i, 0);
		list[i].generation = generation > 0 ? (uint64_t)generation : 0;
	}
	op->done.tombs(list, n, err, op->arg);
	free(op);
}

void queue_tombs(struct queue *q, queue_tombs_done *done, void *arg)
{
	struct op *op = op_new(arg);

	op->done.tombs = done;
	pg_call(q->pg, &stmt_tombs, NULL, QUEUE_CALL_USEC, PG_RESEND, tombs_done, op);
}

/* ---- the reconciler ------------------------------------------------------------------
 */

static void reap_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;

	op->done.count(err ? 0 : (unsigned)pg_rows(res), err, op->arg);
	free(op);
}

void queue_reap(struct queue *q, unsigned limit, queue_count_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number n = number(limit), grace = number(LEASE_TTL_SEC);
	/* Without a beat there is no owner yet; NULL owns nothing, so nothing is reaped.
	 */
	const struct pg_param params[] = {
		text_param(q->boot.s[0] ? q->boot.s : NULL),
		text_param(n.s),
		text_param(grace.s),
	};

	op->done.count = done;
	pg_call(q->pg, &stmt_reap, params, QUEUE_CALL_USEC, PG_RESEND, reap_done, op);
}

static void retain_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	size_t n = err ? 0 : pg_rows(res);
	job_id_t *ids = n ? xcalloc(n, sizeof(*ids)) : NULL;

	for (size_t i = 0; i < n; i++)
		ids[i] = pg_i64(res, i, 0);
	op->done.ids(ids, n, err, op->arg);
	free(ids);
	free(op);
}

void queue_retain(struct queue *q, unsigned keep_sec, unsigned limit,
		  queue_ids_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number keep = number(keep_sec), n = number(limit);
	const struct pg_param params[] = {text_param(keep.s), text_param(n.s)};

	op->done.ids = done;
	pg_call(q->pg, &stmt_retain, params, QUEUE_CALL_USEC, PG_RESEND, retain_done, op);
}

static void shas_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	size_t n = err ? 0 : pg_rows(res);
	const char **hex = n ? xcalloc(n, sizeof(*hex)) : NULL;

	for (size_t i = 0; i < n; i++)
		hex[i] = pg_text(res, i, 0);
	op->done.shas(hex, n, err, op->arg);
	free(hex);
	free(op);
}

void queue_live_blobs(struct queue *q, const char *prefix, queue_shas_done *done,
		      void *arg)
{
	struct op *op = op_new(arg);
	const struct pg_param params[] = {text_param(prefix)};

	op->done.shas = done;
	pg_call(q->pg, &stmt_live_blobs, params, QUEUE_CALL_USEC, PG_RESEND, shas_done,
		op);
}

static void beat_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;

	if (!err && !str_eq(pg_text(res, 0, 0), "ok")) {
		(void)err_set_id(&mine, ERRID_START_TWO,
				 "the other one was alive within the last 15 s");
		err = &mine;
	}
	op->done.plain(err, op->arg);
	free(op);
}

void queue_vessel_beat(struct queue *q, const struct uuid *boot, queue_done *done,
		       void *arg)
{
	struct op *op = op_new(arg);
	const struct pg_param params[] = {text_param(boot->s)};

	q->boot = *boot;
	op->done.plain = done;
	pg_call(q->pg, &stmt_beat, params, QUEUE_CALL_USEC, PG_RESEND, beat_done, op);
}

static void bye_done(const struct pg_result *res UNUSED, const struct err *err, void *arg)
{
	struct op *op = arg;

	op->done.plain(err, op->arg);
	free(op);
}

void queue_vessel_bye(struct queue *q, const struct uuid *boot, queue_done *done,
		      void *arg)
{
	struct op *op = op_new(arg);
	const struct pg_param params[] = {text_param(boot->s)};

	op->done.plain = done;
	pg_call(q->pg, &stmt_bye, params, QUEUE_CALL_USEC, PG_RESEND, bye_done, op);
}

static void health_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	const char *json = err ? NULL : pg_text(res, 0, 0);

	op->done.text(json, json ? strlen(json) : 0, err, op->arg);
	free(op);
}

void queue_health(struct queue *q, queue_text_done *done, void *arg)
{
	struct op *op = op_new(arg);

	op->done.text = done;
	pg_call(q->pg, &stmt_health, NULL, QUEUE_READ_USEC, PG_RESEND, health_done, op);
}

void queue_check(struct queue *q, queue_text_done *done, void *arg)
{
	struct op *op = op_new(arg);

	op->done.text = done;
	/* It may take long, and nobody's turn is held up by it. */
	pg_call(q->pg, &stmt_check, NULL, QUEUE_CHECK_USEC, PG_RESEND | PG_YIELD,
		health_done, op);
}

/* The function itself came with version 5: where there is none, the schema is older. */
static bool is_unknown_function(const struct err *err)
{
	return str_starts(err->msg, "42883") || str_starts(err->msg, "3F000");
}

/* have: 0 where none was applied yet */
static enum err_id schema_err(int64_t have, const struct op *op)
{
	if (have > op->want)
		return ERRID_START_SCHEMA;
	return have > 0 && have < op->first ? ERRID_START_SCHEMA_GONE
					    : ERRID_START_SCHEMA_OLD;
}

static void schema_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err why = ERR_INIT;
	int64_t have = err || pg_rows(res) != 1 ? 0 : pg_i64(res, 0, 0);

	if (!err && have == (int64_t)op->want) {
		op->done.plain(NULL, op->arg);
		free(op);
		return;
	}
	if (err && is_unknown_function(err))
		(void)err_set_id(&why, schema_err(1, op),
				 "the database is older than version 5, this vessel "
				 "(release " LYCH_VERSION ") needs %u",
				 op->want);
	else if (err)
		why = *err;
	else
		(void)err_set_id(&why, schema_err(have, op),
				 "the database is at version %lld, this vessel "
				 "(release " LYCH_VERSION ") needs %u",
				 (long long)have, op->want);
	op->done.plain(&why, op->arg);
	free(op);
}

void queue_schema_check(struct queue *q, unsigned first, unsigned want, queue_done *done,
			void *arg)
{
	struct op *op = op_new(arg);

	op->done.plain = done;
	op->want = want;
	op->first = first;
	pg_call(q->pg, &stmt_schema, NULL, QUEUE_CALL_USEC, PG_RESEND, schema_done, op);
}
