/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 180 */
/*
 * The queue's SQL against a real PostgreSQL, judged from the outside: what a worker's
 * login must not do, every answer of the worker functions, and the lives of a job.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/pgtest.h"
#include "vessel/migrate.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>

#define BOOT "00000000-0000-4000-8000-00000000b001"
#define VESSEL "00000000-0000-4000-8000-00000000feed"

static PGconn *root, *vessel, *tomb, *tomb2;

ReportHook(PRE_ALL)(struct criterion_test_set *set UNUSED)
{
	static const char *const tombs[] = {"tomb_1", "tomb_2"};
	struct err err = ERR_INIT;
	int applied = 0;

	(void)pgtest_start();
	char *sock = xstrdup(pgtest_path("sock"));
	const struct migrate_config cfg = {.socket_dir = sock,
					   .secrets_dir = pgtest_path("secrets"),
					   .tombs = tombs,
					   .n_tombs = 2};
	if (migrate_run(&cfg, &applied, &err) < 0) {
		fprintf(stderr, "migrate: %s\n", err.msg);
		abort();
	}
	free(sock);
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats UNUSED)
{
	pgtest_stop();
}

/* Each test begins with an empty queue. */
static void begin(void)
{
	pgtest_lock();
	root = pgtest_connect("lych_migrate");
	vessel = pgtest_connect("lych_vessel");
	tomb = pgtest_connect("tomb_1");
	tomb2 = pgtest_connect("tomb_2");
	(void)pgtest_ask(
		root,
		"TRUNCATE lych.job, lych.payload, lych.attempt, lych.lease, lych.result,"
		" lych.job_blob, lych.audit_outbox, lych.vessel_owner;"
		"UPDATE lych.worker_queue SET tokens = 400, claim_burst = 400,"
		" claim_rate = 200, max_leases = 64");
}

static void end(void)
{
	cr_expect_str_eq(pgtest_ask(root, "SELECT sum(bad) FROM lych.invariants()"), "0");
	PQfinish(root);
	PQfinish(vessel);
	PQfinish(tomb);
	PQfinish(tomb2);
}

TestSuite(queue_sql, .init = begin, .fini = end, .timeout = 60);

#define expect(got, want) cr_expect_str_eq((got), (want))

static const char *submit(const char *request, const char *retry)
{
	return pgtest_askp(vessel,
			   "SELECT job_id FROM vessel_api.enqueue('main', $1,"
			   " '{\"argv\":[\"true\"]}', 50, $2::boolean, 600, 1000)",
			   request, retry, NULL);
}

/* What a claim gave; the text lives as long as the test's process. */
struct held {
	const char *job, *epoch, *token;
};

static const char *keep(const char *text)
{
	static char kept[256][40];
	static size_t n;

	cr_assert_lt(n, ARRAY_SIZE(kept));
	cr_assert_eq(str_copy(kept[n], sizeof(kept[n]), text), 0);
	return kept[n++];
}

/* Claim one job as this tomb; job is "" when there was none. */
static struct held claim(PGconn *c)
{
	PGresult *r =
		PQexec(c, "SELECT job_id, epoch, token FROM tomb_api.claim('main', 1,"
			  " 30, '" BOOT "', gen_random_uuid())");
	bool any = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
	struct held h = {
		.job = keep(any ? PQgetvalue(r, 0, 0) : ""),
		.epoch = keep(any ? PQgetvalue(r, 0, 1) : ""),
		.token = keep(any ? PQgetvalue(r, 0, 2) : ""),
	};

	PQclear(r);
	return h;
}

static const char *ack(PGconn *c, struct held h, const char *result)
{
	return pgtest_askp(c,
			   "SELECT tomb_api.ack($1::bigint, $2::bigint, $3::uuid,"
			   " convert_to($4, 'UTF8'))",
			   h.job, h.epoch, h.token, result, NULL);
}

static const char *fail(struct held h, const char *retry, const char *class)
{
	return pgtest_askp(
		tomb,
		"SELECT tomb_api.fail($1::bigint, $2::bigint, $3::uuid, $4::boolean,"
		" $5, '{}')",
		h.job, h.epoch, h.token, retry, class, NULL);
}

static const char *release(struct held h)
{
	return pgtest_askp(tomb,
			   "SELECT tomb_api.release($1::bigint, $2::bigint, $3::uuid)",
			   h.job, h.epoch, h.token, NULL);
}

