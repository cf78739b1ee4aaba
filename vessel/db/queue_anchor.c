/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The anchor of the audit log in the database (schema/0020_audit_anchor.sql).
 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/db/queue_priv.h"

#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)

/* A row more, unless the newest of this log has more records, or others of as many. Sent again it
 * adds the row again: a line twice is no sin. */
/* clang-format off */
static const struct pg_stmt stmt_put = {"anchor_put",
	"WITH newest AS (SELECT c.size, c.root FROM lych_anchor.checkpoint c"
	" WHERE c.log = $1::uuid ORDER BY c.size DESC, c.n DESC LIMIT 1),"
	" put AS (INSERT INTO lych_anchor.checkpoint (log, size, root, line)"
	" SELECT $1::uuid, $2::bigint, $3::text, $4::text WHERE NOT EXISTS"
	" (SELECT 1 FROM newest w WHERE w.size > $2::bigint"
	" OR (w.size = $2::bigint AND w.root <> $3::text)) RETURNING n)"
	" SELECT (SELECT count(*) FROM put)::bigint,"
	" coalesce((SELECT w.size FROM newest w), 0)::bigint", 4};
/* clang-format on */

struct op {
	queue_anchor_done *done;
	void *arg;
};

static void put_done(const struct pg_result *res, const struct err *err, void *arg)
{
	struct op *op = arg;

	op->done(!err && pg_i64(res, 0, 0) > 0, err ? 0 : (uint64_t)pg_i64(res, 0, 1),
		 err, op->arg);
	free(op);
}

void queue_anchor_put(struct queue *q, const struct queue_anchor *a,
		      queue_anchor_done *done, void *arg)
{
	struct op *op = xnew(struct op);
	struct number size = number((int64_t)a->size);
	const struct pg_param params[] = {
		{.data = a->log}, {.data = size.s}, {.data = a->root}, {.data = a->line}};

	op->done = done;
	op->arg = arg;
	pg_call(q->pg, &stmt_put, params, CALL_TIMEOUT_USEC, 0, put_done, op);
}
