/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See budget.h.
 */
#include "vessel/broker/budget.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/db/queue_priv.h"
#include <assert.h>

#define CALL_TIMEOUT_USEC (10 * USEC_PER_SEC)
/* A settlement waits longer than a job does: until the database is back. */
#define SETTLE_TIMEOUT_USEC (600 * USEC_PER_SEC)
#define READ_TIMEOUT_USEC (3 * USEC_PER_SEC)
#define ARRAY_MAX_BYTES ((size_t)64 << 10)

/* clang-format off */
static const struct pg_stmt stmt_reserve = {"budget_reserve",
	"SELECT answer, scope, what, units FROM vessel_api.budget_reserve($1::uuid,"
	" $2::bigint, $3::bigint, $4::uuid, $5::bigint, $6::uuid, $7, $8::bigint[],"
	" $9::bigint[], $10::bigint, $11::bigint, $12::bigint[])", 12};
static const struct pg_stmt stmt_extend = {"budget_extend",
	"SELECT vessel_api.budget_extend($1::uuid, $2::bigint, $3::bigint, $4::bigint,"
	" $5::uuid, $6::bigint, $7::bigint[])", 7};
static const struct pg_stmt stmt_settle = {"budget_settle",
	"SELECT vessel_api.budget_settle($1::uuid, $2::bigint, $3::bigint, $4::bigint,"
	" $5::uuid, $6, $7::bigint[])", 7};
static const struct pg_stmt stmt_recover = {"budget_recover",
	"SELECT vessel_api.budget_recover($1::uuid)", 1};
static const struct pg_stmt stmt_denied = {"budget_denied",
	"SELECT vessel_api.budget_denied($1::bigint, $2::bigint)", 2};
static const struct pg_stmt stmt_sweep = {"budget_sweep",
	"SELECT vessel_api.budget_sweep($1::int)", 1};
static const struct pg_stmt stmt_lease = {"broker_lease",
	"SELECT answer, identity, egress FROM vessel_api.broker_lease($1::bigint,"
	" $2::bigint, $3::uuid, $4::boolean)", 4};
static const struct pg_stmt stmt_ended = {"broker_ended",
	"SELECT vessel_api.broker_ended($1::bigint[], $2::bigint[], $3::uuid[])", 3};
static const struct pg_stmt stmt_show = {"budget_show",
	"SELECT scope, key, day, spent, reserved FROM vessel_api.budget_show($1::bigint, NULL)",
	1};
/* the books of a day on which there was none but those that have no day */
static const struct pg_stmt stmt_of_job = {"budget_of_job",
	"SELECT scope, key, day, spent, reserved FROM vessel_api.budget_show($1::bigint,"
	" '1970-01-01') WHERE scope = 'job'", 1};
/* clang-format on */

struct op {
	union {
		queue_done *plain;
		queue_count_done *count;
		budget_grant_done *grant;
		budget_extend_done *extend;
		budget_lease_done *lease;
		budget_ended_done *ended;
		budget_rows_done *rows;
	} done;
	void *arg;
};

static struct op *op_new(void *arg)
{
	struct op *op = xnew(struct op);

	op->arg = arg;
	return op;
}

const char *budget_thing_name(enum budget_thing t)
{
	static const char *const names[BUDGET_THINGS_] = {
		"requests", "tokens", "money", "bytes", "denials", "packages"};

	return (unsigned)t < BUDGET_THINGS_ ? names[t] : "-";
}

static int64_t limit_of(uint64_t cap)
{
	return cap >= INT64_MAX ? BUDGET_NO_LIMIT : (int64_t)cap;
}

void budget_limits_of(const struct conf_broker *b, struct budget_limits *ret)
{
	for (unsigned s = 0; s < BUDGET_SCOPES; s++) {
		const struct conf_budget *c = &b->budget[s];

		ret->scope[s] = (struct budget_amounts){{
			[BUDGET_REQUESTS] = limit_of(c->requests),
			[BUDGET_TOKENS] = limit_of(c->tokens),
			[BUDGET_MONEY] = limit_of(c->money_micro),
			[BUDGET_BYTES] = limit_of(c->bytes),
			[BUDGET_DENIALS] = limit_of(c->denials),
			[BUDGET_PACKAGES] = limit_of(c->packages),
		}};
	}
}