static const char *extend(PGconn *c, struct held h)
{
	return pgtest_askp(c,
			   "SELECT status FROM tomb_api.extend('" BOOT
			   "', ARRAY[$1::bigint],"
			   " ARRAY[$2::bigint], ARRAY[$3::uuid], 30)",
			   h.job, h.epoch, h.token, NULL);
}

static const char *state(const char *job)
{
	return pgtest_askp(
		vessel, "SELECT state || '/' || class FROM vessel_api.show($1::bigint)",
		job, NULL);
}

static const char *cancel(const char *job)
{
	return pgtest_askp(vessel, "SELECT * FROM vessel_api.cancel($1::bigint)", job,
			   NULL);
}

/* Let the lease run out and reap without grace. */
static const char *lose(const char *job)
{
	(void)pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')");
	(void)pgtest_askp(root,
			  "UPDATE lych.lease SET expires_at = now() - interval '1 s'"
			  " WHERE job_id = $1::bigint",
			  job, NULL);
	return pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.reap('" VESSEL "', 100, 0)");
}

static void ready_now(void)
{
	(void)pgtest_ask(root,
			 "UPDATE lych.job SET run_at = now() WHERE state = 'queued'");
}

/* ---- what a worker's login must not do ----------------------------------------- */

Test(queue_sql, tomb_has_no_table_and_exactly_five_functions)
{
	expect(pgtest_ask(
		       root,
		       "SELECT count(*) FROM pg_class c WHERE c.relkind IN"
		       " ('r','v','m','p','f','S') AND c.relnamespace NOT IN"
		       " ('pg_catalog'::regnamespace,'information_schema'::regnamespace,"
		       "  'pg_toast'::regnamespace)"
		       " AND CASE WHEN c.relkind = 'S'"
		       "  THEN has_sequence_privilege('tomb_1', c.oid, "
		       "'USAGE,SELECT,UPDATE')"
		       "  ELSE has_table_privilege('tomb_1', c.oid,"
		       "  'SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER')"
		       "  OR has_any_column_privilege('tomb_1', c.oid,"
		       "  'SELECT,INSERT,UPDATE,REFERENCES') END"),
	       "0");
	expect(pgtest_ask(
		       root,
		       "SELECT string_agg(p.oid::regprocedure::text, ' ' ORDER BY"
		       " p.proname) FROM pg_proc p WHERE p.pronamespace NOT IN"
		       " ('pg_catalog'::regnamespace,'information_schema'::regnamespace)"
		       " AND has_function_privilege('tomb_1', p.oid, 'EXECUTE')"),
	       "tomb_api.ack(bigint,bigint,uuid,bytea) "
	       "tomb_api.claim(text,integer,integer,uuid,uuid) "
	       "tomb_api.extend(uuid,bigint[],bigint[],uuid[],integer) "
	       "tomb_api.fail(bigint,bigint,uuid,boolean,text,bytea) "
	       "tomb_api.release(bigint,bigint,uuid)");
	expect(pgtest_ask(root,
			  "SELECT count(*) FROM pg_proc p WHERE p.proname ~"
			  " 'advisory|^lo_|^loread|^lowrite|^pg_sleep|logical_emit|"
			  "export_snap'"
			  " AND has_function_privilege('tomb_1', p.oid, 'EXECUTE')"),
	       "0");
	expect(pgtest_ask(root, "SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE"
				" nspname NOT IN ('pg_catalog','information_schema') AND"
				" has_schema_privilege('tomb_1', oid, 'USAGE,CREATE')"),
	       "tomb_api");
	expect(pgtest_ask(root, "SELECT count(*) FROM pg_proc p WHERE p.pronamespace IN"
				" ('tomb_api'::regnamespace,'vessel_api'::regnamespace,"
				" 'lych'::regnamespace,'watch_api'::regnamespace) AND NOT"
				" 'search_path=pg_catalog, pg_temp' = ANY(p.proconfig)"),
	       "0");
}

