/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 120 */
/*
 * The outbox and the gate of claims, as SQL: the order in which events are read, what
 * opens and closes claims, who may do so.
 */
#include "common/mem.h"
#include "tests/support/migrated.h"
#include "tests/support/pgtest.h"
#include "vessel/db/migrate.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>

#define VESSEL "00000000-0000-4000-8000-00000000feed"
#define OTHER "00000000-0000-4000-8000-00000000dead"

static PGconn *root, *vessel, *tomb;

ReportHook(PRE_ALL)(struct criterion_test_set *set UNUSED)
{
	static const char *const tombs[] = {"tomb_1"};

	migrated_start(tombs, 1);
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats UNUSED)
{
	pgtest_stop();
}

#define expect(got, want) cr_expect_str_eq((got), (want))

/* An empty queue, owned by VESSEL, nothing shipped, claims closed. */
static void begin(void)
{
	pgtest_lock();
	root = pgtest_connect("lych_migrate");
	vessel = pgtest_connect("lych_vessel");
	tomb = pgtest_connect("tomb_1");
	(void)pgtest_ask(root, "TRUNCATE lych.job, lych.containment, lych.payload, "
			       "lych.attempt, lych.lease,"
			       " lych.result, lych.job_blob, lych.vessel_owner");
	expect(pgtest_askp(vessel, "SELECT vessel_api.vessel_beat($1)", VESSEL, NULL),
	       "ok");
	(void)pgtest_ask(root,
			 "TRUNCATE lych.audit_outbox;"
			 "UPDATE lych.audit_state SET acked_xid = 0, acked_id = 0,"
			 " acked_pseq = 0, ok_until = '-infinity', stream = '" OTHER "';"
			 "UPDATE lych.worker_queue SET tokens = 400");
}

static void end(void)
{
	cr_expect_str_eq(pgtest_ask(root, "SELECT sum(bad) FROM lych.invariants()"), "0");
	PQfinish(root);
	PQfinish(vessel);
	PQfinish(tomb);
}

TestSuite(audit_sql, .init = begin, .fini = end, .timeout = 60);

static const char *submit(PGconn *c, const char *request)
{
	return pgtest_askp(c,
			   "SELECT status FROM vessel_api.enqueue('main', $1,"
			   " '{\"argv\":[\"true\"]}'::bytea, 50, true, 60, 1000)",
			   request, NULL);
}

static const char *claim(void)
{
	return pgtest_rowsp(tomb,
			    "SELECT * FROM tomb_api.claim('main', 8, 30, '" OTHER
			    "', $1::uuid)",
			    pgtest_uuid(), NULL);
}

static const char *mark(const char *boot, const char *stream, const char *good)
{
	return pgtest_askp(vessel, "SELECT vessel_api.audit_mark($1, $2, 0, 0, 0, $3)",
			   boot, stream, good, NULL);
}

/* What would be shipped, as "event event ..." in order. */
static const char *next(void)
{
	return pgtest_ask(vessel, "SELECT coalesce(string_agg(event, ' '), '') FROM"
				  " vessel_api.audit_next(0, 0, 100)");
}

Test(audit_sql, only_the_vessel_may_call_and_nobody_sees_a_table)
{
	expect(pgtest_ask(tomb, "SELECT vessel_api.audit_mark('" VESSEL "', '" OTHER
				"', 0, 0, 0, true)"),
	       "ERROR 42501");
	expect(pgtest_ask(tomb, "SELECT * FROM vessel_api.audit_next(0, 0, 1)"),
	       "ERROR 42501");
	expect(pgtest_ask(tomb, "UPDATE lych.audit_state SET ok_until = 'infinity'"),
	       "ERROR 42501");
	expect(pgtest_ask(vessel, "UPDATE lych.audit_state SET ok_until = 'infinity'"),
	       "ERROR 42501");
	expect(pgtest_ask(vessel, "DELETE FROM lych.audit_outbox"), "ERROR 42501");
	expect(pgtest_ask(vessel, "SELECT lych.audit_restart()"), "ERROR 42501");
}