void budget_want_amounts(const struct budget_want *w, uint64_t units,
			 struct budget_amounts *ret)
{
	for (size_t i = 0; i < BUDGET_THINGS_; i++) {
		unsigned __int128 n = (unsigned __int128)w->unit.n[i] * units;

		n = (n + BUDGET_UNIT - 1) / BUDGET_UNIT + (uint64_t)w->base.n[i];
		ret->n[i] = n > INT64_MAX ? INT64_MAX : (int64_t)n;
	}
}

/* A PostgreSQL array, as a parameter's text. */
struct amounts_text {
	char s[BUDGET_SCOPES * BUDGET_THINGS_ * 21 + 3];
};

static struct amounts_text amounts_text(const struct budget_amounts *a, size_t n)
{
	struct amounts_text t = {0};
	size_t at = 0;

	for (size_t i = 0; i < n * BUDGET_THINGS_; i++) {
		int64_t v = a[i / BUDGET_THINGS_].n[i % BUDGET_THINGS_];
		int r;

		assert(v >= 0);
		r = str_fmt(t.s + at, sizeof(t.s) - at, "%c%lld", i == 0 ? '{' : ',',
			    (long long)(v == BUDGET_NO_LIMIT ? -1 : v));
		assert(r == 0);
		at += strlen(t.s + at);
	}
	t.s[at] = '}';
	return t;
}

static bool read_amounts(const char *text, struct budget_amounts *ret)
{
	if (*text++ != '{')
		return false;
	for (size_t i = 0; i < BUDGET_THINGS_; i++) {
		char digits[24];
		size_t len = strspn(text, "0123456789");
		uint64_t v;

		if (len >= sizeof(digits))
			return false;
		memcpy(digits, text, len);
		digits[len] = '\0';
		if (parse_u64(digits, 0, INT64_MAX, &v, NULL) < 0 ||
		    text[len] != (i + 1 == BUDGET_THINGS_ ? '}' : ','))
			return false;
		ret->n[i] = (int64_t)v;
		text += len + 1;
	}
	return true;
}

/* ---- reserve, settle ---- */

static int set_over(const char *scope, int64_t what, struct err *err)
{
	static const enum err_id ids[BUDGET_THINGS_] = {
		ERRID_BUDGET_REQUESTS, ERRID_BUDGET_TOKENS,  ERRID_BUDGET_MONEY,
		ERRID_BUDGET_BYTES,    ERRID_BUDGET_DENIALS, ERRID_BUDGET_PACKAGES};

	if (what < 1 || what > BUDGET_THINGS_)
		return err_set(err, ERR_INTERNAL, "budget_reserve answered nonsense");
	return err_set_id(err, ids[what - 1], "%s",
			  str_eq(scope, "job")	      ? "of this job"
			  : str_eq(scope, "identity") ? "of this identity for today"
						      : "of the whole day");
}

/* What a refused lease or a fence means; false for other answers. */
static bool set_refused(const char *answer, struct err *err)
{
	if (queue_set_refused(answer, err))
		return true;
	if (str_eq(answer, "fenced"))
		(void)err_set_id(err, ERRID_START_TWO,
				 "this vessel does not own the database");
	else
		return false;
	return true;
}

static void reserve_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	const char *answer = err ? "" : pg_text(res, 0, 0);

	if (!err && !str_eq(answer, "ok") && !set_refused(answer, &mine)) {
		if (str_eq(answer, "replay"))
			(void)err_set_id(&mine, ERRID_BROKER_REPLAY,
					 "this number was used before");
		else if (str_eq(answer, "over"))
			(void)set_over(pg_text(res, 0, 1), pg_i64(res, 0, 2), &mine);
		else
			(void)err_set(&mine, ERR_INTERNAL,
				      "budget_reserve answered nonsense");
	}
	if (!err && err_is_set(&mine))
		err = &mine;
	op->done.grant(err ? 0 : (uint64_t)pg_i64(res, 0, 3), err, op->arg);
	free(op);
}

