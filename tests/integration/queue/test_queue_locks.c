/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for whom in the queue: a worker that holds a row, an idle or a long transaction,
 * and the watchdog that ends them. Nobody else's call waits for a tomb.
 * test_queue_vessel.c includes this file, as it does test_queue_sql.c.
 */
#ifndef SUITE
#define SUITE queue_locks
#endif
#include "tests/support/queue_suite.h"
#include "vessel/db/migrate.h"

Test(SUITE, watchdog_ends_idle_transactions_of_tombs_only)
{
	PGconn *dog = pgtest_connect("lych_watchdog");

	(void)pgtest_ask(tomb, "BEGIN");
	(void)pgtest_ask(vessel, "BEGIN");
	expect(pgtest_ask(dog, "SELECT count(*) FROM watch_api.sweep()"), "0");
	(void)pgtest_ask(root, "SELECT pg_sleep(0.6)");
	expect(pgtest_ask(dog, "SELECT role || ': ' || why FROM watch_api.sweep()"),
	       "tomb_1: idle in transaction");
	cr_expect(strncmp(pgtest_ask(tomb, "SELECT 1"), "ERROR", 5) == 0);
	expect(pgtest_ask(tomb2, "SELECT 1"), "1");
	expect(pgtest_ask(vessel, "SELECT 1"), "1");
	expect(pgtest_ask(dog, "SELECT * FROM lych.job"), "ERROR 42501");
	PQfinish(dog);
}

/* Sends what waits for a lock, and waits until it does. */
static void send_and_wait(PGconn *c, const char *sql)
{
	cr_assert(PQsendQuery(c, sql));
	for (int i = 0; i < 250; i++) {
		if (strcmp(pgtest_ask(root, "SELECT count(*) FROM pg_locks WHERE NOT"
					    " granted AND waitstart < clock_timestamp()"
					    " - interval '260 ms'"),
			   "0") != 0)
			return;
		(void)pgtest_ask(root, "SELECT pg_sleep(0.02)");
	}
	cr_assert_fail("it does not wait: %s", sql);
}

/* A job of tomb_1, whose row this session of it holds: it gave the job back and does not commit. */
static struct held claim_and_hold_row(PGconn *mine, const char *request)
{
	(void)submit(request, "t");
	struct held h = claim(tomb);

	(void)pgtest_ask(mine, "BEGIN");
	expect(pgtest_askp(mine,
			   "SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid)",
			   h.job, h.epoch, h.token, NULL),
	       "ok");
	return h;
}

Test(SUITE, nobody_waits_for_a_job_that_is_not_the_callers)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	(void)pgtest_ask(tomb2, "BEGIN");
	expect(pgtest_askp(tomb2, "SELECT tomb_api.ack($1::bigint, 1, $2::uuid, '')",
			   h.job, BOOT, NULL),
	       "denied");
	/* neither by another one's token, were it known */
	expect(pgtest_askp(tomb2,
			   "SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid)",
			   h.job, h.epoch, h.token, NULL),
	       "denied");
	(void)pgtest_ask(vessel, "SET lock_timeout = '1s'");
	expect(cancel(h.job), "cancelling");
	(void)pgtest_ask(tomb2, "ROLLBACK");
}

/* One call that gives the job back, and goes on: by itself it might for seconds. Until it holds the row. */
static void send_endless_call(PGconn *mine, const struct held *h)
{
#define FIVE "(1),(1),(1),(1),(1)"
#define ROWS "(VALUES " FIVE "," FIVE "," FIVE "," FIVE ")"
	static const char *const many =
		ROWS "a," ROWS "b," ROWS "c," ROWS "d," ROWS "e," ROWS "f," ROWS "g";
	char sql[1000], has_written[100];

	cr_assert(str_fmt(sql, sizeof(sql),
			  "SELECT tomb_api.release(%s, %s, '%s'), (SELECT 1 FROM "
			  "%s OFFSET 100000000000)",
			  h->job, h->epoch, h->token, many) == 0);
	cr_assert(PQsendQuery(mine, sql));
	(void)snprintf(has_written, sizeof(has_written),
		       "SELECT count(*) FROM pg_locks WHERE pid = %d AND transactionid "
		       "IS NOT NULL",
		       PQbackendPID(mine));
	for (int i = 0; strcmp(pgtest_ask(root, has_written), "0") == 0; i++) {
		cr_assert(i < 500, "it does not begin");
		(void)pgtest_ask(root, "SELECT pg_sleep(0.01)");
	}
}

