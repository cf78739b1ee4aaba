/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 120 */
/*
 * A containment's steps in the database: each is refused before its time and to whoever does not own the database, is
 * taken once, and has its event; and what was contained does not come back by being submitted.
 */
#define SUITE containment_sql
#include "tests/support/queue_suite.h"
#include "vessel/db/migrate.h"

#define NEXT                                                                             \
	"SELECT coalesce(string_agg(step, ' '), '') FROM "                               \
	"vessel_api.containments('" VESSEL "')"
#define STRANGER "00000000-0000-4000-8000-00000000dead"

static const char *contain(const char *job)
{
	return pgtest_askp(vessel, "SELECT vessel_api.contain($1::bigint, 'why')", job,
			   NULL);
}

static const char *next(void)
{
	return pgtest_ask(vessel, NEXT);
}

static const char *cut(const char *boot, const char *job)
{
	return pgtest_askp(vessel,
			   "SELECT vessel_api.containment_cut($1::uuid, $2::bigint)",
			   boot, job, NULL);
}

static const char *seal(const char *boot, const char *job)
{
	return pgtest_askp(vessel,
			   "SELECT vessel_api.containment_seal($1::uuid, $2::bigint,"
			   " '{\"epoch\":1}')",
			   boot, job, NULL);
}

static const char *shown(const char *job, const char *what)
{
	return pgtest_askp(vessel,
			   "SELECT x.s::jsonb #>> $2::text[] FROM"
			   " vessel_api.containment_show($1::bigint) AS x (s)",
			   job, what, NULL);
}

static const char *events(void)
{
	return pgtest_ask(
		root, "SELECT string_agg(event || coalesce(':' || (data ->> 'by'), ''),"
		      " ' ' ORDER BY id) FROM lych.audit_outbox"
		      " WHERE event LIKE 'containment%'");
}

static void own(void)
{
	(void)pgtest_ask(vessel, "SELECT vessel_api.vessel_beat('" VESSEL "')");
}

Test(SUITE, each_step_has_its_time_and_is_taken_once)
{
	own();
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	expect(next(), "");
	expect(contain(h.job), "contained");
	expect(seal(VESSEL, h.job), "f");
	expect(cut(STRANGER, h.job), "f");
	expect(next(), "cut");
	expect(cut(VESSEL, h.job), "t");
	expect(cut(VESSEL, h.job), "f");
	expect(seal(VESSEL, h.job), "f");
	expect(next(), "wait");
	expect(shown(h.job, "{tree_dead_by}"), "");
	expect(extend(tomb, h), "revoked");
	expect(release(h), "revoked");
	expect(release(h), "revoked");
	expect(next(), "seal");
	expect(seal(STRANGER, h.job), "f");
	expect(seal(VESSEL, h.job), "t");
	expect(seal(VESSEL, h.job), "f");
	expect(shown(h.job, "{done}"), "false");
	expect(next(), ""); /* the log has all of it, as these tests have it */
	expect(shown(h.job, "{done}"), "true");
	expect(shown(h.job, "{tree_dead_by}"), "worker");
	expect(events(), "containment.broker_closed containment.tree_dead:worker"
			 " containment.sealed containment.done");
	expect(pgtest_ask(root,
			  "SELECT (o.data ->> 'sha256') ="
			  " encode(sha256(convert_to(c.evidence, 'UTF8')), 'hex')"
			  " FROM lych.containment c JOIN lych.audit_outbox o ON"
			  " o.job_id = c.job_id AND o.event = 'containment.sealed'"),
	       "t");
	expect(contain(h.job), "already");
	expect(next(), "");
}

