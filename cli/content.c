/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/content.h"

#include "common/str.h"
#include <assert.h>

/* Name and first schema, each behind what its keys name; the jobs first (CONTENT_JOBS). */
#define TABLES(X)                                                                        \
	X(job, 14)                                                                       \
	X(payload, 14)                                                                   \
	X(attempt, 14)                                                                   \
	X(lease, 14)                                                                     \
	X(result, 14)                                                                    \
	X(job_blob, 14)                                                                  \
	X(audit_outbox, 14)                                                              \
	X(audit_state, 14)                                                               \
	X(budget, 14)                                                                    \
	X(broker_call, 14)                                                               \
	X(removed, 14)                                                                   \
	X(wish, 16)

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
 * it. The outbox is sent in pieces of 512 events. */
const char content_broken[] =
	"SELECT CASE"
	" WHEN (SELECT count(*) FROM lych.audit_state) <> 1 THEN 1"
	" WHEN EXISTS (SELECT 1 FROM lych.job WHERE id NOT BETWEEN 1 AND "
	"9007199254740991)"
	" THEN 2"
	" WHEN EXISTS (SELECT 1 FROM lych.job WHERE NOT (isfinite(created_at)"
	" AND isfinite(updated_at) AND isfinite(run_at))) THEN 3"
	" WHEN EXISTS (SELECT 1 FROM lych.audit_outbox WHERE NOT isfinite(at)"
	" OR id NOT BETWEEN 1 AND 9007199254740991 OR octet_length(event) > 200"
	" OR octet_length(data::text) > 65536) THEN 4"
	" ELSE 0 END";

const char *content_broken_why(uint64_t number)
{
	static const char *const why[] = {
		"",
		"the state of the audit log is not one row",
		"a job has a number that none has",
		"a job has a time that none has",
		"an event has a time, number or size that none has",
	};

	return number < ARRAY_SIZE(why) ? why[number] : "";
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