void budget_reserve(struct queue *q, const struct uuid *boot, const struct budget_call *c,
		    const struct budget_want *want, const struct budget_limits *limits,
		    budget_grant_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(c->lease.job), epoch = number(c->lease.epoch),
		      seq = number((int64_t)c->seq), least = number((int64_t)want->least),
		      most = number((int64_t)want->most);
	struct amounts_text base = amounts_text(&want->base, 1),
			    unit = amounts_text(&want->unit, 1),
			    max = amounts_text(limits->scope, BUDGET_SCOPES);
	const struct pg_param params[] = {
		{.data = boot->s},	    {.data = job.s},  {.data = epoch.s},
		{.data = c->lease.token.s}, {.data = seq.s},  {.data = c->id.s},
		{.data = c->kind},	    {.data = base.s}, {.data = unit.s},
		{.data = least.s},	    {.data = most.s}, {.data = max.s},
	};

	op->done.grant = done;
	pg_call(q->pg, &stmt_reserve, params, CALL_TIMEOUT_USEC,
		PG_RESEND | PG_YIELD | PG_OF(c->lease.party), reserve_done, op);
}

static void extend_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	int64_t bytes = err ? 0 : pg_i64(res, 0, 0);

	op->done.extend(bytes < 0 ? 0 : (uint64_t)bytes, err, op->arg);
	free(op);
}

void budget_extend(struct queue *q, const struct uuid *boot, const struct budget_call *c,
		   uint64_t bytes, const struct budget_limits *limits,
		   budget_extend_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(c->lease.job), epoch = number(c->lease.epoch),
		      seq = number((int64_t)c->seq), want = number((int64_t)bytes);
	struct amounts_text max = amounts_text(limits->scope, BUDGET_SCOPES);
	const struct pg_param params[] = {
		{.data = boot->s}, {.data = job.s},  {.data = epoch.s}, {.data = seq.s},
		{.data = c->id.s}, {.data = want.s}, {.data = max.s},
	};

	op->done.extend = done;
	pg_call(q->pg, &stmt_extend, params, CALL_TIMEOUT_USEC,
		PG_RESEND | PG_YIELD | PG_OF(c->lease.party), extend_done, op);
}

static void plain_done(const struct pg_result *res UNUSED, const struct err *err,
		       void *arg)
{
	struct op *op = arg;

	op->done.plain(err, op->arg);
	free(op);
}

void budget_settle(struct queue *q, const struct uuid *boot, const struct budget_call *c,
		   const struct budget_amounts *actual, queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(c->lease.job), epoch = number(c->lease.epoch),
		      seq = number((int64_t)c->seq);
	struct amounts_text a = amounts_text(actual, 1);
	const struct pg_param params[] = {
		{.data = boot->s}, {.data = job.s},   {.data = epoch.s}, {.data = seq.s},
		{.data = c->id.s}, {.data = c->kind}, {.data = a.s},
	};

	op->done.plain = done;
	pg_call(q->pg, &stmt_settle, params, SETTLE_TIMEOUT_USEC,
		PG_RESEND | PG_YIELD | PG_OF(c->lease.party), plain_done, op);
}

void budget_denied(struct queue *q, job_id_t id, const struct budget_limits *limits,
		   queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	int64_t cap = limits->scope[BUDGET_JOB].n[BUDGET_DENIALS];
	struct number job = number(id), most = number(cap == BUDGET_NO_LIMIT ? -1 : cap);
	const struct pg_param params[] = {{.data = job.s}, {.data = most.s}};

	op->done.plain = done;
	/* not sent again: a second copy would count twice */
	pg_call(q->pg, &stmt_denied, params, CALL_TIMEOUT_USEC, PG_YIELD, plain_done, op);
}

/* ---- the reconciler's ---- */

static void count_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	int64_t n = err ? 0 : pg_i64(res, 0, 0);

	if (n < 0) {
		(void)set_refused("fenced", &mine);
		err = &mine;
	}
	op->done.count(err ? 0 : (unsigned)n, err, op->arg);
	free(op);
}

void budget_recover(struct queue *q, const struct uuid *boot, queue_count_done *done,
		    void *arg)
{
	struct op *op = op_new(arg);
	const struct pg_param params[] = {{.data = boot->s}};

	op->done.count = done;
	pg_call(q->pg, &stmt_recover, params, CALL_TIMEOUT_USEC, PG_RESEND, count_done,
		op);
}

void budget_sweep(struct queue *q, unsigned limit, queue_count_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number n = number(limit);
	const struct pg_param params[] = {{.data = n.s}};

	op->done.count = done;
	pg_call(q->pg, &stmt_sweep, params, CALL_TIMEOUT_USEC, PG_RESEND, count_done, op);
}

/* ---- leases ---- */

