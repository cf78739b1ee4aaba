/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See content.h.
 */
#include "cli/backup/content.h"

#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <inttypes.h>

/* Name and first schema, each behind what its keys name; the jobs first (CONTENT_JOBS). */
#define TABLES(X)                                                                        \
	X(job, 18)                                                                       \
	X(payload, 18)                                                                   \
	X(attempt, 18)                                                                   \
	X(lease, 18)                                                                     \
	X(result, 18)                                                                    \
	X(job_blob, 18)                                                                  \
	X(audit_outbox, 18)                                                              \
	X(audit_state, 18)                                                               \
	X(budget, 18)                                                                    \
	X(broker_call, 18)                                                               \
	X(removed, 18)                                                                   \
	X(wish, 18)                                                                      \
	X(containment, 19)

/* HEADER: the columns' names go with the rows, and MATCH refuses other ones. */
static const struct {
	const char *name;
	unsigned since;
	const char *save, *empty, *load;
} tables[] = {
#define X(name, since)                                                                   \
	{#name, since, "COPY lych." #name " TO STDOUT WITH (HEADER)",                    \
	 "DELETE FROM lych." #name,                                                      \
	 "COPY lych." #name " FROM STDIN WITH (HEADER MATCH)"},
	TABLES(X)
#undef X
};

static const char *const left_out[] = {"schema_version", "tomb", "worker_queue",
				       "vessel_owner"};

/* psql's words for a line "\." */
#define END_OF_SECTION "\\echo '\\\\.'"
/* Other versions and clusters have other defaults. */
#define ONE_FORM                                                                         \
	"SET search_path = pg_catalog, pg_temp; SET client_encoding = 'UTF8';"           \
	" SET datestyle = 'ISO, YMD'; SET timezone = 'UTC'; SET bytea_output = 'hex';"   \
	" SET extra_float_digits = 1; SET intervalstyle = 'postgres'"
/* No superuser: it may read and write its tables, and no file and no program. */
#define AS_OWNER "SET SESSION AUTHORIZATION lych_owner"

/* The last number of each sequence, which may be of a row that is gone: it is in the log,
 * and must not mean another one. */
static const char save_numbers[] =
	"COPY (SELECT 'job' AS name, CASE WHEN is_called THEN last_value ELSE 0 END AS "
	"last"
	" FROM lych.job_id_seq UNION ALL"
	" SELECT 'audit_outbox', CASE WHEN is_called THEN last_value ELSE 0 END"
	" FROM lych.audit_outbox_id_seq) TO STDOUT WITH (HEADER)";
static const char *const load_numbers[] = {
	"CREATE TABLE lych.restored_number ("
	"name text PRIMARY KEY CHECK (name IN ('job', 'audit_outbox')),"
	" last bigint NOT NULL CHECK (last BETWEEN 0 AND 9007199254740991))",
	"COPY lych.restored_number FROM STDIN WITH (HEADER MATCH)",
	"SELECT setval('lych.job_id_seq', 1 + greatest("
	"(SELECT coalesce(max(last), 0) FROM lych.restored_number WHERE name = 'job'),"
	" (SELECT coalesce(max(id), 0) FROM lych.job)), false)",
	"SELECT setval('lych.audit_outbox_id_seq', 1 + greatest("
	"(SELECT coalesce(max(last), 0) FROM lych.restored_number"
	" WHERE name = 'audit_outbox'),"
	" (SELECT coalesce(max(id), 0) FROM lych.audit_outbox)), false)",
	"DROP TABLE lych.restored_number",
};

/* As its owner would have it, but that the events are said by who restores. */
static const char *const as_owner_now[] = {"SET search_path = pg_catalog, pg_temp",
					   "SET ROLE lych_owner"};
/* Times of a clock that began anew with the cluster. */
static const char forget_clock[] = "UPDATE lych.lease SET overdue_up = NULL";
static const char restart_audit[] = "SELECT lych.audit_restart()";

#define UNENDED "state IN ('held', 'queued', 'running')"
const char content_unended[] = "SELECT count(*) FROM lych.job WHERE " UNENDED;
static const char *const hold[] = {
	"INSERT INTO lych.audit_outbox (event, job_id, epoch, data)"
	" SELECT 'attempt.lost', job_id, epoch, '{\"why\": \"restored without a seal\"}'"
	" FROM lych.attempt WHERE ended_at IS NULL",
	"UPDATE lych.attempt SET ended_at = clock_timestamp(), outcome = 'lost',"
	" class = 'transport_loss' WHERE ended_at IS NULL",
	"DELETE FROM lych.lease",
	"INSERT INTO lych.audit_outbox (event, job_id, epoch, data)"
	" SELECT 'job.quarantined', id, epoch, '{\"why\": \"restored without a seal\"}'"
	" FROM lych.job WHERE " UNENDED,
	"UPDATE lych.job SET state = 'quarantined', epoch = epoch + 1 WHERE " UNENDED,
};

/* What the tables let in and no release writes: the vessel could not read, number or log
 * it, or nothing of it could ever run. Number, table, what its rows keep, columns, and why
 * one that does not is refused. No counter of a release comes near its limit here, and each
 * has room to grow. The outbox is sent in pieces of 512 events. */
#define ID " BETWEEN 1 AND 9007199254740991"
#define COUNT " BETWEEN 0 AND 4503599627370495"
#define PROMISES(X)                                                                      \
	X(2, job, "id" ID, "id", "a number that none has")                               \
	X(3, job, "isfinite(created_at) AND isfinite(updated_at) AND isfinite(run_at)",  \
	  "created_at, updated_at, run_at", "a time that none has")                      \
	X(4, job, "queue = 'main'", "queue", "a queue that no tomb serves")              \
	X(5, job,                                                                        \
	  "class IN ('', 'setup_refused', 'policy_deny', 'timeout_kill', 'oom_kill',"    \
	  " 'output_limit', 'disk_limit', 'resource_kill', 'exit', 'crash', 'input',"    \
	  " 'lease_expired', 'gate_failed', 'transport_loss', 'budget_exhausted')",      \
	  "class", "a word that none has")                                               \
	X(6, job, "epoch" COUNT, "epoch", "a number that none has")                      \
	X(7, job, "version" COUNT, "version", "a number that none has")                  \
	X(8, job, "attempts BETWEEN 0 AND 1000", "attempts", "a number that none has")   \
	X(9, job, "lost BETWEEN 0 AND 90000", "lost", "a number that none has")          \
	X(10, job, "releases BETWEEN 0 AND 1000000000", "releases",                      \
	  "a number that none has")                                                      \
	X(11, attempt, "epoch" COUNT, "epoch", "a number that none has")                 \
	X(12, lease, "epoch" COUNT, "epoch", "a number that none has")                   \
	X(13, result, "epoch" COUNT, "epoch", "a number that none has")                  \
	X(14, audit_outbox, "id" ID, "id", "a number that none has")                     \
	X(15, audit_outbox, "isfinite(at)", "at", "a time that none has")                \
	X(16, audit_outbox, "coalesce(job_id, 1)" ID, "job_id",                          \
	  "a number that none has")                                                      \
	X(17, audit_outbox, "coalesce(epoch, 0)" COUNT, "epoch",                         \
	  "a number that none has")                                                      \
	X(18, audit_outbox, "octet_length(event) <= 200", "event",                       \
	  "a size that none has")                                                        \
	X(19, audit_outbox, "octet_length(data::text) <= 65536", "data",                 \
	  "a size that none has")

/* Of all that are broken the first promise's first row: 10^12 times the promise, and the
 * row, 1 the first behind the names. COPY wrote them in the archive's order; one that a
 * migration since wrote anew stands behind the others. */
#define ROW_FACTOR 1000000000000
const char content_broken[] =
	"SELECT coalesce(min(promise * 1000000000000 + n), 0) FROM (SELECT 1::bigint AS"
	" promise, 0::bigint AS n WHERE (SELECT count(*) FROM lych.audit_state) <> 1"
#define X(number, table, keeps, columns, why)                                            \
	" UNION ALL SELECT " #number ", (SELECT count(*) FROM lych." #table              \
	" AS a WHERE a.ctid <= b.ctid) FROM (SELECT ctid FROM lych." #table              \
	" WHERE NOT (" keeps ") ORDER BY ctid LIMIT 1) AS b"
	PROMISES(X)
#undef X
		") AS broken";

char *content_broken_why(uint64_t number)
{
	static const struct {
		const char *table, *columns, *why;
	} promises[] = {
#define X(number, table, keeps, columns, why) [number] = {#table, columns, why},
		PROMISES(X)
#undef X
	};
	uint64_t promise = number / ROW_FACTOR, row = number % ROW_FACTOR;

	if (promise == 1)
		return xstrdup("audit_state: it is not one row");
	if (promise >= ARRAY_SIZE(promises) || !promises[promise].table)
		return xstrdup("a promise that is not known");
	return xasprintf("%s, row %" PRIu64 ", %s: %s", promises[promise].table, row,
			 promises[promise].columns, promises[promise].why);
}

/* ---- scripts ------------------------------------------------------------------- */

static void add(struct content_script *s, const char *statement)
{
	assert(s->n < CONTENT_STATEMENTS_MAX);
	s->statement[s->n++] = statement;
	s->statement[s->n] = NULL;
}

static void add_all(struct content_script *s, const char *const *statements, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(s, statements[i]);
}

void content_save(unsigned schema, struct content_script *ret)
{
	*ret = (struct content_script){0};
	add(ret, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
	add(ret, AS_OWNER);
	add(ret, ONE_FORM);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (tables[i].since > schema)
			continue;
		add(ret, tables[i].save);
		add(ret, END_OF_SECTION);
	}
	add(ret, save_numbers);
	add(ret, END_OF_SECTION);
	add(ret, "COMMIT");
}

/* The trigger would give each job this moment as that of its last change. */
void content_load(unsigned schema, struct content_script *ret)
{
	*ret = (struct content_script){0};
	add(ret, AS_OWNER);
	add(ret, ONE_FORM);
	add(ret, "ALTER TABLE lych.job DISABLE TRIGGER job_touch");
	for (size_t i = ARRAY_SIZE(tables); i-- > 0;)
		if (tables[i].since <= schema)
			add(ret, tables[i].empty);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (tables[i].since <= schema)
			add(ret, tables[i].load);
	add_all(ret, load_numbers, ARRAY_SIZE(load_numbers));
	add(ret, "ALTER TABLE lych.job ENABLE TRIGGER job_touch");
}

unsigned content_sections(unsigned schema)
{
	unsigned n = 1;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		n += tables[i].since <= schema;
	return n;
}

void content_finish(bool held, struct content_script *ret)
{
	*ret = (struct content_script){0};
	add_all(ret, as_owner_now, ARRAY_SIZE(as_owner_now));
	add(ret, forget_clock);
	/* first: what stands in the outbox before it, is numbered as of the old cluster */
	add(ret, restart_audit);
	if (held)
		add_all(ret, hold, ARRAY_SIZE(hold));
}

const char *content_table(unsigned schema, size_t i)
{
	for (size_t k = 0; k < ARRAY_SIZE(tables); k++)
		if (tables[k].since <= schema && i-- == 0)
			return tables[k].name;
	return NULL;
}

const char *content_left_out(size_t i)
{
	return i < ARRAY_SIZE(left_out) ? left_out[i] : NULL;
}
