/* SPDX-License-Identifier: Apache-2.0 */
/* The job machine from tables: the class of each end, and what each word leads to. */
#include "tests/unit/tomb/job/job_steps.h"
#include "tomb/job/job.h"

static bool did(const struct job_actions *a, enum job_action what)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->list[i] == what)
			return true;
	return false;
}

static struct job_actions exits(struct job *j, enum spawn_end how, int code)
{
	struct spawn_exited x = {.how = how, .code = code, .tree_gone = 1};
	struct job_event ev = {.type = EVENT_EXITED, .exited = &x};
	struct job_actions a;

	job_step(j, &ev, &a);
	return a;
}

static struct job_actions answer(struct job *j, enum queue_answer what)
{
	struct job_event ev = {.type = EVENT_ANSWER, .answer = what};
	struct job_actions a;

	job_step(j, &ev, &a);
	return a;
}

static struct job running(void)
{
	struct job j;

	job_init(&j, false, false);
	(void)step(&j, EVENT_BEGIN);
	(void)step(&j, EVENT_PREPARED);
	(void)step(&j, EVENT_STARTED);
	cr_assert_eq(j.step, STEP_RUN);
	return j;
}

/* From the end of the tree to the word to the queue. */
static enum job_action reported(struct job *j, struct job_actions a)
{
	if (did(&a, ACT_HARVEST))
		a = step(j, EVENT_HARVESTED);
	if (did(&a, ACT_DELIVER))
		a = step(j, EVENT_DELIVERED);
	for (unsigned i = 0; i < a.n; i++)
		if (a.list[i] != ACT_ABORT)
			return a.list[i];
	return ACT_MAX_;
}

Test(job_machine, a_refused_sandbox_is_reported_and_nothing_is_harvested)
{
	struct job_actions a;
	struct job j;

	job_init(&j, false, false);
	(void)step(&j, EVENT_BEGIN);
	(void)step(&j, EVENT_PREPARED);
	a = step(&j, EVENT_REFUSED);
	cr_assert_not(did(&a, ACT_HARVEST));
	cr_assert_eq(reported(&j, a), ACT_FAIL);
	cr_assert_eq(j.fail_class, FAIL_SETUP_REFUSED);
	cr_assert_str_eq(j.detail, "LYCH-SANDBOX-004 at userns: no");
}

Test(job_machine, every_end_has_its_class)
{
	static const struct {
		enum spawn_end how;
		int code;
		enum fail_class class;
	} ends[] = {
		{SPAWN_END_EXITED, 0, FAIL_NONE},
		{SPAWN_END_EXITED, 7, FAIL_EXIT},
		{SPAWN_END_SIGNALLED, 11, FAIL_CRASH},
		{SPAWN_END_TIMEOUT, 15, FAIL_TIMEOUT_KILL},
		{SPAWN_END_OOM, 9, FAIL_OOM_KILL},
		{SPAWN_END_DISK, 9, FAIL_DISK_LIMIT},
		{SPAWN_END_PROCESSES, 9, FAIL_RESOURCE_KILL},
		{SPAWN_END_CPU, 9, FAIL_RESOURCE_KILL},
		{SPAWN_END_OUTPUT, 9, FAIL_OUTPUT_LIMIT},
		{SPAWN_END_EXEC, 2, FAIL_CRASH},
		/* nobody asked for it: the keeper was killed from outside */
		{SPAWN_END_SHUTDOWN, 9, FAIL_TRANSPORT_LOSS},
		{SPAWN_END_LOST, 9, FAIL_TRANSPORT_LOSS},
		{SPAWN_END_UNMEASURED, 9, FAIL_RESOURCE_KILL},
		{SPAWN_END_OBJECTS, 9, FAIL_RESOURCE_KILL},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct job j = running();
		enum job_action end = reported(&j, exits(&j, ends[i].how, ends[i].code));

		cr_expect_eq(j.fail_class, ends[i].class, "end %zu", i);
		cr_expect_eq(j.retry, ends[i].class == FAIL_TRANSPORT_LOSS, "end %zu", i);
		cr_expect_eq(end, ends[i].class == FAIL_NONE ? ACT_ACK : ACT_FAIL,
			     "end %zu", i);
	}
}

/* It had not begun, and not by its own fault: another attempt, not a refusal. */
Test(job_machine, a_keeper_that_was_killed_in_the_setup_costs_no_job)
{
	struct job j;
	struct job_actions a;

	job_init(&j, false, false);
	(void)step(&j, EVENT_BEGIN);
	(void)step(&j, EVENT_PREPARED);
	a = exits(&j, SPAWN_END_LOST, 9);
	cr_assert_not(did(&a, ACT_HARVEST));
	cr_assert_eq(reported(&j, a), ACT_FAIL);
	cr_assert_eq(j.fail_class, FAIL_TRANSPORT_LOSS);
	cr_assert(j.retry);
}