/* The owner waits for the job's row. */
static void wait_to_contain(PGconn *owner, const struct held *h)
{
	static char sql[200];

	(void)snprintf(sql, sizeof(sql), "SELECT vessel_api.contain(%s, 'x')", h->job);
	send_and_wait(owner, sql);
}

/* It waits no more, and nobody else is to be ended. */
static void expect_contained(PGconn *owner, PGconn *dog)
{
	PGresult *r = PQgetResult(owner);

	expect(PQgetvalue(r, 0, 0), "contained");
	PQclear(r);
	while ((r = PQgetResult(owner)))
		PQclear(r);
	expect(pgtest_ask(dog, "SELECT count(*) FROM watch_api.sweep()"), "0");
}

#define SWEEP "SELECT role || ': ' || why FROM watch_api.sweep()"

Test(SUITE, watchdog_ends_the_tomb_that_others_wait_for)
{
	PGconn *dog = pgtest_connect("lych_watchdog"), *mine = pgtest_connect("tomb_1");
	PGconn *owner = pgtest_connect("lych_vessel");

	(void)submit("r1", "t");
	struct held h = claim(tomb);

	send_endless_call(mine, &h);
	wait_to_contain(owner, &h);
	expect(pgtest_ask(dog, SWEEP), "tomb_1: others wait for it");
	expect_contained(owner, dog);
	PQfinish(mine);
	PQfinish(owner);
	PQfinish(dog);
}

/* On a slow machine its transaction is half a second old by then, and it is ended for that: once
 * more. Who takes part is there before it begins. */
Test(SUITE, watchdog_ends_the_idle_tomb_that_others_wait_for)
{
	PGconn *dog = pgtest_connect("lych_watchdog");
	PGconn *owner = pgtest_connect("lych_vessel");
	const char *why = "tomb_1: not a call";

	(void)pgtest_ask(dog, SWEEP);
	for (int i = 0; i < 20 && strcmp(why, "tomb_1: not a call") == 0; i++) {
		PGconn *mine = pgtest_connect("tomb_1");
		char request[8];

		(void)snprintf(request, sizeof(request), "r%d", i);
		struct held h = claim_and_hold_row(mine, request);

		wait_to_contain(owner, &h);
		/* it is at work again: neither idle for long nor in an old transaction */
		(void)pgtest_ask(mine, "SELECT 1");
		why = keep(pgtest_ask(dog, SWEEP));
		expect_contained(owner, dog);
		PQfinish(mine);
	}
	expect(why, "tomb_1: others wait for it");
	PQfinish(owner);
	PQfinish(dog);
}

