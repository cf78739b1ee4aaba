/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The outbox's calls: each may be sent again, for a place only ever moves forward.
 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/db/queue_priv.h"

#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)

/* clang-format off */
static const struct pg_stmt stmt_begin = {"audit_begin",
	"SELECT stream, xid, id, pseq FROM vessel_api.audit_begin($1::uuid)", 1};
static const struct pg_stmt stmt_next = {"audit_next",
	"SELECT xid, id, at_ms, event, actor, job_id, epoch, data"
	" FROM vessel_api.audit_next($1::bigint, $2::bigint, $3::int)", 3};
static const struct pg_stmt stmt_mark = {"audit_mark",
	"SELECT vessel_api.audit_mark($1::uuid, $2::uuid, $3::bigint, $4::bigint,"
	" $5::bigint, $6::boolean)", 6};
/* clang-format on */

struct op {
	union {
		queue_audit_begin_done *begin;
		queue_audit_next_done *next;
		queue_audit_mark_done *mark;
	} done;
	void *arg;
};

static struct op *op_new(void *arg)
{
	struct op *op = xnew(struct op);

	op->arg = arg;
	return op;
}

static void begin_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct queue_audit_place at = {0};
	struct uuid stream = {0};
	struct err mine = ERR_INIT;

	if (!err && pg_rows(res) != 1) {
		(void)err_set_id(&mine, ERRID_START_TWO,
				 "this vessel does not own the database");
		err = &mine;
	} else if (!err) {
		at.xid = pg_i64(res, 0, 1);
		at.id = pg_i64(res, 0, 2);
		at.pseq = (uint64_t)pg_i64(res, 0, 3);
		if (uuid_parse(pg_text(res, 0, 0), &stream, &mine) < 0)
			err = &mine;
	}
	op->done.begin(&stream, &at, err, op->arg);
	free(op);
}

void queue_audit_begin(struct queue *q, const struct uuid *boot,
		       queue_audit_begin_done *done, void *arg)
{
	struct op *op = op_new(arg);
	const struct pg_param params[] = {{.data = boot->s}};

	op->done.begin = done;
	pg_call(q->pg, &stmt_begin, params, CALL_TIMEOUT_USEC, PG_RESEND, begin_done, op);
}

static void next_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	size_t n = err ? 0 : pg_rows(res);
	struct queue_audit_event *e = n ? xcalloc(n, sizeof(*e)) : NULL;

	for (size_t i = 0; i < n; i++)
		e[i] = (struct queue_audit_event){
			.at = {.xid = pg_i64(res, i, 0), .id = pg_i64(res, i, 1)},
			.time_ms = (uint64_t)pg_i64(res, i, 2),
			.event = pg_text(res, i, 3),
			.actor = pg_text(res, i, 4),
			.job = pg_is_null(res, i, 5) ? 0 : pg_i64(res, i, 5),
			.epoch = pg_is_null(res, i, 6) ? 0 : pg_i64(res, i, 6),
			.data = pg_text(res, i, 7),
		};
	op->done.next(e, n, err, op->arg);
	free(e);
	free(op);
}

void queue_audit_next(struct queue *q, const struct queue_audit_place *after,
		      unsigned limit, queue_audit_next_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number xid = number(after->xid), id = number(after->id), n = number(limit);
	const struct pg_param params[] = {{.data = xid.s}, {.data = id.s}, {.data = n.s}};

	op->done.next = done;
	pg_call(q->pg, &stmt_next, params, CALL_TIMEOUT_USEC, 0, next_done, op);
}

static void mark_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;
	struct err mine = ERR_INIT;
	const char *answer = err ? "" : pg_text(res, 0, 0);

	if (!err && str_eq(answer, "fenced")) {
		(void)err_set_id(&mine, ERRID_START_TWO,
				 "this vessel does not own the database");
		err = &mine;
	}
	op->done.mark(str_eq(answer, "behind")	    ? QUEUE_AUDIT_BEHIND
		      : str_eq(answer, "restarted") ? QUEUE_AUDIT_RESTARTED
						    : QUEUE_AUDIT_OK,
		      err, op->arg);
	free(op);
}

void queue_audit_mark(struct queue *q, const struct uuid *boot, const struct uuid *stream,
		      const struct queue_audit_place *acked, bool good,
		      queue_audit_mark_done *done, void *arg)
{
	struct op *op = op_new(arg);
	struct number xid = number(acked->xid), id = number(acked->id),
		      pseq = number((int64_t)acked->pseq);
	const struct pg_param params[] = {{.data = boot->s}, {.data = stream->s},
					  {.data = xid.s},   {.data = id.s},
					  {.data = pseq.s},  {.data = good ? "t" : "f"}};

	op->done.mark = done;
	pg_call(q->pg, &stmt_mark, params, CALL_TIMEOUT_USEC, 0, mark_done, op);
}