Test(SUITE, a_worker_that_says_nothing_has_its_lease)
{
	own();
	(void)submit("r1", "t");
	struct held h = claim(tomb);

	expect(contain(h.job), "contained");
	expect(cut(VESSEL, h.job), "t");
	expect(next(), "wait");
	expect(pgtest_ask(root,
			  "SELECT dead_by BETWEEN clock_timestamp() + interval '25 s' AND"
			  " clock_timestamp() + interval '30 s' FROM lych.containment"),
	       "t");
	(void)pgtest_ask(root, "UPDATE lych.containment SET dead_by = clock_timestamp()");
	expect(next(), "seal");
	expect(shown(h.job, "{tree_dead_by}"), "lease");
	/* its word comes later: it changes nothing */
	expect(ack(tomb, h, "{}"), "revoked");
	expect(events(), "containment.broker_closed containment.tree_dead:lease");
}

Test(SUITE, another_tomb_and_a_wrong_token_are_no_proof)
{
	own();
	(void)submit("r1", "t");
	struct held h = claim(tomb), wrong = h;

	wrong.token = STRANGER;
	expect(contain(h.job), "contained");
	expect(release(wrong), "denied");
	expect(extend(tomb, wrong), "lost");
	expect(ack(tomb2, h, "{}"), "denied");
	expect(cut(VESSEL, h.job), "t");
	expect(next(), "wait");
	expect(ack(tomb, h, "{}"), "revoked");
	expect(next(), "seal");
}

Test(SUITE, what_has_ended_or_never_began_is_contained_too)
{
	own();
	const char *queued = keep(submit("r1", "t"));

	expect(contain(queued), "contained");
	expect(state(queued), "quarantined/");
	expect(claim(tomb).job, "");
	(void)submit("r2", "t");
	struct held h = claim(tomb);

	expect(ack(tomb, h, "{}"), "ok");
	expect(contain(h.job), "contained");
	expect(state(h.job), "succeeded/");
	expect(shown(h.job, "{tree_dead_by}"), "idle");
	expect(next(), "cut cut");
	expect(cut(VESSEL, h.job), "t");
	expect(seal(VESSEL, h.job), "t");
	expect(shown(h.job, "{steps,3,step}"), "evidence_sealed");
	expect(contain("424242"), "unknown");
	expect(shown("424242", "{done}"), "");
}

Test(SUITE, the_log_has_it_before_it_is_done)
{
	own();
	const char *job = keep(submit("r1", "t"));

	(void)pgtest_ask(root, "UPDATE lych.audit_state SET acked_xid = 0, acked_id = 0");
	expect(contain(job), "contained");
	expect(cut(VESSEL, job), "t");
	expect(seal(VESSEL, job), "t");
	expect(next(), "wait");
	(void)pgtest_ask(root,
			 "UPDATE lych.audit_state SET acked_xid = 9223372036854775807");
	expect(next(), "");
	expect(shown(job, "{done}"), "true");
}

static const char *submit_input(const char *request, const char *sha)
{
	return pgtest_askp(vessel,
			   "SELECT status FROM vessel_api.enqueue('main', $1,"
			   " convert_to('{\"argv\":[\"true\"],\"input\":\"' || $2 ||"
			   " '\"}', 'UTF8'), 50, true, 600, 1000)",
			   request, sha, NULL);
}

Test(SUITE, what_it_is_and_what_it_made_is_not_submitted)
{
	static const char given
		[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	   made[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

	expect(submit_input("r1", given), "ok");
	struct held h = claim(tomb);

	(void)pgtest_askp(
		root,
		"INSERT INTO lych.job_blob SELECT $1::bigint, s, 'artifact' FROM"
		" unnest($2::text[]) AS s",
		h.job, xasprintf("{%s,%s}", given, made), NULL);
	expect(submit_input("r2", made), "ok");
	expect(contain(h.job), "contained");
	expect(submit_input("r1", given), "tainted");
	expect(submit_input("r1", made), "conflict");
	expect(submit_input("r3", made), "tainted");
	/* it was given that, and did not make it */
	expect(submit_input("r4", given), "ok");
	expect(submit_input("r2", made), "ok");
}
