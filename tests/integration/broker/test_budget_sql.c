/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 120 */
/*
 * The broker's books against a real PostgreSQL: who may call, every refusal, that a
 * reservation is made in all scopes or in none, that nothing is booked twice, and that
 * the books balance whatever dies.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/migrated.h"
#include "tests/support/pgtest.h"
#include "vessel/db/migrate.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOOT_A "00000000-0000-4000-8000-00000000feed"
#define BOOT_B "00000000-0000-4000-8000-00000000beef"
#define CALL "00000000-0000-4000-8000-000000000001"
#define CALL2 "00000000-0000-4000-8000-000000000002"
#define NO_LIMITS "{-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"

static PGconn *root, *vessel, *tomb;
static char job[24], epoch[24], token[40];

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

static void copy(char *out, size_t size, const char *s)
{
	cr_assert(str_copy(out, size, s) == 0);
}

/* A running job of the vessel with boot A, and its lease. */
static void begin(void)
{
	pgtest_lock();
	root = pgtest_connect("lych_migrate");
	vessel = pgtest_connect("lych_vessel");
	tomb = pgtest_connect("tomb_1");
	(void)pgtest_ask(root, "TRUNCATE lych.job, lych.containment, lych.payload, "
			       "lych.attempt, lych.lease,"
			       " lych.result, lych.job_blob, lych.audit_outbox,"
			       " lych.vessel_owner, lych.budget, lych.broker_call;"
			       "UPDATE lych.audit_state SET ok_until = 'infinity'");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" BOOT_A "')"), "ok");
	copy(job, sizeof(job),
	     pgtest_ask(vessel, "SELECT job_id FROM vessel_api.enqueue('main', 'r',"
				" '{\"argv\":[\"true\"],\"egress\":\"brokered\"}', 50,"
				" true, 600, 100)"));
	copy(token, sizeof(token),
	     pgtest_askp(tomb,
			 "SELECT token FROM tomb_api.claim('main', 1, 30, '" BOOT_A
			 "', $1::uuid)",
			 pgtest_uuid(), NULL));
	copy(epoch, sizeof(epoch), "1");
}

static void end(void)
{
	expect(pgtest_ask(root, "SELECT sum(bad) FROM lych.invariants()"), "0");
	PQfinish(root);
	PQfinish(vessel);
	PQfinish(tomb);
}

TestSuite(budget_sql, .init = begin, .fini = end, .timeout = 60);

static const char *reserve_as(PGconn *c, const char *boot, const char *tok,
			      const char *seq, const char *call, const char *est,
			      const char *limits)
{
	return pgtest_askp(c,
			   "SELECT concat_ws(' ', answer, nullif(scope, ''),"
			   " nullif(what, 0)) FROM vessel_api.budget_reserve($1::uuid,"
			   " $2::bigint, $3::bigint, $4::uuid, $5::bigint, $6::uuid,"
			   " 'ask', $7::bigint[], '{0,0,0,0,0,0}', 0, 0, $8::bigint[])",
			   boot, job, epoch, tok, seq, call, est, limits, NULL);
}

static const char *reserve(const char *seq, const char *est, const char *limits)
{
	return reserve_as(vessel, BOOT_A, token, seq, CALL, est, limits);
}

/* With units: "ok 20", or what reserve() says. Each unit is a token and two of money and a
 * half; so many of them at least, so many at most. */
static const char *reserve_units(const char *seq, const char *least, const char *most,
				 const char *limits)
{
	return pgtest_askp(
		vessel,
		"SELECT concat_ws(' ', answer, nullif(scope, ''),"
		" nullif(what, 0), nullif(units, 0)) FROM"
		" vessel_api.budget_reserve('" BOOT_A "', $1::bigint,"
		" $2::bigint, $3::uuid, $4::bigint, '" CALL "', 'ask',"
		" '{1,100,50,1000,0,0}', '{0,1000000,2500000,0,0,0}', $5::bigint,"
		" $6::bigint, $7::bigint[])",
		job, epoch, token, seq, least, most, limits, NULL);
}

static const char *extend(const char *boot, const char *seq, const char *call,
			  const char *bytes, const char *limits)
{
	return pgtest_askp(vessel,
			   "SELECT vessel_api.budget_extend($1::uuid, $2::bigint,"
			   " $3::bigint, $4::bigint, $5::uuid, $6::bigint, $7::bigint[])",
			   boot, job, epoch, seq, call, bytes, limits, NULL);
}