Test(SUITE, watchdog_ends_a_tomb_that_says_anything_else_for_long)
{
	static const char *const more[] = {
		"", "; SELECT tomb_api.ack(1, 1, '" BOOT "', 'x')",
		"-- SELECT tomb_api.", /* a comment, and one that is long: */
		"/* tomb_api. */"};
	PGconn *dog = pgtest_connect("lych_watchdog");
	char *many = xmalloc(200000), *sql;
	size_t at = 0;

	for (int i = 0; i < 9999; i++)
		at += (size_t)snprintf(many + at, 200000 - at, "(%d),", i);
	(void)snprintf(many + at, 200000 - at, "(1)");
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		PGconn *odd = pgtest_connect("tomb_1");

		sql = xasprintf("%s\nSELECT 1 FROM (VALUES %s) a, (VALUES %s) b OFFSET"
				" 100000000000%s",
				i >= 2 ? more[i] : "", many, many, i < 2 ? more[i] : "");
		cr_assert(PQsendQuery(odd, sql));
		free(sql);
		(void)pgtest_ask(root, "SELECT pg_sleep(0.6)");
		expect(pgtest_ask(dog, SWEEP), "tomb_1: not a call");
		PQfinish(odd);
	}
	free(many);
	/* one call after the other in one transaction is none either */
	(void)pgtest_ask(tomb, "BEGIN");
	for (int i = 0; i < 8; i++) {
		(void)pgtest_ask(tomb, "SELECT tomb_api.ack(1, 1, '" BOOT "', 'x')");
		(void)pgtest_ask(root, "SELECT pg_sleep(0.08)");
	}
	expect(pgtest_ask(dog, SWEEP), "tomb_1: not a call");
	/* a call may take its time */
	(void)pgtest_ask(root, "BEGIN");
	(void)pgtest_ask(root, "LOCK TABLE lych.attempt");
	cr_assert(PQsendQuery(tomb2, "SELECT tomb_api.ack(1, 1, '" BOOT "', 'x')"));
	PGconn *other = pgtest_connect("lych_migrate");
	(void)pgtest_ask(other, "SELECT pg_sleep(0.6)");
	expect(pgtest_ask(dog, "SELECT count(*) FROM watch_api.sweep()"), "0");
	(void)pgtest_ask(root, "ROLLBACK");
	PGresult *r = PQgetResult(tomb2);
	expect(PQgetvalue(r, 0, 0), "unknown");
	PQclear(r);
	PQfinish(other);
	PQfinish(dog);
}

Test(SUITE, a_job_whose_row_is_held_is_cancelled_as_soon_as_it_is_free)
{
	PGconn *mine = pgtest_connect("tomb_1");

	struct held h = claim_and_hold_row(mine, "r1");

	/* nobody waits for it */
	(void)pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')");
	expect(cancel(h.job), "cancelling");
	expect(cancel(h.job), "cancelling");
	expect(pgtest_askp(vessel,
			   "SELECT vessel_api.set_phase($1::bigint, $2::bigint, $3::uuid,"
			   " 'running')",
			   h.job, h.epoch, h.token, NULL),
	       "ERROR 55P03");
	expect(pgtest_askp(vessel, "SELECT vessel_api.remove($1::bigint)", h.job, NULL),
	       "state");
	expect(pgtest_askp(vessel, "SELECT vessel_api.retry($1::bigint, 9)", h.job, NULL),
	       "state");
	expect(pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.reap('" VESSEL "', 9, 0)"),
	       "0");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.wish"), "1");
	(void)pgtest_ask(mine, "ROLLBACK");
	expect(pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.reap('" VESSEL "', 9, 0)"),
	       "0");
	expect(state(h.job), "cancelling/");
	expect(extend(tomb, h), "cancel");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.wish"), "0");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.audit_outbox"
				" WHERE event = 'job.cancel_requested'"),
	       "1");
	PQfinish(mine);
}

Test(SUITE, an_attempt_that_ended_holds_nothing)
{
	PGconn *mine = pgtest_connect("tomb_1");

	(void)submit("r1", "t");
	struct held h = claim(tomb);
	expect(ack(tomb, h, "{}"), "ok");
	(void)pgtest_ask(mine, "BEGIN");
	expect(pgtest_askp(mine,
			   "SELECT tomb_api.ack($1::bigint, $2::bigint, $3::uuid, '{}')",
			   h.job, h.epoch, h.token, NULL),
	       "already");
	(void)pgtest_ask(vessel, "SET lock_timeout = '1s'");
	expect(pgtest_askp(vessel, "SELECT vessel_api.remove($1::bigint)", h.job, NULL),
	       "ok");
	PQfinish(mine);
}