Test(queue_sql, vessel_and_watchdog_have_no_table_either)
{
	expect(pgtest_ask(root,
			  "SELECT count(*) FROM pg_class c, (VALUES ('lych_vessel'),"
			  " ('lych_watchdog')) AS r (n) WHERE c.relkind IN ('r','v','S')"
			  " AND c.relnamespace = 'lych'::regnamespace"
			  " AND c.relkind <> 'S' AND has_table_privilege(r.n, c.oid,"
			  " 'SELECT,INSERT,UPDATE,DELETE,TRUNCATE')"),
	       "0");
	expect(pgtest_ask(vessel, "SELECT * FROM lych.job"), "ERROR 42501");
	expect(pgtest_ask(vessel, "SELECT tomb_api.release(1, 1, gen_random_uuid())"),
	       "ERROR 42501");
}

Test(queue_sql, forbidden_acts_of_a_tomb)
{
	static const char *const acts[] = {
		"SELECT * FROM lych.job",
		"UPDATE lych.worker_queue SET max_leases = 1000",
		"SELECT lych.set_login('tomb_1', 'x')",
		"SELECT lych.end_attempt(1, 1, gen_random_uuid(), 'succeeded', '', NULL)",
		"SELECT vessel_api.health()",
		"SELECT vessel_api.enqueue('main', 'x', '{}', 1, true, 1, 1)",
		"SELECT watch_api.sweep()",
		"CREATE TABLE public.t (a int)",
		"CREATE TEMP TABLE t (a int)",
		"CREATE SCHEMA s",
		"CREATE FUNCTION tomb_api.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"DO $$ BEGIN PERFORM 1; END $$",
		"SELECT lo_create(0)",
		"SELECT lo_from_bytea(0, 'x')",
		"SELECT pg_advisory_lock(1)",
		"SELECT pg_try_advisory_xact_lock(1)",
		"SELECT pg_logical_emit_message(true, 'a', 'b')",
		"SELECT pg_export_snapshot()",
		"SELECT pg_sleep(1)",
		"SET ROLE lych_owner",
		"SET SESSION AUTHORIZATION lych_vessel",
		"SET temp_file_limit = -1",
		"ALTER ROLE tomb_2 PASSWORD 'x'",
		"CREATE ROLE r",
		"CREATE DATABASE d",
		"SELECT pg_read_file('/etc/passwd')",
		"COPY (SELECT 1) TO PROGRAM 'true'",
		"COPY (SELECT 1) TO '/tmp/x'",
		"SELECT rolpassword FROM pg_authid",
		"SELECT pg_reload_conf()",
		"ALTER SYSTEM SET work_mem = '1GB'",
	};

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		cr_expect_str_eq(pgtest_ask(tomb, acts[i]), "ERROR 42501", "%s", acts[i]);
	expect(pgtest_askp(tomb, "SELECT pg_terminate_backend($1::int)",
			   pgtest_ask(vessel, "SELECT pg_backend_pid()"), NULL),
	       "ERROR 42501");
	expect(pgtest_ask(tomb, "SELECT * FROM tomb_api.claim('other', 1, 30, '" BOOT
				"', gen_random_uuid())"),
	       "ERROR 42501");
}

/* ---- answers --------------------------------------------------------------------- */

Test(queue_sql, submit_is_idempotent_and_conflicts_on_other_content)
{
	const char *a = submit("r1", "t");

	expect(submit("r1", "t"), a);
	expect(pgtest_ask(vessel, "SELECT status FROM vessel_api.enqueue('main', 'r1',"
				  " '{\"argv\":[\"false\"]}', 50, true, 600, 1000)"),
	       "conflict");
	expect(pgtest_ask(vessel, "SELECT status FROM vessel_api.enqueue('main', 'r2',"
				  " '{}', 50, true, 600, 1)"),
	       "full");
	expect(pgtest_ask(vessel, "SELECT existing FROM vessel_api.enqueue('main', 'r1',"
				  " '{\"argv\":[\"true\"]}', 50, true, 600, 1)"),
	       "t");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.audit_outbox"
				" WHERE event = 'job.enqueued'"),
	       "1");
	expect(pgtest_ask(vessel, "SELECT status FROM vessel_api.enqueue('main', 'r3',"
				  " 'no json', 50, true, 600, 9)"),
	       "ERROR 22P02");
}