static const char *settle(const char *boot, const char *seq, const char *actual)
{
	return pgtest_askp(vessel,
			   "SELECT vessel_api.budget_settle($1::uuid, $2::bigint,"
			   " $3::bigint, $4::bigint, '" CALL "', 'ask', $5::bigint[])",
			   boot, job, epoch, seq, actual, NULL);
}

/* "spent reserved" of a scope. */
static const char *books(const char *scope)
{
	return pgtest_askp(vessel,
			   "SELECT spent::text || ' ' || reserved::text FROM"
			   " vessel_api.budget_show($1::bigint, NULL) WHERE scope = $2",
			   job, scope, NULL);
}

static void expect_all(const char *want)
{
	expect(books("job"), want);
	expect(books("identity"), want);
	expect(books("day"), want);
}

Test(budget_sql, only_the_vessel_may_call_and_nobody_reads_the_tables)
{
	expect(reserve_as(tomb, BOOT_A, token, "1", CALL, "{1,0,0,0,0,0}", NO_LIMITS),
	       "ERROR 42501");
	expect(pgtest_ask(tomb, "SELECT vessel_api.budget_denied(1, 20)"), "ERROR 42501");
	expect(pgtest_ask(tomb, "SELECT * FROM lych.budget"), "ERROR 42501");
	expect(pgtest_ask(vessel, "UPDATE lych.budget SET spent = '{0,0,0,0,0,0}'"),
	       "ERROR 42501");
	expect(pgtest_ask(vessel, "SELECT lych.budget_move(1, 'owner', '2026-01-01',"
				  " '{0,0,0,0,0,0}', '{0,0,0,0,0,0}')"),
	       "ERROR 42501");
}