Test(job_machine, a_cancelled_job_waits_for_its_tree)
{
	struct job j = running();
	struct job_actions a = step(&j, EVENT_CANCEL);

	cr_assert(did(&a, ACT_KILL));
	cr_assert_eq(a.kill_why, SPAWN_END_CANCEL);
	cr_assert_eq(j.step, STEP_RUN);
	a = step(&j, EVENT_CANCEL);
	cr_assert_eq(a.n, 0, "the second word changes nothing");
	cr_assert_eq(reported(&j, exits(&j, SPAWN_END_CANCEL, 15)), ACT_FAIL);
	cr_assert_eq(j.verdict, VERDICT_CANCELLED);
}

/* Its files were on their way: the spawner never heard of it, so nobody says that it ended. */
Test(job_machine, a_job_that_was_not_handed_over_yet_is_over_at_once)
{
	static const struct {
		enum job_event_type why;
		enum job_action end;
	} kills[] = {{EVENT_CANCEL, ACT_FAIL},
		     {EVENT_SHUTDOWN, ACT_RELEASE},
		     {EVENT_OVERFLOW, ACT_FAIL}};

	for (size_t i = 0; i < sizeof(kills) / sizeof(kills[0]); i++) {
		struct job_actions a;
		struct job j;

		job_init(&j, false, false);
		(void)step(&j, EVENT_BEGIN);
		(void)step(&j, EVENT_PREPARED);
		a = step(&j, kills[i].why);
		cr_assert(did(&a, ACT_KILL));
		a = step(&j, EVENT_UNSTARTED);
		cr_assert_not(did(&a, ACT_HARVEST));
		cr_expect_eq(reported(&j, a), kills[i].end, "%zu", i);
	}
}

Test(job_machine, a_lost_lease_kills_and_says_nothing)
{
	struct job j = running();
	struct job_actions a = step(&j, EVENT_LEASE_LOST);

	cr_assert(did(&a, ACT_KILL));
	cr_assert_eq(a.kill_why, SPAWN_END_LEASE);
	a = exits(&j, SPAWN_END_LEASE, 9);
	cr_assert_eq(reported(&j, a), ACT_CLEAN);
}

/* The queue waits for that word, and until it comes nobody may say that nothing lives. */
Test(job_machine, a_contained_job_is_killed_and_then_said_to_be_dead)
{
	struct job j = running();
	struct job_actions a = step(&j, EVENT_LEASE_REVOKED);

	cr_assert(did(&a, ACT_KILL));
	cr_assert_not(did(&a, ACT_RELEASE));
	cr_assert_eq(a.kill_why, SPAWN_END_LEASE);
	cr_assert_eq(a.kill_grace_ms, 0);
	cr_assert_eq(step(&j, EVENT_LEASE_LOST).n, 0);
	a = exits(&j, SPAWN_END_LEASE, 9);
	cr_assert_not(did(&a, ACT_HARVEST));
	cr_assert_eq(reported(&j, a), ACT_RELEASE);
	a = answer(&j, ANSWER_REVOKED);
	cr_assert(did(&a, ACT_CLEAN));
}

Test(job_machine, a_contained_job_that_had_ended_or_not_begun_is_said_to_be_dead)
{
	struct job j = running(), k;
	struct job_actions a = exits(&j, SPAWN_END_EXITED, 0);

	a = step(&j, EVENT_LEASE_REVOKED);
	cr_assert(did(&a, ACT_ABORT));
	cr_assert(did(&a, ACT_RELEASE));
	job_init(&k, false, false);
	(void)step(&k, EVENT_BEGIN);
	a = step(&k, EVENT_LEASE_REVOKED);
	cr_assert(did(&a, ACT_ABORT));
	cr_assert(did(&a, ACT_RELEASE));
}

Test(job_machine, a_lease_that_could_not_be_renewed_spares_what_has_ended)
{
	struct job j = running();
	struct job_actions a = exits(&j, SPAWN_END_EXITED, 0);

	cr_assert(did(&a, ACT_HARVEST));
	a = step(&j, EVENT_LEASE_DEADLINE);
	cr_assert_eq(a.n, 0);
	a = step(&j, EVENT_HARVESTED);
	cr_assert_eq(reported(&j, a), ACT_ACK);
}

Test(job_machine, a_definite_loss_stops_a_delivery)
{
	struct job j = running();
	struct job_actions a = exits(&j, SPAWN_END_EXITED, 0);

	a = step(&j, EVENT_LEASE_LOST);
	cr_assert(did(&a, ACT_ABORT));
	cr_assert(did(&a, ACT_CLEAN));
}