Test(queue_sql, answers_of_ack)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb), wrong = h, none = h;

	none.job = "999999";
	wrong.token = "00000000-0000-4000-8000-000000000000";
	expect(ack(tomb, none, "{}"), "unknown");
	expect(ack(tomb, wrong, "{}"), "denied");
	expect(ack(tomb2, h, "{}"), "denied");
	expect(pgtest_askp(tomb,
			   "SELECT tomb_api.ack($1::bigint, 1, $2::uuid,"
			   " convert_to(repeat('x', 1048577), 'UTF8'))",
			   h.job, h.token, NULL),
	       "too_big");
	expect(ack(tomb, h, "{\"v\":1}"), "ok");
	expect(ack(tomb, h, "{\"v\":1}"), "already");
	expect(ack(tomb, h, "{\"v\":2}"), "conflict");
	expect(fail(h, "f", "crash"), "conflict");
	expect(release(h), "conflict");
	expect(extend(tomb, h), "lost");
	expect(state(h.job), "succeeded/");
	expect(pgtest_askp(vessel,
			   "SELECT convert_from(result, 'UTF8') FROM"
			   " vessel_api.show($1::bigint)",
			   h.job, NULL),
	       "{\"v\":1}");
}

Test(queue_sql, stale_after_the_lease_was_lost_and_nothing_is_overwritten)
{
	(void)submit("r1", "t");
	struct held old = claim(tomb);

	expect(lose(old.job), "1");
	ready_now();
	struct held new = claim(tomb2);
	cr_expect_str_eq(new.job, old.job);
	expect(ack(tomb, old, "{}"), "stale");
	expect(fail(old, "f", "crash"), "stale");
	expect(release(old), "stale");
	expect(extend(tomb, old), "lost");
	expect(extend(tomb2, new), "ok");
	expect(ack(tomb2, new, "{\"mine\":1}"), "ok");
	expect(state(new.job), "succeeded/");
}

Test(queue_sql, revoked_after_contain_and_the_taint_stays)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	expect(pgtest_askp(vessel, "SELECT vessel_api.contain($1::bigint, 'canary')",
			   h.job, NULL),
	       "contained");
	expect(pgtest_askp(vessel, "SELECT vessel_api.contain($1::bigint, 'again')",
			   h.job, NULL),
	       "already");
	expect(pgtest_ask(vessel, "SELECT vessel_api.contain(424242, 'x')"), "unknown");
	expect(ack(tomb, h, "{}"), "revoked");
	expect(fail(h, "t", "transport_loss"), "revoked");
	expect(release(h), "revoked");
	expect(extend(tomb, h), "lost");
	expect(state(h.job), "quarantined/");
	expect(cancel(h.job), "quarantined");
	expect(claim(tomb).job, "");
	expect(pgtest_askp(
		       vessel,
		       "SELECT vessel_api.lease_check($1::bigint, $2::bigint, $3::uuid,"
		       " false)",
		       h.job, h.epoch, h.token, NULL),
	       "revoked");
	expect(pgtest_ask(root, "SELECT string_agg(event, ' ' ORDER BY id)"
				" FROM lych.audit_outbox"),
	       "job.enqueued job.claimed attempt.revoked job.contained");
}

Test(queue_sql, a_late_ack_of_an_expired_lease_is_accepted)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	(void)pgtest_ask(root,
			 "UPDATE lych.lease SET expires_at = now() - interval '1 h'");
	expect(pgtest_askp(
		       vessel,
		       "SELECT vessel_api.lease_check($1::bigint, $2::bigint, $3::uuid,"
		       " true)",
		       h.job, h.epoch, h.token, NULL),
	       "stale");
	expect(pgtest_askp(
		       vessel,
		       "SELECT vessel_api.lease_check($1::bigint, $2::bigint, $3::uuid,"
		       " false)",
		       h.job, h.epoch, h.token, NULL),
	       "ok");
	expect(ack(tomb, h, "{}"), "ok");
}

Test(queue_sql, claim_replays_by_claim_id)
{
	static const char sql[] = "SELECT string_agg(job_id || '.' || epoch || '.' || "
				  "token, ' ' ORDER BY job_id)"
				  " FROM tomb_api.claim('main', 2, 30, '" BOOT
				  "', '00000000-0000-4000-8000-00000000c1a1')";

	(void)submit("r1", "t");
	(void)submit("r2", "t");
	(void)submit("r3", "t");
	const char *first = pgtest_ask(tomb, sql);
	expect(pgtest_ask(tomb, sql), first);
	expect(pgtest_ask(tomb2, sql), "");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.lease"), "2");
}