Test(budget_sql, what_is_not_six_numbers_is_refused)
{
	expect(reserve("1", "{1,0,0,0,0}", NO_LIMITS), "ERROR 22023");
	expect(reserve("1", "{1,-1,0,0,0,0}", NO_LIMITS), "ERROR 22023");
	expect(reserve("1", "{1,NULL,0,0,0,0}", NO_LIMITS), "ERROR 22023");
	expect(reserve("1", "{1,0,0,0,1,0}", NO_LIMITS), "ERROR 22023");
	expect(reserve("1", "{1,0,0,0,0,0}", "{1,2,3}"), "ERROR 22023");
	expect(reserve("1", "{1,0,0,0,0,0}",
		       "{NULL,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "ERROR 22023");
	expect(reserve("0", "{1,0,0,0,0,0}", NO_LIMITS), "ERROR 23514");
	expect(settle(BOOT_A, "1", "{1,-5,0,0,0,0}"), "ERROR 22023");
}

Test(budget_sql, units_and_bytes_that_are_none_are_refused)
{
	expect(reserve_units("1", "-1", "5", NO_LIMITS), "ERROR 22023");
	expect(reserve_units("1", "6", "5", NO_LIMITS), "ERROR 22023");
	expect(extend(BOOT_A, "1", CALL, "-1", NO_LIMITS), "ERROR 22023");
	expect(extend(BOOT_A, "1", CALL, "1", "{1,2}"), "ERROR 22023");
	expect(pgtest_ask(tomb, "SELECT vessel_api.budget_extend('" BOOT_A "', 1, 1, 1,"
				" '" CALL "', 1, '" NO_LIMITS "')"),
	       "ERROR 42501");
}

Test(budget_sql, a_wrong_token_a_foreign_vessel_and_a_lost_lease_reserve_nothing)
{
	expect(reserve_as(vessel, BOOT_A, BOOT_B, "1", CALL, "{1,0,0,0,0,0}", NO_LIMITS),
	       "denied");
	expect(reserve_as(vessel, BOOT_B, token, "1", CALL, "{1,0,0,0,0,0}", NO_LIMITS),
	       "fenced");
	(void)pgtest_askp(vessel, "SELECT vessel_api.cancel($1::bigint)", job, NULL);
	expect(reserve("1", "{1,0,0,0,0,0}", NO_LIMITS), "stale");
	(void)pgtest_askp(vessel, "SELECT vessel_api.contain($1::bigint, 'test')", job,
			  NULL);
	expect(reserve("1", "{1,0,0,0,0,0}", NO_LIMITS), "revoked");
	expect(books("job"), "");
}

Test(budget_sql, every_limit_of_every_scope_is_named_when_it_is_passed)
{
	static const char *const scopes[] = {"job", "identity", "day"};

	for (int s = 0; s < 3; s++)
		for (int w = 0; w < 6; w++) {
			char limits[128] = "{", want[32];
			size_t at = 1;

			if (w == 4) /* denials: none is asked for */
				continue;
			for (int i = 0; i < 18; i++)
				at += (size_t)snprintf(limits + at, sizeof(limits) - at,
						       "%s%d", i ? "," : "",
						       i == s * 6 + w ? 6 : -1);
			(void)snprintf(limits + at, sizeof(limits) - at, "}");
			(void)snprintf(want, sizeof(want), "over %s %d", scopes[s],
				       w + 1);
			expect(reserve("1", "{7,7,7,7,0,7}", limits), want);
		}
	expect_all("{0,0,0,0,0,0} {0,0,0,0,0,0}");
}

Test(budget_sql, packages_are_counted_beside_requests_and_bounded_by_their_own_limit)
{
	static const char limits[] =
		"{1,-1,-1,-1,-1,2,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}";

	expect(reserve("1", "{0,0,0,0,0,1}", limits), "ok");
	expect(reserve("2", "{0,0,0,0,0,1}", limits), "ok");
	expect(reserve("3", "{0,0,0,0,0,1}", limits), "over job 6");
	/* neither takes what is the other's */
	expect(reserve("3", "{1,0,0,0,0,0}", limits), "ok");
	expect(reserve("4", "{1,0,0,0,0,0}", limits), "over job 1");
	expect_all("{0,0,0,0,0,0} {1,0,0,0,0,2}");
	expect(settle(BOOT_A, "1", "{0,0,0,500,0,1}"), "settled");
	/* one that came out of what is stored */
	expect(settle(BOOT_A, "2", "{0,0,0,0,0,0}"), "settled");
	expect_all("{0,0,0,500,0,1} {1,0,0,0,0,0}");
	expect(reserve("5", "{0,0,0,0,0,1}", limits), "ok");
}

Test(budget_sql, a_call_gets_as_many_units_as_the_tightest_scope_covers)
{
	expect(reserve_units("1", "10", "1000", NO_LIMITS), "ok 1000");
	expect_all("{0,0,0,0,0,0} {1,1100,2550,1000,0,0}");
	/* of 1300 tokens 200 are left, of which it needs 100 */
	expect(reserve_units("2", "10", "1000",
			     "{-1,-1,-1,-1,-1,-1,-1,1300,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "ok 100");
	expect_all("{0,0,0,0,0,0} {2,1300,2850,2000,0,0}");
	/* 77 of money, and 27 for units: ten, with a rest of two */
	expect(reserve_units("3", "10", "1000",
			     "{-1,-1,2927,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "ok 10");
	expect_all("{0,0,0,0,0,0} {3,1410,2925,3000,0,0}");
	/* nine are of no use to it */
	expect(reserve_units("4", "10", "1000",
			     "{-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,1519,-1,-1,-1,-1}"),
	       "over day 2");
	expect(reserve_units(
		       "4", "10", "1000",
		       "{-1,-1,2999,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,1519,-1,-1,-1,-1}"),
	       "over job 3");
	/* an answer that was lost comes again, whatever is left by now */
	expect(reserve_units("3", "10", "1000",
			     "{-1,-1,0,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "ok 10");
	expect_all("{0,0,0,0,0,0} {3,1410,2925,3000,0,0}");
}

Test(budget_sql, bytes_grow_to_the_limit_and_go_back_with_the_rest)
{
	static const char limits[] =
		"{-1,-1,-1,5000,-1,-1,-1,-1,-1,9000,-1,-1,-1,-1,-1,-1,-1,-1}";

	expect(extend(BOOT_A, "1", CALL, "2000", limits), "-1"); /* not there */
	expect(reserve("1", "{1,0,0,1000,0,0}", limits), "ok");
	expect(reserve("2", "{1,0,0,1000,0,0}", limits), "ok");
	expect(extend(BOOT_B, "1", CALL, "2000", limits), "-1");
	expect(extend(BOOT_A, "1", CALL2, "2000", limits), "-1");
	expect(extend(BOOT_A, "1", CALL, "2000", limits), "2000");
	expect(extend(BOOT_A, "1", CALL, "2000", limits), "2000"); /* once */
	expect(extend(BOOT_A, "1", CALL, "500", limits), "2000");
	expect_all("{0,0,0,0,0,0} {2,0,0,3000,0,0}");
	expect(extend(BOOT_A, "1", CALL, "9000", limits), "4000"); /* what is left */
	expect(extend(BOOT_A, "2", CALL, "9000", limits), "1000"); /* nothing is */
	expect_all("{0,0,0,0,0,0} {2,0,0,5000,0,0}");
	expect(settle(BOOT_A, "1", "{1,0,0,4000,0,0}"), "settled");
	expect(extend(BOOT_A, "1", CALL, "9000", NO_LIMITS), "-1");
	expect_all("{1,0,0,4000,0,0} {1,0,0,1000,0,0}");
}

Test(budget_sql, what_a_provider_says_it_took_never_overflows)
{
	expect(reserve("1", "{1,0,0,0,0,0}", NO_LIMITS), "ok");
	expect(reserve("2", "{1,0,0,0,0,0}", NO_LIMITS), "ok");
	expect(settle(BOOT_A, "1", "{1,9223372036854775807,9223372036854775807,1,0,0}"),
	       "settled");
	expect(settle(BOOT_A, "2", "{1,9223372036854775807,9223372036854775807,1,0,0}"),
	       "settled");
	expect_all("{2,9000000000000000000,9000000000000000000,2,0,0} {0,0,0,0,0,0}");
	expect(reserve_units("3", "1", "5",
			     "{-1,1000,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "over job 2");
}

/* The denials of the job with one more; most: its limit. */
static const char *denied(const char *most)
{
	return pgtest_askp(vessel,
			   "SELECT vessel_api.budget_denied($1::bigint, $2::bigint)", job,
			   most, NULL);
}

Test(budget_sql, a_limit_of_denials_that_is_none_is_refused)
{
	expect(denied("-2"), "ERROR 22023");
	expect(books("job"), "");
}

Test(budget_sql, denials_beyond_the_jobs_limit_are_not_booked_to_anybody_else)
{
	static const char limits[] =
		"{-1,-1,-1,-1,2,-1,-1,-1,-1,-1,4,-1,-1,-1,-1,-1,4,-1}";

	expect(denied("2"), "1");
	expect(denied("2"), "2");
	expect(denied("2"), "3");
	expect(denied("2"), "4");
	expect(denied("2"), "5");
	expect(books("job"), "{0,0,0,0,5,0} {0,0,0,0,0,0}");
	expect(books("identity"), "{0,0,0,0,2,0} {0,0,0,0,0,0}");
	expect(books("day"), "{0,0,0,0,2,0} {0,0,0,0,0,0}");
	expect(reserve("1", "{1,0,0,0,0,0}", limits), "over job 5");
	/* another job may still ask, which it could not if all five were the day's */
	(void)pgtest_askp(root, "DELETE FROM lych.budget WHERE scope = 'job'", NULL);
	expect(reserve("1", "{1,0,0,0,0,0}", limits), "ok");
	/* with a limit of zero none is anybody else's; without one each is */
	(void)pgtest_askp(root, "DELETE FROM lych.budget WHERE scope = 'job'", NULL);
	expect(denied("0"), "1");
	expect(books("day"), "{0,0,0,0,2,0} {1,0,0,0,0,0}");
	expect(denied("-1"), "2");
	expect(books("day"), "{0,0,0,0,3,0} {1,0,0,0,0,0}");
}

Test(budget_sql, a_limit_of_zero_allows_none_and_reached_denials_end_everything)
{
	expect(reserve("1", "{1,0,0,0,0,0}",
		       "{0,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "over job 1");
	for (int i = 1; i <= 3; i++) {
		char n[8];

		(void)snprintf(n, sizeof(n), "%d", i);
		expect(reserve(n, "{1,0,0,0,0,0}",
			       "{-1,-1,-1,-1,3,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
		       "ok");
		expect(denied("3"), n);
	}
	expect(reserve("4", "{1,0,0,0,0,0}",
		       "{-1,-1,-1,-1,3,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "over job 5");
	expect_all("{0,0,0,0,3,0} {3,0,0,0,0,0}");
}

Test(budget_sql, a_number_is_used_once_and_a_lost_answer_is_repeated)
{
	expect(reserve("5", "{1,10,0,0,0,0}", NO_LIMITS), "ok");
	expect(reserve("5", "{1,10,0,0,0,0}", NO_LIMITS), "ok"); /* the same call */
	expect(reserve_as(vessel, BOOT_A, token, "5", CALL2, "{1,10,0,0,0,0}", NO_LIMITS),
	       "replay");
	expect(reserve_as(vessel, BOOT_A, token, "4", CALL2, "{1,0,0,0,0,0}", NO_LIMITS),
	       "ok"); /* overtaken on its way */
	expect_all("{0,0,0,0,0,0} {2,10,0,0,0,0}");
}

Test(budget_sql, settled_below_and_above_the_estimate_and_only_once)
{
	expect(reserve("1", "{1,100,50,1000,0,0}", NO_LIMITS), "ok");
	expect(reserve("2", "{1,100,50,1000,0,0}", NO_LIMITS), "ok");
	expect(settle(BOOT_A, "1", "{1,40,20,500,0,0}"), "settled");
	expect_all("{1,40,20,500,0,0} {1,100,50,1000,0,0}");
	expect(settle(BOOT_A, "1", "{1,40,20,500,0,0}"), "already");
	expect(settle(BOOT_A, "2", "{1,400,200,5000,0,0}"), "settled");
	expect(settle(BOOT_B, "2", "{0,0,0,0,0,0}"), "already");
	expect_all("{2,440,220,5500,0,0} {0,0,0,0,0,0}");
	/* what was overdrawn counts */
	expect(reserve("3", "{1,1,0,0,0,0}",
		       "{-1,440,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}"),
	       "over job 2");
}

Test(budget_sql, a_settlement_of_a_lost_reservation_is_booked_once)
{
	expect(settle(BOOT_A, "9", "{1,7,0,0,0,0}"), "settled");
	expect(settle(BOOT_A, "9", "{1,7,0,0,0,0}"), "already");
	expect_all("{1,7,0,0,0,0} {0,0,0,0,0,0}");
	expect(reserve_as(vessel, BOOT_A, token, "9", CALL2, "{1,0,0,0,0,0}", NO_LIMITS),
	       "replay");
}

Test(budget_sql, fifty_parallel_against_ten_pass_ten)
{
	int ok = 0;

	for (int p = 0; p < 10; p++) {
		pid_t pid = fork();

		if (pid == 0) {
			PGconn *c = pgtest_connect("lych_vessel");
			int mine = 0;

			for (int i = 0; i < 5; i++) {
				char seq[8];
				const char *got;

				(void)snprintf(seq, sizeof(seq), "%d", p * 5 + i + 1);
				got = reserve_as(c, BOOT_A, token, seq, CALL,
						 "{1,0,0,0,0,0}",
						 "{-1,-1,-1,-1,-1,-1,10,-1,-1,-1,-1,-1,-"
						 "1,-1,-1,-1,-1,-1}");
				mine += str_eq(got, "ok");
				if (!str_eq(got, "ok") && !str_eq(got, "over identity 1"))
					_exit(99);
			}
			PQfinish(c);
			_exit(mine);
		}
	}
	for (int p = 0; p < 10; p++) {
		int status = 0;

		cr_assert(wait(&status) > 0 && WIFEXITED(status));
		cr_assert_neq(WEXITSTATUS(status), 99);
		ok += WEXITSTATUS(status);
	}
	cr_expect_eq(ok, 10, "%d passed", ok);
	expect_all("{0,0,0,0,0,0} {10,0,0,0,0,0}");
}

Test(budget_sql, what_a_killed_vessel_left_open_is_booked_at_its_estimate)
{
	pid_t pid = fork();

	if (pid == 0) { /* the vessel that reserves, and dies in the middle of it */
		PGconn *c = pgtest_connect("lych_vessel");

		(void)reserve_as(c, BOOT_A, token, "1", CALL, "{1,100,5,1000,0,0}",
				 NO_LIMITS);
		(void)reserve_as(c, BOOT_A, token, "2", CALL, "{1,100,5,1000,0,0}",
				 NO_LIMITS);
		(void)kill(getpid(), SIGKILL);
	}
	cr_assert(waitpid(pid, NULL, 0) == pid);
	expect_all("{0,0,0,0,0,0} {2,200,10,2000,0,0}");
	expect(settle(BOOT_A, "1", "{1,1,1,1,0,0}"), "settled");
	expect(pgtest_ask(vessel, "SELECT vessel_api.budget_recover('" BOOT_B "')"),
	       "-1");
	(void)pgtest_ask(vessel, "SELECT vessel_api.vessel_bye('" BOOT_A "')");
	expect(pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" BOOT_B "')"), "ok");
	expect(pgtest_ask(vessel, "SELECT vessel_api.budget_recover('" BOOT_B "')"), "1");
	expect(pgtest_ask(vessel, "SELECT vessel_api.budget_recover('" BOOT_B "')"), "0");
	expect_all("{2,101,6,1001,0,0} {0,0,0,0,0,0}");
	/* the new one's own calls are not touched */
	expect(reserve_as(vessel, BOOT_B, token, "3", CALL, "{1,0,0,0,0,0}", NO_LIMITS),
	       "ok");
	expect(pgtest_ask(vessel, "SELECT vessel_api.budget_recover('" BOOT_B "')"), "0");
	expect(pgtest_ask(root,
			  "SELECT data ->> 'calls' FROM lych.audit_outbox WHERE event"
			  " = 'budget.recovered'"),
	       "1");
}

Test(budget_sql, forgotten_calls_are_still_no_replay)
{
	for (int i = 1; i <= 4; i++) {
		char seq[8];

		(void)snprintf(seq, sizeof(seq), "%d", i);
		expect(reserve(seq, "{1,0,0,0,0,0}", NO_LIMITS), "ok");
		if (i != 2)
			expect(settle(BOOT_A, seq, "{1,0,0,0,0,0}"), "settled");
	}
	expect(pgtest_ask(vessel, "SELECT vessel_api.budget_sweep(100)"), "0");
	(void)pgtest_ask(root, "UPDATE lych.broker_call SET settled_at = settled_at -"
			       " interval '2 minutes'");
	expect(pgtest_ask(vessel, "SELECT vessel_api.budget_sweep(100)"), "2");
	expect(pgtest_ask(root, "SELECT string_agg(seq::text, ',' ORDER BY seq) FROM"
				" lych.broker_call"),
	       "2,4");
	expect(reserve_as(vessel, BOOT_A, token, "1", CALL2, "{1,0,0,0,0,0}", NO_LIMITS),
	       "replay");
	expect(reserve_as(vessel, BOOT_A, token, "4", CALL2, "{1,0,0,0,0,0}", NO_LIMITS),
	       "replay");
	expect(reserve("5", "{1,0,0,0,0,0}", NO_LIMITS), "ok");
	expect(settle(BOOT_A, "2", "{1,0,0,0,0,0}"), "settled");
	expect(settle(BOOT_A, "5", "{1,0,0,0,0,0}"), "settled");
	/* the attempt is over: nothing of it is needed, its books are */
	(void)pgtest_ask(root, "UPDATE lych.broker_call SET settled_at = settled_at -"
			       " interval '2 minutes'");
	(void)pgtest_askp(vessel, "SELECT vessel_api.contain($1::bigint, 'test')", job,
			  NULL);
	(void)pgtest_ask(vessel, "SELECT vessel_api.budget_sweep(100)");
	(void)pgtest_ask(vessel, "SELECT vessel_api.budget_sweep(100)");
	expect(pgtest_ask(root, "SELECT count(*) FROM lych.broker_call"), "0");
	expect_all("{5,0,0,0,0,0} {0,0,0,0,0,0}");
}

Test(budget_sql, a_lease_tells_identity_and_egress_and_its_end)
{
	static const char ask[] =
		"SELECT concat_ws(' ', answer, identity, egress) FROM"
		" vessel_api.broker_lease($1::bigint, $2::bigint, $3::uuid, $4::boolean)";
	static const char ended[] =
		"SELECT string_agg(x::text, ',') FROM "
		"vessel_api.broker_ended(ARRAY[$1::bigint,"
		" $1::bigint], ARRAY[1, 7]::bigint[], ARRAY[$2::uuid, $2::uuid]) AS x";

	expect(pgtest_askp(vessel, ask, job, epoch, BOOT_B, "t", NULL), "denied  ");
	expect(pgtest_askp(vessel, ask, job, epoch, token, "t", NULL),
	       "ok owner brokered");
	expect(pgtest_askp(vessel, ask, job, epoch, token, "f", NULL), "ok owner ");
	expect(pgtest_askp(vessel, ended, job, token, NULL), "2");
	(void)pgtest_askp(vessel, "SELECT vessel_api.cancel($1::bigint)", job, NULL);
	expect(pgtest_askp(vessel, ended, job, token, NULL), "1,2");
	expect(pgtest_askp(vessel, ask, job, epoch, token, "t", NULL), "stale  ");
}