static void lease_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	const char *answer = err ? "" : pg_text(res, 0, 0);

	if (!err && !str_eq(answer, "ok")) {
		if (!set_refused(answer, &mine))
			(void)err_set(&mine, ERR_INTERNAL,
				      "broker_lease answered nonsense");
		err = &mine;
	}
	op->done.lease(err ? "" : pg_text(res, 0, 1), err ? "" : pg_text(res, 0, 2), err,
		       op->arg);
	free(op);
}

void budget_lease(struct queue *q, const struct queue_lease *l, bool with_spec,
		  budget_lease_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(l->job), epoch = number(l->epoch);
	const struct pg_param params[] = {{.data = job.s},
					  {.data = epoch.s},
					  {.data = l->token.s},
					  {.data = with_spec ? "t" : "f"}};

	op->done.lease = done;
	pg_call(q->pg, &stmt_lease, params, CALL_TIMEOUT_USEC,
		PG_RESEND | PG_YIELD | PG_OF(l->party), lease_done, op);
}

static void ended_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	size_t n = err ? 0 : pg_rows(res), got = 0;
	size_t *places = n ? xcalloc(n, sizeof(*places)) : NULL;

	for (size_t i = 0; i < n; i++) {
		int64_t at = pg_i64(res, i, 0);

		if (at >= 1 && at <= (int64_t)BUDGET_LEASES_MAX)
			places[got++] = (size_t)at - 1;
	}
	op->done.ended(places, got, err, op->arg);
	free(places);
	free(op);
}

void budget_ended(struct queue *q, const struct queue_lease *leases, size_t n,
		  budget_ended_done *done, void *arg)
{
	struct op *op = op_new(arg);
	cleanup_buf struct buf jobs, epochs, tokens;

	assert(n <= BUDGET_LEASES_MAX);
	buf_init(&jobs, ARRAY_MAX_BYTES);
	buf_init(&epochs, ARRAY_MAX_BYTES);
	buf_init(&tokens, ARRAY_MAX_BYTES);
	for (size_t i = 0; i < n; i++) {
		const char *sep = i == 0 ? "{" : ",";

		buf_addf(&jobs, "%s%lld", sep, (long long)leases[i].job);
		buf_addf(&epochs, "%s%lld", sep, (long long)leases[i].epoch);
		buf_addf(&tokens, "%s%s", sep, leases[i].token.s);
	}
	/* with the NUL that ends a parameter */
	buf_add(&jobs, n ? "}" : "{}", n ? 2 : 3);
	buf_add(&epochs, n ? "}" : "{}", n ? 2 : 3);
	buf_add(&tokens, n ? "}" : "{}", n ? 2 : 3);
	assert(buf_ok(&jobs) && buf_ok(&epochs) && buf_ok(&tokens));
	const struct pg_param params[] = {
		{.data = jobs.data}, {.data = epochs.data}, {.data = tokens.data}};

	op->done.ended = done;
	pg_call(q->pg, &stmt_ended, params, READ_TIMEOUT_USEC, 0, ended_done, op);
}

/* ---- reading ---- */

static void show_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	size_t n = err ? 0 : pg_rows(res);
	struct budget_row *rows = n ? xcalloc(n, sizeof(*rows)) : NULL;

	for (size_t i = 0; i < n && !err; i++) {
		rows[i].scope = pg_text(res, i, 0);
		rows[i].key = pg_text(res, i, 1);
		rows[i].day = pg_text(res, i, 2);
		if (!read_amounts(pg_text(res, i, 3), &rows[i].spent) ||
		    !read_amounts(pg_text(res, i, 4), &rows[i].reserved)) {
			(void)err_set(&mine, ERR_INTERNAL,
				      "budget_show answered nonsense");
			err = &mine;
		}
	}
	op->done.rows(err ? NULL : rows, err ? 0 : n, err, op->arg);
	free(rows);
	free(op);
}

static void read_books(struct queue *q, const struct pg_stmt *stmt, job_id_t id,
		       budget_rows_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id);
	const struct pg_param params[] = {{.data = job.s}};

	op->done.rows = done;
	pg_call(q->pg, stmt, params, READ_TIMEOUT_USEC, PG_RESEND, show_done, op);
}

void budget_show(struct queue *q, job_id_t id, budget_rows_done *done, void *arg)
{
	read_books(q, &stmt_show, id, done, arg);
}

void budget_of_job(struct queue *q, job_id_t id, budget_rows_done *done, void *arg)
{
	read_books(q, &stmt_of_job, id, done, arg);
}