Test(queue_sql, claim_is_by_priority_and_capped_by_leases_and_rate)
{
	(void)submit("low", "t");
	expect(pgtest_ask(vessel, "SELECT status FROM vessel_api.enqueue('main', 'high',"
				  " '{}', 90, true, 600, 1000)"),
	       "ok");
	(void)submit("low2", "t");
	struct held h = claim(tomb);
	expect(pgtest_askp(vessel, "SELECT request_id FROM vessel_api.show($1::bigint)",
			   h.job, NULL),
	       "high");
	(void)pgtest_ask(root, "UPDATE lych.worker_queue SET max_leases = 1");
	expect(claim(tomb).job, "");
	(void)pgtest_ask(root,
			 "UPDATE lych.worker_queue SET max_leases = 64, claim_rate ="
			 " 0.001, claim_burst = 1, tokens = 1, tokens_at = now()");
	cr_expect_str_neq(claim(tomb).job, "");
	expect(claim(tomb).job, "");
	(void)pgtest_ask(root, "UPDATE lych.worker_queue SET tokens_at = now() -"
			       " interval '1001 s'");
	cr_expect_str_neq(claim(tomb).job, "");
}

/* ---- lives of a job -----------------------------------------------------------------
 */

Test(queue_sql, failures_end_dead_with_their_class)
{
	static const char *const table[][2] = {
		{"timeout_kill", "timed_out/timeout_kill"},
		{"crash", "failed/crash"},
		{"oom_kill", "failed/oom_kill"},
		{"transport_loss", "lost/transport_loss"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		(void)submit(table[i][0], "t");
		struct held h = claim(tomb);
		expect(fail(h, "f", table[i][0]), "ok");
		expect(fail(h, "f", table[i][0]), "already");
		expect(state(h.job), table[i][1]);
	}
	(void)submit("x", "t");
	struct held h = claim(tomb);
	expect(fail(h, "f", "made_up"), "ERROR 22023");
	expect(fail(h, "f", "lease_expired"), "ERROR 22023");
	expect(fail(h, "f", ""), "ERROR 22023");
	expect(fail(h, "t", "crash"), "ok"); /* a job's own failure is never run again */
	expect(state(h.job), "failed/crash");
}

Test(queue_sql, transport_loss_is_retried_three_times_then_dead)
{
	(void)submit("r1", "t");
	for (int i = 0; i < 3; i++) {
		ready_now();
		struct held h = claim(tomb);
		cr_expect_str_neq(h.job, "");
		expect(fail(h, "t", "transport_loss"), "ok");
		expect(state(h.job), i < 2 ? "queued/" : "lost/transport_loss");
	}
	(void)submit("never", "f");
	ready_now();
	struct held h = claim(tomb);
	expect(fail(h, "t", "transport_loss"), "ok");
	expect(state(h.job), "lost/transport_loss");
}

Test(queue_sql, three_lost_leases_quarantine_and_never_means_once)
{
	cleanup_free char *job = xstrdup(submit("r1", "t"));

	for (int i = 0; i < 3; i++) {
		ready_now();
		struct held h = claim(tomb);
		expect(h.job, job);
		expect(lose(job), "1");
		expect(state(job), i < 2 ? "queued/" : "quarantined/");
	}
	ready_now();
	expect(claim(tomb).job, "");
	cleanup_free char *once = xstrdup(submit("never", "f"));
	struct held h = claim(tomb);
	expect(h.job, once);
	expect(lose(once), "1");
	expect(state(once), "lost/lease_expired");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.audit_outbox"
				" WHERE event = 'attempt.lost'"),
	       "4");
}

Test(queue_sql, release_is_free_five_times_then_counts)
{
	(void)submit("r1", "t");
	for (int i = 0; i < 8; i++) {
		ready_now();
		struct held h = claim(tomb);
		cr_expect_str_neq(h.job, "", "round %d", i);
		expect(release(h), "ok");
		expect(release(h), "already");
		expect(state(h.job), i < 7 ? "queued/" : "lost/transport_loss");
	}
	(void)submit("never", "f");
	struct held h = claim(tomb);
	expect(release(h), "ok");
	expect(state(h.job), "lost/transport_loss");
}

