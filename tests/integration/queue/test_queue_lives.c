/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 180 */
/*
 * The lives of a job in the queue's SQL, against a real PostgreSQL: retries, lost and
 * ended leases, workers that died, cancellation, and what a vessel that starts anew reaps.
 * test_queue_vessel.c includes this file, as it does test_queue_sql.c.
 */
#ifndef SUITE
#define SUITE queue_sql
#endif
#include "tests/support/queue_suite.h"
#include "vessel/db/migrate.h"

Test(SUITE, failures_end_dead_with_their_class)
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

Test(SUITE, transport_loss_is_retried_three_times_then_dead)
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

Test(SUITE, three_lost_leases_quarantine_and_never_means_once)
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

Test(SUITE, release_is_free_five_times_then_counts)
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

Test(SUITE, a_worker_that_died_counts_as_a_loss_and_the_third_quarantines)
{
	cleanup_free char *job = xstrdup(submit("r1", "t"));
	const char *first = keep(pgtest_ask(root, "SELECT run_at FROM lych.job"));

	for (int i = 0; i < 3; i++) {
		struct held h = claim(tomb);
		struct held forged = h;

		expect(h.job, job);
		forged.token = BOOT;
		expect(died(tomb, forged), "denied");
		expect(died(tomb2, h), "denied");
		expect(died(tomb, h), "ok");
		expect(died(tomb, h), "already");
		expect(ack(tomb, h, "{}"), "stale");
		expect(release(h), "stale");
		expect(state(job), i < 2 ? "queued/" : "quarantined/");
		/* The first time it goes on at once and from its place. */
		if (i == 0)
			expect(pgtest_ask(root, "SELECT run_at FROM lych.job"), first);
		else if (i == 1)
			expect(pgtest_ask(root,
					  "SELECT run_at BETWEEN now() + '0.2 s' AND"
					  " now() + '1.5 s' FROM lych.job"),
			       "t");
		if (i == 1)
			ready_now();
	}
	expect(pgtest_ask(root, "SELECT lost || ' ' || attempts || ' ' || releases FROM"
				" lych.job"),
	       "3 3 0");
	expect(pgtest_ask(root, "SELECT string_agg(DISTINCT outcome || '/' || class, ' ')"
				" FROM lych.attempt"),
	       "lost/transport_loss");
}

Test(SUITE, a_worker_that_died_proves_a_cancelled_job_cancelled)
{
	(void)submit("r1", "t");
	struct held h = claim(tomb);
	expect(cancel(h.job), "cancelling");
	expect(died(tomb, h), "ok");
	expect(state(h.job), "cancelled/");
	(void)submit("never", "f");
	h = claim(tomb);
	expect(died(tomb, h), "ok");
	expect(state(h.job), "lost/transport_loss");
	/* What the reaper took back first is not counted twice. */
	(void)submit("r2", "t");
	h = claim(tomb);
	expect(lose(h.job), "1");
	expect(died(tomb, h), "stale");
	expect(pgtest_ask(root, "SELECT lost FROM lych.job WHERE request_id = 'r2'"),
	       "1");
}

Test(SUITE, a_successor_learns_what_a_claim_brought_that_nobody_read)
{
	static const char id[] = "00000000-0000-4000-8000-00000000c1a2";
	static const char other[] = "00000000-0000-4000-8000-00000000b002";

	(void)submit("r1", "t");
	(void)submit("r2", "t");
	expect(claim_as(tomb, 0, BOOT, id), "");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.lease"), "0");
	const char *given = keep(claim_as(tomb, 1, BOOT, id));
	cr_expect_str_neq(given, "");
	/* Also while nothing new is granted. */
	(void)pgtest_ask(root, "UPDATE lych.audit_state SET ok_until = '-infinity'");
	expect(claim_as(tomb, 0, BOOT, id), given);
	expect(claim_as(tomb, 0, other, id), "");
	expect(claim_as(tomb2, 0, BOOT, id), "");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.lease"), "1");
}

Test(SUITE, cancel_in_every_state)
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

Test(SUITE, max_runtime_ends_the_heartbeats)
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

Test(SUITE, reap_waits_for_owner_and_grace_and_checks_again)
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

/* A vessel that lives for 1.2 s: how many leases it ended. */
static int short_life(const char *boot, const char *grace)
{
	int n = 0;

	expect(pgtest_askp(vessel, "SELECT vessel_api.vessel_beat($1::uuid)", boot, NULL),
	       "ok");
	for (int i = 0; i < 5; i++) {
		const char *got =
			pgtest_askp(vessel,
				    "SELECT count(*) FROM vessel_api.reap($1::uuid, 9,"
				    " $2::int)",
				    boot, grace, NULL);

		n += strcmp(got, "0") != 0;
		(void)pgtest_ask(root, "SELECT pg_sleep(0.24)");
	}
	(void)pgtest_askp(vessel, "SELECT vessel_api.vessel_bye($1::uuid)", boot, NULL);
	return n;
}

Test(SUITE, a_dead_workers_grace_is_not_served_again_at_each_restart)
{
	static const char grace[] = "3";
	int lives = 0, kept = 0;

	(void)submit("dead", "t");
	(void)submit("live", "t");
	struct held dead = claim(tomb), live = claim(tomb);

	(void)pgtest_ask(root,
			 "UPDATE lych.lease SET expires_at = now() - interval '1 s'");
	while (short_life(lives % 2 ? VESSEL : BOOT, grace) == 0 && lives < 12) {
		/* Whoever lives renews, in every piece. */
		expect(extend(tomb, live), "ok");
		(void)pgtest_askp(root,
				  "UPDATE lych.lease SET expires_at = now() - interval "
				  "'1 s' WHERE job_id = $1::bigint",
				  live.job, NULL);
		kept++;
		lives++;
	}
	/* Pieces of 0.96 s that count: the fourth or, on a slow machine, the third. */
	cr_expect(lives >= 2 && lives <= 4, "%d restarts", lives);
	expect(state(dead.job), "queued/");
	expect(extend(tomb, live), "ok");
	cr_expect_gt(kept, 0);
}