Test(audit_sql, the_anchor_takes_rows_of_the_vessel_and_nobody_changes_one)
{
	static const char *const changes[] = {
		"UPDATE lych_anchor.checkpoint SET size = 0",
		"DELETE FROM lych_anchor.checkpoint",
		"TRUNCATE lych_anchor.checkpoint",
		"DROP TABLE lych_anchor.checkpoint",
		"ALTER TABLE lych_anchor.checkpoint DISABLE TRIGGER ALL",
	};
	static const char put[] =
		"INSERT INTO lych_anchor.checkpoint (log, size, root, line) VALUES"
		" ('" OTHER "', 7, repeat('A', 44), '{}')";
	static const char look[] = "SELECT count(*) > 0 FROM lych_anchor.checkpoint";

	expect(pgtest_ask(tomb, put), "ERROR 42501");
	expect(pgtest_ask(tomb, look), "ERROR 42501");
	expect(pgtest_ask(vessel, put), "");
	expect(pgtest_ask(vessel, look), "t");
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		expect(pgtest_ask(vessel, changes[i]), "ERROR 42501");
		if (i <
		    3) /* the superuser may do away with all of it, and not in passing */
			expect(pgtest_ask(root, changes[i]), "ERROR 42501");
	}
	(void)pgtest_ask(root, "SET ROLE lych_owner");
	expect(pgtest_ask(root, look), "ERROR 42501");
	expect(pgtest_ask(root, put), "ERROR 42501");
	(void)pgtest_ask(root, "RESET ROLE");
	expect(pgtest_ask(root, look), "t");
}

Test(audit_sql, claims_are_closed_until_a_mark_opens_them)
{
	expect(submit(vessel, "a"), "ok");
	expect(claim(), "0");
	expect(mark(OTHER, OTHER, "t"), "fenced");
	expect(claim(), "0");
	expect(mark(VESSEL, VESSEL, "t"), "restarted");
	expect(claim(), "0");
	expect(mark(VESSEL, OTHER, "f"), "ok");
	expect(claim(), "0");
	expect(mark(VESSEL, OTHER, "t"), "ok");
	expect(claim(), "1");
	expect(submit(vessel, "b"), "ok");
	expect(mark(VESSEL, OTHER, "f"), "ok");
	expect(claim(), "0");
}

Test(audit_sql, a_mark_lasts_ten_seconds_and_no_longer)
{
	expect(submit(vessel, "a"), "ok");
	expect(mark(VESSEL, OTHER, "t"), "ok");
	expect(pgtest_ask(root, "SELECT ok_until BETWEEN clock_timestamp() AND"
				" clock_timestamp() + interval '10 s'"
				" FROM lych.audit_state"),
	       "t");
	(void)pgtest_ask(root,
			 "UPDATE lych.audit_state SET ok_until = clock_timestamp()");
	expect(claim(), "0");
}

Test(audit_sql, an_event_that_waits_too_long_keeps_claims_closed)
{
	expect(submit(vessel, "a"), "ok");
	(void)pgtest_ask(root, "UPDATE lych.audit_outbox SET at = clock_timestamp()"
			       " - interval '11 s'");
	expect(mark(VESSEL, OTHER, "t"), "behind");
	expect(claim(), "0");
	/* it has been shipped: the place behind it is marked */
	expect(pgtest_ask(vessel, "SELECT vessel_api.audit_mark('" VESSEL "', '" OTHER
				  "', xid, id, 1, true)"
				  " FROM vessel_api.audit_next(0, 0, 1)"),
	       "ok");
	expect(claim(), "1");
}

Test(audit_sql, a_lease_that_is_held_is_renewed_and_ended_while_claims_are_closed)
{
	expect(submit(vessel, "a"), "ok");
	expect(mark(VESSEL, OTHER, "t"), "ok");
	expect(claim(), "1");
	expect(mark(VESSEL, OTHER, "f"), "ok");
	expect(pgtest_askp(tomb,
			   "SELECT status FROM tomb_api.extend('" OTHER
			   "', ARRAY(SELECT 0::bigint), ARRAY[1::bigint],"
			   " ARRAY[$1::uuid], 30)",
			   pgtest_uuid(), NULL),
	       "lost");
	char *lease = xstrdup(
		pgtest_ask(root, "SELECT job_id || ',' || epoch || ',''' || token || ''''"
				 " FROM lych.lease"));
	char *sql = xasprintf("SELECT tomb_api.ack(%s, '{}'::bytea)", lease);

	expect(pgtest_ask(tomb, sql), "ok");
	free(lease);
	free(sql);
}