Test(queue_sql, cancel_in_every_state)
{
	cleanup_free char *queued = xstrdup(submit("q", "t"));

	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.cancel(999999)"), "0");
	expect(cancel(queued), "cancelled");
	expect(cancel(queued), "cancelled");
	expect(claim(tomb).job, "");

	(void)submit("held", "t");
	(void)pgtest_ask(root,
			 "UPDATE lych.job SET state = 'held' WHERE request_id = 'held'");
	expect(claim(tomb).job, "");
	expect(cancel(pgtest_ask(root,
				 "SELECT id FROM lych.job WHERE request_id = 'held'")),
	       "cancelled");

	(void)submit("run", "t");
	struct held h = claim(tomb);
	expect(extend(tomb, h), "ok");
	expect(cancel(h.job), "cancelling");
	expect(extend(tomb, h), "cancel");
	expect(pgtest_askp(
		       vessel,
		       "SELECT vessel_api.lease_check($1::bigint, $2::bigint, $3::uuid,"
		       " true)",
		       h.job, h.epoch, h.token, NULL),
	       "stale");
	expect(fail(h, "f", ""), "ok");
	expect(state(h.job), "cancelled/");

	(void)submit("run2", "t");
	h = claim(tomb);
	expect(cancel(h.job), "cancelling");
	expect(lose(h.job), "1"); /* nobody proved its tree gone */
	expect(state(h.job), "lost/lease_expired");
	expect(cancel(h.job), "lost");

	(void)submit("run3", "t");
	h = claim(tomb);
	expect(cancel(h.job), "cancelling");
	expect(ack(tomb, h, "{}"), "ok"); /* it had finished before */
	expect(state(h.job), "succeeded/");
}

Test(queue_sql, max_runtime_ends_the_heartbeats)
{
	expect(pgtest_ask(vessel,
			  "SELECT status FROM vessel_api.enqueue('main', 'r', '{}',"
			  " 50, true, 1, 1000)"),
	       "ok");
	struct held h = claim(tomb);
	expect(pgtest_ask(root, "SELECT expires_at <= run_until FROM lych.lease"), "t");
	expect(extend(tomb, h), "ok");
	expect(pgtest_ask(root, "SELECT expires_at <= run_until FROM lych.lease"), "t");
	(void)pgtest_ask(root, "SELECT pg_sleep(1.1)");
	expect(extend(tomb, h), "lost");
	(void)pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')");
	expect(pgtest_ask(vessel,
			  "SELECT epoch FROM vessel_api.reap('" VESSEL "', 9, 0)"),
	       "1");
}

Test(queue_sql, reap_waits_for_owner_and_grace_and_checks_again)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	(void)pgtest_ask(root,
			 "UPDATE lych.lease SET expires_at = now() - interval '1 s'");
	expect(pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.reap('" VESSEL "', 9, 0)"),
	       "0");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.reap(NULL, 9, 0)"),
	       "0");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')"), "ok");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.reap('" VESSEL "', 9,"
				  " 3600)"),
	       "0");
	expect(extend(tomb, h), "ok"); /* an expired, unreaped lease is revived */
	expect(pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.reap('" VESSEL "', 9, 0)"),
	       "0");

	/* The reaper holds a candidate while the heartbeat revives it: it must look
	 * again. */
	(void)pgtest_ask(root,
			 "UPDATE lych.lease SET expires_at = now() - interval '1 s'");
	(void)pgtest_ask(root, "BEGIN");
	(void)pgtest_ask(root,
			 "UPDATE lych.lease SET expires_at = now() + interval '30 s'");
	cr_assert(PQsendQuery(vessel, "SELECT count(*) FROM vessel_api.reap('" VESSEL
				      "', 9, 0)"));
	PGconn *other = pgtest_connect("lych_migrate");
	for (int i = 0; i < 100; i++) {
		if (strcmp(pgtest_ask(other, "SELECT count(*) FROM pg_stat_activity WHERE"
					     " usename = 'lych_vessel' AND"
					     " wait_event_type = 'Lock'"),
			   "1") == 0)
			break;
		(void)pgtest_ask(other, "SELECT pg_sleep(0.02)");
	}
	(void)pgtest_ask(root, "COMMIT");
	PGresult *r = PQgetResult(vessel);
	cr_expect_str_eq(PQgetvalue(r, 0, 0), "0");
	PQclear(r);
	while ((r = PQgetResult(vessel)))
		PQclear(r);
	PQfinish(other);
	expect(extend(tomb, h), "ok");
}

