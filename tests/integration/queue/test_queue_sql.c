/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 180 */
/*
 * The queue's SQL against a real PostgreSQL, judged from the outside: what a worker's
 * login must not do, every answer of the worker functions, and what the vessel is told.
 * test_queue_vessel.c includes this file: there the workers' calls go through the
 * vessel's door (tests/support/door.c), with the same answers.
 */
#ifndef SUITE
#define SUITE queue_sql
#endif
#include "tests/support/queue_suite.h"
#include "vessel/db/migrate.h"

/* ---- what a worker's login must not do ----------------------------------------- */

Test(SUITE, tomb_has_no_table_and_exactly_five_functions)
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
	       "tomb_api.release(bigint,bigint,uuid,boolean)");
	/* Nor anything of PostgreSQL's own, but to write a number as text. */
	expect(pgtest_ask(
		       root,
		       "SELECT string_agg(p.oid::regprocedure::text, ' ') FROM pg_proc p"
		       " WHERE p.pronamespace = 'pg_catalog'::regnamespace"
		       " AND has_function_privilege('tomb_1', p.oid, 'EXECUTE')"),
	       "int8(integer)");
	expect(pgtest_ask(root, "SELECT count(*) FROM pg_class c WHERE"
				" c.relkind IN ('r','v','m','p','f')"
				" AND c.relnamespace = 'pg_catalog'::regnamespace"
				" AND (has_table_privilege('tomb_1', c.oid,"
				"  'SELECT,INSERT,UPDATE,DELETE,TRUNCATE')"
				"  OR has_any_column_privilege('tomb_1', c.oid,"
				"  'SELECT,INSERT,UPDATE'))"),
	       "0");
	expect(pgtest_ask(root, "SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE"
				" nspname <> 'pg_catalog' AND"
				" has_schema_privilege('tomb_1', oid, 'USAGE,CREATE')"),
	       "tomb_api");
	expect(pgtest_ask(root, "SELECT count(*) FROM pg_proc p WHERE p.pronamespace IN"
				" ('tomb_api'::regnamespace,'vessel_api'::regnamespace,"
				" 'lych'::regnamespace,'watch_api'::regnamespace) AND NOT"
				" 'search_path=pg_catalog, pg_temp' = ANY(p.proconfig)"),
	       "0");
}

Test(SUITE, vessel_and_watchdog_have_no_table_either)
{
	expect(pgtest_ask(root,
			  "SELECT count(*) FROM pg_class c, (VALUES ('lych_vessel'),"
			  " ('lych_watchdog')) AS r (n) WHERE c.relkind IN ('r','v','S')"
			  " AND c.relnamespace = 'lych'::regnamespace"
			  " AND c.relkind <> 'S' AND has_table_privilege(r.n, c.oid,"
			  " 'SELECT,INSERT,UPDATE,DELETE,TRUNCATE')"),
	       "0");
	expect(pgtest_ask(vessel, "SELECT * FROM lych.job"), "ERROR 42501");
	expect(pgtest_ask(vessel,
			  "SELECT tomb_api.release(1, 1, gen_random_uuid(), true)"),
	       "ERROR 42501");
}

static const char *const forbidden[] = {
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
	"SELECT count(*) FROM generate_series(1, 9)",
	"SELECT repeat('x', 9)",
	"SELECT 2 ^ 0.5",
	"SELECT now()",
	"SELECT * FROM pg_stat_activity",
	"SELECT * FROM pg_locks",
	"SELECT prosrc FROM pg_proc",
	"SELECT * FROM pg_settings",
	"SELECT * FROM information_schema.tables",
	"SELECT pg_current_xact_id()",
	"SELECT pg_notify('lych', '')",
	"SET log_min_messages = 'debug5'",
	"SET log_min_error_statement = 'error'",
	"ALTER ROLE tomb_1 RESET log_min_messages",
	"ALTER ROLE tomb_1 CONNECTION LIMIT -1",
	"GRANT lych_tomb TO tomb_2",
};

Test(SUITE, forbidden_acts_of_a_tomb)
{
	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
		cr_expect_str_eq(pgtest_ask(tomb, forbidden[i]), "ERROR 42501", "%s",
				 forbidden[i]);
	expect(pgtest_askp(tomb, "SELECT pg_terminate_backend($1::int)",
			   pgtest_ask(vessel, "SELECT pg_backend_pid()"), NULL),
	       "ERROR 42501");
	expect(pgtest_askp(tomb,
			   "SELECT * FROM tomb_api.claim('other', 1, 30, '" BOOT
			   "', $1::uuid)",
			   pgtest_uuid(), NULL),
	       "ERROR 42501");
}

/* ---- answers --------------------------------------------------------------------- */

Test(SUITE, submit_is_idempotent_and_conflicts_on_other_content)
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