/* Seen with 200 short jobs: the ack is recorded, and a heartbeat that crossed with it
 * says "lost" before the ack's own answer is here. */
Test(job_machine, a_heartbeat_that_crosses_with_the_ack_changes_nothing)
{
	struct job j = running();
	struct job_actions a;

	cr_assert_eq(reported(&j, exits(&j, SPAWN_END_EXITED, 0)), ACT_ACK);
	a = step(&j, EVENT_LEASE_LOST);
	cr_assert_eq(a.n, 0);
	a = answer(&j, ANSWER_OK);
	cr_assert(did(&a, ACT_CLEAN));
	cr_assert_eq(j.verdict, VERDICT_ACK);
}

Test(job_machine, overflow_wins_over_an_exit_that_was_faster)
{
	struct job j = running();
	struct job_actions a = step(&j, EVENT_OVERFLOW);

	cr_assert_eq(a.kill_why, SPAWN_END_OUTPUT);
	cr_assert_eq(reported(&j, exits(&j, SPAWN_END_EXITED, 0)), ACT_FAIL);
	cr_assert_eq(j.fail_class, FAIL_OUTPUT_LIMIT);
}

Test(job_machine, shutdown_gives_back_what_runs_and_reports_what_has_ended)
{
	struct job j = running(), k = running();
	struct job_actions a = step(&j, EVENT_SHUTDOWN);

	cr_assert_eq(a.kill_why, SPAWN_END_SHUTDOWN);
	cr_assert_eq(reported(&j, exits(&j, SPAWN_END_SHUTDOWN, 15)), ACT_RELEASE);
	(void)exits(&k, SPAWN_END_EXITED, 0);
	a = step(&k, EVENT_SHUTDOWN);
	cr_assert_eq(a.n, 0);
	a = step(&k, EVENT_SHUTDOWN_NOW);
	cr_assert(did(&a, ACT_RELEASE));
}

Test(job_machine, a_bad_archive_is_the_jobs_fault)
{
	struct job_actions a;
	struct job j;

	job_init(&j, true, false);
	(void)step(&j, EVENT_BEGIN);
	a = step(&j, EVENT_PREPARED);
	cr_assert(did(&a, ACT_UNPACK));
	(void)step(&j, EVENT_STARTED);
	cr_assert_eq(j.step, STEP_UNPACK);
	a = exits(&j, SPAWN_END_EXITED, 2);
	cr_assert_not(did(&a, ACT_START));
	cr_assert_eq(reported(&j, a), ACT_FAIL);
	cr_assert_eq(j.fail_class, FAIL_INPUT);
	cr_assert_not(j.retry);
}

Test(job_machine, a_keeper_killed_before_the_job_began_is_not_the_jobs_fault)
{
	for (int deps = 0; deps < 2; deps++) {
		struct job_actions a;
		struct job j;

		job_init(&j, !deps, deps);
		(void)step(&j, EVENT_BEGIN);
		(void)step(&j, EVENT_PREPARED);
		(void)step(&j, EVENT_STARTED);
		cr_assert_eq(j.step, deps ? STEP_DEPS_FETCH : STEP_UNPACK);
		a = exits(&j, SPAWN_END_SHUTDOWN, 9);
		cr_assert_eq(reported(&j, a), ACT_FAIL);
		cr_assert_eq(j.fail_class, FAIL_TRANSPORT_LOSS);
		cr_assert(j.retry);
	}
}

static struct job_actions late(struct job *j)
{
	const struct job_event ev = {.type = EVENT_LATE, .text = "it hangs"};
	struct job_actions a;

	job_step(j, &ev, &a);
	return a;
}

static struct job at_step(enum job_step wanted)
{
	struct job j;

	job_init(&j, wanted == STEP_UNPACK,
		 wanted == STEP_DEPS_FETCH || wanted == STEP_DEPS_INSTALL);
	(void)step(&j, EVENT_BEGIN);
	if (wanted > STEP_PREPARE)
		(void)step(&j, EVENT_PREPARED);
	if (wanted == STEP_DEPS_INSTALL)
		(void)exits(&j, SPAWN_END_EXITED, 0);
	cr_assert_eq(j.step, wanted);
	return j;
}

