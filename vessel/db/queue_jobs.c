/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Jobs as the API shows them: one, a page of them, those that changed. And what a person decides
 * of one that has ended.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/db/queue_priv.h"

#define JOB_COLUMNS                                                                      \
	"id, queue, request_id, state, class, phase, epoch, attempts, lost, created_at," \
	" started_at, finished_at, updated_at, owner, taint, version, spec, result,"     \
	" CASE WHEN finished_at = '' THEN -1 ELSE greatest(0, floor(extract(epoch FROM"  \
	" clock_timestamp() - finished_at::timestamptz)))::bigint END"

/* clang-format off */
static const struct pg_stmt stmt_show = {"show",
	"SELECT " JOB_COLUMNS " FROM vessel_api.show($1::bigint)", 1};
static const struct pg_stmt stmt_list = {"list",
	"SELECT " JOB_COLUMNS " FROM vessel_api.list($1, $2::bigint, $3::int)", 3};
static const struct pg_stmt stmt_look = {"look",
	"SELECT " JOB_COLUMNS " FROM vessel_api.look($1::bigint[], $2::bigint[])", 2};
static const struct pg_stmt stmt_retry = {"retry",
	"SELECT vessel_api.retry($1::bigint, $2::int)", 2};
static const struct pg_stmt stmt_remove = {"remove",
	"SELECT vessel_api.remove($1::bigint)", 1};
static const struct pg_stmt stmt_abandon = {"abandon",
	"SELECT vessel_api.abandon($1::bigint[], $2::boolean, $3::int)", 3};
/* clang-format on */

/* One open call: what to tell whom. */
struct op {
	union {
		queue_jobs_done *jobs;
		queue_look_done *look;
		queue_done *plain;
		queue_ids_done *ids;
	} done;
	void *arg;
	bool one; /* exactly one is expected */
};

static struct op *op_new(void *arg)
{
	struct op *op = xnew(struct op);

	op->arg = arg;
	return op;
}

static int row_to_job(const struct pg_result *res, size_t row, struct queue_job *j,
		      struct err *err)
{
	j->id = pg_i64(res, row, 0);
	j->queue = pg_text(res, row, 1);
	j->request_id = pg_text(res, row, 2);
	if (!job_state_from_name(pg_text(res, row, 3), &j->state))
		return err_set(err, ERR_INTERNAL, "job %lld: state %s", (long long)j->id,
			       pg_text(res, row, 3));
	/* A word of another release, or of a database that somebody wrote to: one such row
	 * must not hide all others. */
	if (!fail_class_from_name(pg_text(res, row, 4), &j->fail_class))
		j->fail_class = FAIL_NONE;
	j->phase = pg_text(res, row, 5);
	j->epoch = pg_i64(res, row, 6);
	j->attempts = (int)pg_i64(res, row, 7);
	j->lost = (int)pg_i64(res, row, 8);
	j->created_at = pg_text(res, row, 9);
	j->started_at = pg_text(res, row, 10);
	j->finished_at = pg_text(res, row, 11);
	j->updated_at = pg_text(res, row, 12);
	j->owner = pg_text(res, row, 13);
	j->taint = pg_text(res, row, 14);
	j->version = pg_i64(res, row, 15);
	j->spec = pg_bytes(res, row, 16, &j->spec_len);
	j->result = pg_bytes(res, row, 17, &j->result_len);
	j->ended_ago_sec = pg_i64(res, row, 18);
	return 0;
}

static void jobs_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	struct queue_job *jobs = NULL;
	size_t n = err ? 0 : pg_rows(res);

	if (!err && op->one && n == 0) {
		(void)err_set_id(&mine, ERRID_RUN_NOT_FOUND, "no job has this id");
		err = &mine;
	}
	if (n > 0)
		jobs = xcalloc(n, sizeof(*jobs));
	for (size_t i = 0; i < n && !err; i++)
		if (row_to_job(res, i, &jobs[i], &mine) < 0)
			err = &mine;
	op->done.jobs(err ? NULL : jobs, err ? 0 : n, err, op->arg);
	free(jobs);
	free(op);
}

void queue_show(struct queue *q, job_id_t id, queue_jobs_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id);
	const struct pg_param params[] = {text_param(job.s)};

	op->done.jobs = done;
	op->one = true;
	pg_call(q->pg, &stmt_show, params, QUEUE_READ_USEC, PG_RESEND, jobs_done, op);
}

void queue_list(struct queue *q, const struct queue_list *f, queue_jobs_done *done,
		void *arg)
{
	struct op *op = op_new(arg);
	struct number before = number(f->before), limit = number(f->limit);
	const struct pg_param params[] = {
		text_param(f->by_state ? job_state_name(f->state) : ""),
		text_param(before.s),
		text_param(limit.s),
	};

	op->done.jobs = done;
	pg_call(q->pg, &stmt_list, params, QUEUE_READ_USEC, PG_RESEND, jobs_done, op);
}