/* A transaction that drew its place earlier and commits later: nothing after it is read
 * before it has ended. */
Test(audit_sql, what_is_read_is_settled_and_never_changes_its_place)
{
	PGconn *slow = pgtest_connect("lych_vessel");

	(void)pgtest_ask(slow, "BEGIN");
	expect(submit(slow, "slow"), "ok");
	expect(submit(vessel, "quick"), "ok");
	expect(next(), "");
	(void)pgtest_ask(slow, "COMMIT");
	expect(next(), "job.enqueued job.enqueued");
	expect(pgtest_ask(vessel, "SELECT string_agg(data::jsonb ->> 'request_id', ' ')"
				  " FROM vessel_api.audit_next(0, 0, 100)"),
	       "slow quick");
	/* one that is rolled back leaves no hole */
	(void)pgtest_ask(slow, "BEGIN");
	expect(submit(slow, "never"), "ok");
	(void)pgtest_ask(slow, "ROLLBACK");
	expect(submit(vessel, "third"), "ok");
	expect(next(), "job.enqueued job.enqueued job.enqueued");
	PQfinish(slow);
}

Test(audit_sql, a_place_never_moves_back)
{
	static const char place[] = "SELECT acked_xid || ' ' || acked_id || ' ' ||"
				    " acked_pseq FROM lych.audit_state";

	(void)pgtest_ask(vessel, "SELECT vessel_api.audit_mark('" VESSEL "', '" OTHER
				 "', 50, 7, 9, true)");
	expect(pgtest_ask(root, place), "50 7 9");
	(void)pgtest_ask(vessel, "SELECT vessel_api.audit_mark('" VESSEL "', '" OTHER
				 "', 40, 6, 8, true)");
	expect(pgtest_ask(root, place), "50 7 9");
}

Test(audit_sql, a_new_numbering_ships_what_was_not_shipped_and_says_so)
{
	expect(submit(vessel, "shipped"), "ok");
	(void)pgtest_ask(vessel, "SELECT vessel_api.audit_mark('" VESSEL "', '" OTHER
				 "', xid, id, 1, true)"
				 " FROM vessel_api.audit_next(0, 0, 1)");
	expect(submit(vessel, "waits"), "ok");
	/* as after a restore: transaction ids of another cluster */
	(void)pgtest_ask(root,
			 "UPDATE lych.audit_outbox SET xid = xid + (1::bigint << 40);"
			 "UPDATE lych.audit_state SET acked_xid = acked_xid +"
			 " (1::bigint << 40)");
	(void)pgtest_ask(root, "SELECT lych.audit_restart()");
	expect(mark(VESSEL, OTHER, "t"), "restarted");
	expect(pgtest_ask(vessel, "SELECT string_agg(n.event || coalesce(':' ||"
				  " (n.data::jsonb ->> 'request_id'), ''), ' ')"
				  " FROM vessel_api.audit_begin('" VESSEL "') b,"
				  " vessel_api.audit_next(b.xid, b.id, 100) n"),
	       "job.enqueued:waits audit.restarted");
}

Test(audit_sql, a_job_is_forgotten_with_its_events_once_they_are_shipped)
{
	expect(submit(vessel, "a"), "ok");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.list('', 0, 9) l,"
				  " vessel_api.cancel(l.id)"),
	       "1");
	(void)pgtest_ask(root, "UPDATE lych.job SET finished_at = clock_timestamp() -"
			       " interval '40 days'");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.retain(60, 10)"), "0");
	expect(next(), "job.enqueued job.cancelled");
	expect(pgtest_ask(vessel, "SELECT vessel_api.audit_mark('" VESSEL "', '" OTHER
				  "', max(xid), max(id), 2, true)"
				  " FROM vessel_api.audit_next(0, 0, 10)"),
	       "ok");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.retain(60, 10)"), "1");
	expect(next(), "");
}