Test(SUITE, answers_of_ack)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb), wrong = h, none = h;

	none.job = "999999";
	wrong.token = "00000000-0000-4000-8000-000000000000";
	expect(ack(tomb, none, "{}"), "unknown");
	expect(ack(tomb, wrong, "{}"), "denied");
	expect(ack(tomb2, h, "{}"), "denied");
	char *big = xmalloc(RESULT_MAX_BYTES + 1);
	(void)memset(big, 'x', RESULT_MAX_BYTES + 1);
	expect(ack_bytes(tomb, h, big, RESULT_MAX_BYTES + 1), "too_big");
	free(big);
	/* The token of another, or one's own with another epoch, says nothing. */
	wrong = h;
	wrong.epoch = "2";
	expect(ack(tomb, wrong, "{}"), "denied");
	expect(extend(tomb2, h), "lost");
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

Test(SUITE, stale_after_the_lease_was_lost_and_nothing_is_overwritten)
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

Test(SUITE, revoked_after_contain_and_the_taint_stays)
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
	expect(extend(tomb, h), "revoked");
	expect(extend(tomb2, h), "lost");
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
	       "job.enqueued job.claimed attempt.revoked job.contained"
	       " containment.tree_dead");
}

Test(SUITE, a_late_ack_of_an_expired_lease_is_accepted)
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

Test(SUITE, claim_replays_by_claim_id)
{
	static const char id[] = "00000000-0000-4000-8000-00000000c1a1";

	(void)submit("r1", "t");
	(void)submit("r2", "t");
	(void)submit("r3", "t");
	const char *first = claim_two(tomb, id);
	expect(claim_two(tomb, id), first);
	expect(claim_two(tomb2, id), "");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.lease"), "2");
}

Test(SUITE, claim_is_by_priority_and_capped_by_leases_and_rate)
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

/* ---- what the vessel alone asks ---------------------------------------------------- */

Test(SUITE, one_vessel_owns_the_database)
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

Test(SUITE, phases_blobs_and_lists)
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
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.live_blobs('')"), "2");
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
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.live_blobs('')"), "0");
	expect(pgtest_askp(vessel, "SELECT count(*) FROM vessel_api.show($1::bigint)",
			   job, NULL),
	       "0");
}

Test(SUITE, a_look_brings_what_is_at_another_version_whatever_else_is_open)
{
	cleanup_free char *job = xstrdup(submit("r1", "t"));
	cleanup_free char *other = xstrdup(submit("r2", "t"));

#define LOOK(versions)                                                                   \
	pgtest_askp(vessel,                                                              \
		    "SELECT string_agg(concat(id, ':', state, ':', version), ' ' ORDER"  \
		    " BY id) FROM vessel_api.look(ARRAY[$1::bigint, $2::bigint, "        \
		    "999999]," versions ")",                                             \
		    job, other, NULL)
	/* a job that is no more is its id */
	expect(pgtest_askp(vessel,
			   "SELECT count(*) FROM vessel_api.look(ARRAY[$1::bigint],"
			   " ARRAY[1]) ",
			   job, NULL),
	       "0");
	expect(LOOK("ARRAY[1, 1, 7]"), "999999::");
	/* an older transaction of anybody is open: nothing waits for it */
	(void)pgtest_ask(root, "BEGIN");
	(void)pgtest_ask(root, "SELECT pg_current_xact_id()");
	(void)cancel(job);
	cleanup_free char *want = xasprintf("%s:cancelled:2 999999::", job);
	expect(LOOK("ARRAY[1, 1, 7]"), want);
	expect(LOOK("ARRAY[2, 1, 7]"), "999999::");
	(void)pgtest_ask(root, "COMMIT");
	/* each change is a version of its own, also of a phase */
	struct held h = claim(tomb);
	expect(h.job, other);
	expect(pgtest_ask(root, "SELECT max(version) FROM lych.job"), "2");
	(void)pgtest_askp(vessel,
			  "SELECT vessel_api.set_phase($1::bigint, $2::bigint, $3::uuid,"
			  " 'running')",
			  h.job, h.epoch, h.token, NULL);
	expect(pgtest_ask(root, "SELECT max(version) FROM lych.job"), "3");
	expect(pgtest_ask(vessel, "SELECT count(*) FROM vessel_api.look('{1,2}', '{1}')"),
	       "ERROR 22023");
#undef LOOK
}

Test(SUITE, a_result_that_names_thousands_of_artifacts_keeps_256)
{
	size_t size = 100 * 4096, at = 0;
	char *text = xmalloc(size);

	at += (size_t)snprintf(text, size, "{\"v\":1,\"artifacts\":[");
	for (int i = 0; i < 4000; i++)
		at += (size_t)snprintf(text + at, size - at, "%s{\"sha256\":\"%064d\"}",
				       i ? "," : "", i);
	(void)snprintf(text + at, size - at, "]}");
	(void)submit("r1", "t");
	expect(ack(tomb, claim(tomb), text), "ok");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.job_blob"), "256");
	free(text);
}

Test(SUITE, an_invariant_that_is_broken_is_counted)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	expect(ack(tomb, h, "{}"), "ok");
	expect(pgtest_ask(vessel,
			  "SELECT vessel_api.check_queue()::jsonb ->> 'violations'"),
	       "0");
	(void)pgtest_ask(root, "DELETE FROM lych.result");
	expect(pgtest_ask(vessel,
			  "SELECT vessel_api.check_queue()::jsonb ->> 'violations'"),
	       "1");
	(void)pgtest_ask(root, "TRUNCATE lych.job CASCADE");
}