/* ---- look ------------------------------------------------------------------------ */

static void look_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	size_t rows = err ? 0 : pg_rows(res), n = 0, n_gone = 0;
	cleanup_free struct queue_job *jobs = xcalloc(rows + 1, sizeof(*jobs));
	cleanup_free job_id_t *gone = xcalloc(rows + 1, sizeof(*gone));

	for (size_t i = 0; i < rows && !err; i++) {
		if (pg_is_null(res, i, 3))
			gone[n_gone++] = pg_i64(res, i, 0);
		else if (row_to_job(res, i, &jobs[n++], &mine) < 0)
			err = &mine;
	}
	op->done.look(jobs, err ? 0 : n, gone, err ? 0 : n_gone, err, op->arg);
	free(op);
}

void queue_look(struct queue *q, const struct queue_seen *seen, size_t n,
		queue_look_done *done, void *arg)
{
	struct op *op = op_new(arg);
	cleanup_free int64_t *ids = xcalloc(n + 1, sizeof(*ids));
	cleanup_free int64_t *versions = xcalloc(n + 1, sizeof(*versions));
	cleanup_buf struct buf ids_text, versions_text;

	for (size_t i = 0; i < n; i++) {
		ids[i] = seen[i].job;
		versions[i] = seen[i].version;
	}
	numbers_init(&ids_text, ids, n);
	numbers_init(&versions_text, versions, n);
	const struct pg_param params[] = {text_param(buf_str(&ids_text)),
					  text_param(buf_str(&versions_text))};

	op->done.look = done;
	pg_call(q->pg, &stmt_look, params, QUEUE_CALL_USEC, PG_RESEND, look_done, op);
}

/* ---- again, or no more ------------------------------------------------------------ */

static const struct answer {
	const char *text;
	enum err_id id;
	const char *what;
} answers[] = {
	{"unknown", ERRID_RUN_NOT_FOUND, "no job has this id"},
	{"tainted", ERRID_RUN_TAINTED, "it was contained, and is evidence"},
	{"spent", ERRID_RUN_STATE, "it has had a hundred attempts: submit it anew"},
	{"full", ERRID_RUN_QUEUE_FULL, "the queue has reached its limit"},
};

static void decided(const struct pg_result *res, const struct err *err, void *arg,
		    const char *state)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	const char *text = err ? "ok" : pg_text(res, 0, 0);

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (str_eq(text, answers[i].text))
			(void)err_set_id(&mine, answers[i].id, "%s", answers[i].what);
	if (str_eq(text, "state"))
		(void)err_set_id(&mine, ERRID_RUN_STATE, "%s", state);
	else if (!err_is_set(&mine) && !str_eq(text, "ok"))
		(void)err_set(&mine, ERR_INTERNAL, "the queue answered nonsense");
	op->done.plain(err_is_set(&mine) ? &mine : err, op->arg);
	free(op);
}

static void retry_done(const struct pg_result *res, const struct err *err, void *arg)
{
	decided(res, err, arg,
		"only a job that failed, ran out of time, was lost or is quarantined is "
		"tried again");
}

static void remove_done(const struct pg_result *res, const struct err *err, void *arg)
{
	decided(res, err, arg, "it has not ended: cancel it first");
}

void queue_retry(struct queue *q, job_id_t id, unsigned max_waiting, queue_done *done,
		 void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id), max = number(max_waiting);
	const struct pg_param params[] = {text_param(job.s), text_param(max.s)};

	op->done.plain = done;
	pg_call(q->pg, &stmt_retry, params, QUEUE_CALL_USEC, 0, retry_done, op);
}

void queue_remove(struct queue *q, job_id_t id, queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id);
	const struct pg_param params[] = {text_param(job.s)};

	op->done.plain = done;
	pg_call(q->pg, &stmt_remove, params, QUEUE_CALL_USEC, 0, remove_done, op);
}

/* ---- nobody waits for it ------------------------------------------------------------ */

static void abandon_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	size_t n = err ? 0 : pg_rows(res);
	cleanup_free job_id_t *ids = xcalloc(n + 1, sizeof(*ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = pg_i64(res, i, 0);
	op->done.ids(ids, n, err, op->arg);
	free(op);
}

void queue_abandon(struct queue *q, const job_id_t *jobs, size_t n, bool others,
		   unsigned limit, queue_ids_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number max = number(limit);
	cleanup_buf struct buf ids;

	numbers_init(&ids, jobs, n);
	const struct pg_param params[] = {text_param(buf_str(&ids)),
					  text_param(others ? "t" : "f"),
					  text_param(max.s)};

	op->done.ids = done;
	pg_call(q->pg, &stmt_abandon, params, QUEUE_CALL_USEC, 0, abandon_done, op);
}