/* Whoever it is that hangs, the job is not to blame: the attempt ends, and says by whom. */
Test(job_machine, what_hangs_before_the_run_ends_the_attempt)
{
	for (enum job_step s = STEP_PREPARE; s < STEP_RUN; s++) {
		/* its sandbox ends, it had none yet, it could not be made */
		for (int end = 0; end < 3; end++) {
			struct job j = at_step(s);
			struct job_actions a = late(&j);

			cr_assert_eq(did(&a, ACT_KILL), s != STEP_PREPARE, "%s",
				     job_step_name(s));
			if (s != STEP_PREPARE) {
				cr_assert_eq(j.step, s, "its tree is waited for");
				cr_assert_eq(late(&j).n, 0, "the second word");
				a = end == 0   ? exits(&j, SPAWN_END_SHUTDOWN, 9)
				    : end == 1 ? step(&j, EVENT_UNSTARTED)
					       : step(&j, EVENT_REFUSED);
			}
			cr_assert(did(&a, ACT_ABORT));
			cr_assert_eq(reported(&j, a), ACT_FAIL);
			cr_assert_eq(j.fail_class, FAIL_TRANSPORT_LOSS);
			cr_assert(j.retry);
			cr_assert_not(j.ran);
			cr_assert_str_eq(j.detail, "it hangs");
		}
	}
}

Test(job_machine, what_is_no_longer_before_the_run_is_not_late)
{
	struct job j = running(), k = at_step(STEP_START), l = at_step(STEP_PREPARE);

	cr_assert_eq(late(&j).n, 0);
	(void)exits(&j, SPAWN_END_EXITED, 0);
	cr_assert_eq(late(&j).n, 0);
	cr_assert_eq(j.verdict, VERDICT_ACK);
	(void)step(&k, EVENT_CANCEL);
	cr_assert_eq(late(&k).n, 0);
	cr_assert_eq(k.verdict, VERDICT_CANCELLED);
	(void)step(&l, EVENT_LEASE_LOST);
	cr_assert_eq(late(&l).n, 0);
	cr_assert_eq(l.verdict, VERDICT_DISCARD);
	/* it is being ended for what it did */
	l = at_step(STEP_UNPACK);
	(void)step(&l, EVENT_OVERFLOW);
	cr_assert_eq(late(&l).n, 0);
	cr_assert_eq(l.verdict, VERDICT_NONE);
}

Test(job_machine, what_never_reached_a_spawner_is_given_back)
{
	const struct job_event gone = {.type = EVENT_TROUBLE,
				       .fail_class = FAIL_TRANSPORT_LOSS,
				       .retry = true,
				       .nothing_runs = true,
				       .not_begun = true,
				       .text = "no spawner"};
	struct job_actions a;
	struct job j;

	job_init(&j, false, false);
	(void)step(&j, EVENT_BEGIN);
	(void)step(&j, EVENT_PREPARED);
	cr_assert_eq(j.step, STEP_START);
	job_step(&j, &gone, &a);
	cr_assert_eq(reported(&j, a), ACT_RELEASE);
}

Test(job_machine, dependencies_are_fetched_then_installed_then_the_job_starts)
{
	struct job_actions a;
	struct job j;

	job_init(&j, true, true);
	(void)step(&j, EVENT_BEGIN);
	(void)step(&j, EVENT_PREPARED);
	a = exits(&j, SPAWN_END_EXITED, 0);
	cr_assert(did(&a, ACT_DEPS_FETCH));
	(void)step(&j, EVENT_STARTED);
	cr_assert_eq(j.step, STEP_DEPS_FETCH);
	a = exits(&j, SPAWN_END_EXITED, 0);
	cr_assert(did(&a, ACT_DEPS_INSTALL) && !did(&a, ACT_START));
	(void)step(&j, EVENT_STARTED);
	a = exits(&j, SPAWN_END_EXITED, 0);
	cr_assert(did(&a, ACT_START));
	cr_assert_not(j.ran);
}

Test(job_machine, dependencies_that_fail_are_the_jobs_end_and_it_never_ran)
{
	for (int at = 0; at < 2; at++) {
		struct job_actions a;
		struct job j;

		job_init(&j, false, true);
		(void)step(&j, EVENT_BEGIN);
		a = step(&j, EVENT_PREPARED);
		cr_assert(did(&a, ACT_DEPS_FETCH));
		if (at)
			(void)exits(&j, SPAWN_END_EXITED, 0);
		a = exits(&j, SPAWN_END_EXITED, 1);
		cr_assert_not(did(&a, ACT_START));
		cr_assert_eq(reported(&j, a), ACT_FAIL);
		cr_assert_eq(j.fail_class, FAIL_INPUT);
		cr_assert_not(j.ran);
	}
}

Test(job_machine, a_conflict_is_a_security_event)
{
	struct job j = running();
	struct job_actions a;

	(void)reported(&j, exits(&j, SPAWN_END_EXITED, 0));
	a = answer(&j, ANSWER_CONFLICT);
	cr_assert(did(&a, ACT_SECURITY));
	cr_assert(did(&a, ACT_CLEAN));
}