Test(queue_sql, one_vessel_owns_the_database)
{
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')"), "ok");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" BOOT "')"), "taken");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')"), "ok");
	(void)pgtest_ask(vessel, "SELECT vessel_api.vessel_bye('" VESSEL "')");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" BOOT "')"), "ok");
	(void)pgtest_ask(
		root, "UPDATE lych.vessel_owner SET beat_at = now() - interval '16 s'");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')"), "ok");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" BOOT "')"), "taken");
	expect(pgtest_ask(root, "SELECT epoch FROM lych.vessel_owner"), "3");
}

Test(queue_sql, phases_blobs_and_lists)
{
#define SHA "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
#define SHA2 "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
	cleanup_free char *job = xstrdup(pgtest_ask(
		vessel, "SELECT job_id FROM vessel_api.enqueue('main', 'r', '{\"files\":"
			"[{\"path\":\"a\",\"blob\":\"" SHA "\"}]}', 50, true, 600, 10)"));
	struct held h = claim(tomb);

	expect(state(job), "preparing/");
	expect(pgtest_askp(vessel,
			   "SELECT vessel_api.set_phase($1::bigint, $2::bigint, $3::uuid,"
			   " 'running')",
			   h.job, h.epoch, h.token, NULL),
	       "ok");
	expect(state(job), "running/");
	expect(pgtest_askp(vessel,
			   "SELECT vessel_api.set_phase($1::bigint, $2::bigint,"
			   " gen_random_uuid(), 'running')",
			   h.job, h.epoch, NULL),
	       "denied");
	expect(pgtest_askp(vessel, "SELECT vessel_api.has_blob($1::bigint, '" SHA "')",
			   job, NULL),
	       "t");
	expect(ack(tomb, h, "{\"artifacts\":[{\"path\":\"x\",\"sha256\":\"" SHA2 "\"}]}"),
	       "ok");
	expect(pgtest_askp(vessel, "SELECT vessel_api.has_blob($1::bigint, '" SHA2 "')",
			   job, NULL),
	       "f");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.live_blobs()"), "2");
	expect(pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.list('succeeded', 0, 9)"),
	       "1");
	expect(pgtest_ask(vessel,
			  "SELECT count(*) FROM vessel_api.list('running', 0, 9)"),
	       "0");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.list('', 0, 9)"), "1");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.retain(3600, 9)"),
	       "0");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.retain(0, 9)"), "1");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.live_blobs()"), "0");
	expect(pgtest_askp(vessel, "SELECT count(*) FROM vessel_api.show($1::bigint)",
			   job, NULL),
	       "0");
}

Test(queue_sql, changes_never_pass_over_an_open_transaction)
{
	(void)pgtest_ask(root, "BEGIN");
	(void)pgtest_ask(root, "SELECT pg_current_xact_id()");
	(void)submit("later", "t");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.changes(0, 10)"), "0");
	(void)pgtest_ask(root, "COMMIT");
	expect(pgtest_ask(vessel, "SELECT request_id FROM vessel_api.changes(0, 10)"),
	       "later");
}

Test(queue_sql, watchdog_ends_idle_transactions_of_tombs_only)
{
	PGconn *dog = pgtest_connect("lych_watchdog");

	(void)pgtest_ask(tomb, "BEGIN");
	(void)pgtest_ask(vessel, "BEGIN");
	expect(pgtest_ask(dog, "SELECT count(*) FROM watch_api.sweep()"), "0");
	(void)pgtest_ask(root, "SELECT pg_sleep(2.2)");
	expect(pgtest_ask(dog, "SELECT role || ': ' || why FROM watch_api.sweep()"),
	       "tomb_1: idle in transaction");
	cr_expect(strncmp(pgtest_ask(tomb, "SELECT 1"), "ERROR", 5) == 0);
	expect(pgtest_ask(tomb2, "SELECT 1"), "1");
	expect(pgtest_ask(vessel, "SELECT 1"), "1");
	expect(pgtest_ask(dog, "SELECT * FROM lych.job"), "ERROR 42501");
	PQfinish(dog);
}

Test(queue_sql, an_invariant_that_is_broken_is_counted)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	expect(ack(tomb, h, "{}"), "ok");
	expect(pgtest_ask(vessel, "SELECT vessel_api.health()::jsonb ->> 'violations'"),
	       "0");
	(void)pgtest_ask(root, "DELETE FROM lych.result");
	expect(pgtest_ask(vessel, "SELECT vessel_api.health()::jsonb ->> 'violations'"),
	       "1");
	(void)pgtest_ask(root, "TRUNCATE lych.job CASCADE");
}
