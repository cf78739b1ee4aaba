/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Containment's calls: each may be sent again, for a step that was taken is not taken again.
 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/db/queue_priv.h"

/* clang-format off */
static const struct pg_stmt stmt_contain = {"contain",
	"SELECT vessel_api.contain($1::bigint, $2)", 2};
static const struct pg_stmt stmt_open = {"containments",
	"SELECT job_id, epoch, step FROM vessel_api.containments($1::uuid)", 1};
static const struct pg_stmt stmt_cut = {"containment_cut",
	"SELECT vessel_api.containment_cut($1::uuid, $2::bigint)", 2};
static const struct pg_stmt stmt_seal = {"containment_seal",
	"SELECT vessel_api.containment_seal($1::uuid, $2::bigint, $3::jsonb)", 3};
static const struct pg_stmt stmt_show = {"containment_show",
	"SELECT * FROM vessel_api.containment_show($1::bigint)", 1};
/* clang-format on */

struct op {
	union {
		queue_done *plain;
		queue_contain_done *contain;
		queue_containments_done *open;
		queue_text_done *text;
	} done;
	void *arg;
};

static struct op *op_new(void *arg)
{
	struct op *op = xnew(struct op);

	op->arg = arg;
	return op;
}

/* Without a beat there is no owner yet; NULL owns nothing, so no step is taken. */
static struct pg_param boot_param(const struct queue *q)
{
	return text_param(q->boot.s[0] ? q->boot.s : NULL);
}

static void plain_done(const struct pg_result *res UNUSED, const struct err *err,
		       void *arg)
{
	struct op *op = arg;

	op->done.plain(err, op->arg);
	free(op);
}

static void contain_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	const char *text = err ? "" : pg_text(res, 0, 0);

	if (!err && str_eq(text, "unknown")) {
		(void)err_set_id(&mine, ERRID_RUN_NOT_FOUND, "no job has this id");
		err = &mine;
	}
	op->done.contain(str_eq(text, "contained"), err, op->arg);
	free(op);
}

static void contain(struct queue *q, job_id_t id, const char *reason, pg_done *done,
		    struct op *op)
{
	struct number job = number(id);
	const struct pg_param params[] = {text_param(job.s), text_param(reason)};

	pg_call(q->pg, &stmt_contain, params, QUEUE_CALL_USEC, PG_RESEND, done, op);
}

void queue_contain(struct queue *q, job_id_t id, const char *reason, queue_done *done,
		   void *arg)
{
	struct op *op = op_new(arg);

	op->done.plain = done;
	contain(q, id, reason, plain_done, op);
}

void queue_contain_as(struct queue *q, job_id_t id, const char *reason,
		      queue_contain_done *done, void *arg)
{
	struct op *op = op_new(arg);

	op->done.contain = done;
	contain(q, id, reason, contain_done, op);
}

static void open_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	size_t n = err ? 0 : pg_rows(res);
	struct queue_containment *list = n ? xcalloc(n, sizeof(*list)) : NULL;

	for (size_t i = 0; i < n; i++) {
		const char *step = pg_text(res, i, 2);

		list[i].job = pg_i64(res, i, 0);
		list[i].epoch = pg_i64(res, i, 1);
		list[i].step = str_eq(step, "cut")    ? QUEUE_CONTAIN_CUT
			       : str_eq(step, "seal") ? QUEUE_CONTAIN_SEAL
						      : QUEUE_CONTAIN_WAIT;
	}
	op->done.open(list, n, err, op->arg);
	free(list);
	free(op);
}

void queue_containments(struct queue *q, queue_containments_done *done, void *arg)
{
	struct op *op = op_new(arg);
	const struct pg_param params[] = {boot_param(q)};

	op->done.open = done;
	pg_call(q->pg, &stmt_open, params, QUEUE_CALL_USEC, PG_RESEND, open_done, op);
}

void queue_containment_cut(struct queue *q, job_id_t id, queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id);
	const struct pg_param params[] = {boot_param(q), text_param(job.s)};

	op->done.plain = done;
	pg_call(q->pg, &stmt_cut, params, QUEUE_CALL_USEC, PG_RESEND, plain_done, op);
}

void queue_containment_seal(struct queue *q, job_id_t id, const char *output,
			    queue_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id);
	const struct pg_param params[] = {boot_param(q), text_param(job.s),
					  text_param(output)};

	op->done.plain = done;
	pg_call(q->pg, &stmt_seal, params, QUEUE_CALL_USEC, PG_RESEND, plain_done, op);
}

static void show_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	const char *json = NULL;

	if (!err && pg_rows(res) != 1) {
		(void)err_set_id(&mine, ERRID_RUN_NOT_FOUND,
				 "no job of this number was contained");
		err = &mine;
	} else if (!err) {
		json = pg_text(res, 0, 0);
	}
	op->done.text(json, json ? strlen(json) : 0, err, op->arg);
	free(op);
}

void queue_containment_show(struct queue *q, job_id_t id, queue_text_done *done,
			    void *arg)
{
	struct op *op = op_new(arg);
	struct number job = number(id);
	const struct pg_param params[] = {text_param(job.s)};

	op->done.text = done;
	pg_call(q->pg, &stmt_show, params, QUEUE_READ_USEC, PG_RESEND, show_done, op);
}
