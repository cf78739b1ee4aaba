/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job machine from a seed: whatever order the world chooses, no job is reported before
 * its tree is gone, none ends without having been cleaned up, and a lost lease is never
 * followed by a word to the queue, while one that was revoked is followed by exactly one.
 */
#include "tests/unit/tomb/job/job_steps.h"
#include "tomb/job/job.h"

#include <stdio.h>
#include <stdlib.h>

struct world {
	struct job job;
	bool placing;	/* its files are on their way, the spawner knows nothing of it */
	bool unstarted; /* killed meanwhile */
	bool sandbox;	/* handed to the spawner, its end not yet told */
	bool told;	/* started was told for this sandbox */
	bool preparing, harvesting, delivering, asked, cleaned, discarded, released;
	bool revoked; /* in time: the queue is to hear that nothing lives */
	unsigned ends, kills;
};

static void obey(struct world *w, const struct job_actions *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		switch (a->list[i]) {
		case ACT_PREPARE:
			w->preparing = true;
			break;
		case ACT_UNPACK:
		case ACT_DEPS_FETCH:
		case ACT_DEPS_INSTALL:
		case ACT_START:
			cr_assert_not(w->sandbox || w->placing, "two sandboxes at once");
			w->placing = true;
			w->told = false;
			break;
		case ACT_KILL:
			cr_assert(w->sandbox || w->placing, "a kill without a sandbox");
			w->unstarted = w->placing;
			w->placing = false;
			w->kills++;
			break;
		case ACT_HARVEST:
			cr_assert_not(w->sandbox, "harvest beside a living job");
			w->harvesting = true;
			break;
		case ACT_DELIVER:
			cr_assert_not(w->sandbox);
			w->delivering = true;
			break;
		case ACT_ABORT:
			w->preparing = w->placing = w->harvesting = w->delivering = false;
			break;
		case ACT_ACK:
		case ACT_FAIL:
		case ACT_RELEASE:
			cr_assert_not(w->sandbox, "reported beside a living job");
			cr_assert_not(w->discarded, "a word after the lease was lost");
			w->asked = true;
			w->ends++;
			break;
		case ACT_CLEAN:
			cr_assert_not(w->sandbox, "cleaned under a living job");
			cr_assert_not(w->cleaned);
			w->cleaned = true;
			break;
		case ACT_RUNNING:
		case ACT_SECURITY:
			break;
		case ACT_MAX_:
			cr_assert(false);
		}
	}
}

/* What people, the queue and the tomb's own trouble may say at any time. */
static void say_something(struct world *w, int32_t r, int i, struct job_event *ev)
{
	switch (r % 24) {
	case 0:
		ev->type = EVENT_CANCEL;
		break;
	case 1:
		ev->type = i < 200 ? EVENT_LEASE_DEADLINE : EVENT_MAX_;
		break;
	case 2:
		if (r / 24 % 4 == 0) {
			ev->type = EVENT_LEASE_LOST;
			w->discarded |= !w->revoked;
		} else if (r / 24 % 4 == 1) {
			ev->type = EVENT_LATE;
			ev->text = "late";
		} else if (r / 24 % 4 == 2) {
			ev->type = EVENT_LEASE_REVOKED;
			w->revoked |= w->job.step < STEP_REPORT &&
				      w->job.verdict != VERDICT_DISCARD;
		}
		break;
	case 3:
		if (r / 24 % 4 == 0)
			ev->type = r / 96 % 4 ? EVENT_SHUTDOWN : EVENT_SHUTDOWN_NOW;
		break;
	case 4:
		if (w->sandbox || w->placing)
			ev->type = EVENT_OVERFLOW;
		break;
	case 5:
		if (!w->preparing && !w->placing && !w->sandbox && !w->harvesting &&
		    !w->delivering)
			break;
		ev->type = EVENT_TROUBLE;
		ev->nothing_runs = w->placing;
		w->placing = false;
		ev->fail_class = FAIL_TRANSPORT_LOSS;
		ev->retry = true;
		ev->text = "trouble";
		break;
	default:
		break;
	}
}

static enum job_event_type finish(bool *what, enum job_event_type type)
{
	if (!*what)
		return EVENT_MAX_;
	*what = false;
	return type;
}

/* What was asked for comes to its end, in any order. */
static void end_something(struct world *w, int32_t r, struct job_event *ev,
			  struct spawn_exited *x)
{
	switch (r % 24) {
	case 6:
	case 7:
		ev->type = finish(&w->preparing, EVENT_PREPARED);
		break;
	case 8:
	case 9:
		if (w->sandbox && !w->told) {
			w->told = true;
			ev->type = EVENT_STARTED;
		}
		break;
	case 10:
		if (!w->told)
			ev->type = finish(&w->sandbox, EVENT_REFUSED);
		break;
	case 11:
	case 12:
	case 13:
		x->how = (uint32_t)(r / 24 % SPAWN_END_MAX_);
		x->code = r / 512 % 3;
		ev->exited = x;
		ev->type = finish(&w->sandbox, EVENT_EXITED);
		break;
	case 14:
	case 15:
		ev->type = finish(&w->harvesting, EVENT_HARVESTED);
		break;
	case 16:
	case 17:
		ev->type = finish(&w->delivering, EVENT_DELIVERED);
		break;
	case 18:
	case 19:
		ev->answer = (enum queue_answer)(r / 24 % ANSWER_MAX_);
		ev->type = finish(&w->asked, EVENT_ANSWER);
		break;
	case 22:
	case 23:
		w->sandbox |= w->placing;
		w->placing = false;
		break;
	case 20:
	case 21:
		if (w->cleaned)
			ev->type = EVENT_CLEANED;
		break;
	default:
		break;
	}
}

static void one_life(unsigned seed)
{
	struct world w = {.sandbox = false};
	struct random_data rd = {0};
	struct job_actions a;
	char state[64] = {0};
	int32_t r;

	cr_assert_eq(initstate_r(seed, state, sizeof(state), &rd), 0);
	(void)random_r(&rd, &r);
	job_init(&w.job, r % 3 == 0, r % 4 == 0);
	a = step(&w.job, EVENT_BEGIN);
	obey(&w, &a);
	for (int i = 0; i < 400 && w.job.step != STEP_DONE; i++) {
		struct job_event ev = {
			.type = EVENT_MAX_, .started = &started, .refused = &refused};
		struct spawn_exited x = {.tree_gone = 1};

		(void)random_r(&rd, &r);
		if (w.unstarted)
			ev.type = finish(&w.unstarted, EVENT_UNSTARTED);
		else if (r % 24 < 6)
			say_something(&w, r, i, &ev);
		else
			end_something(&w, r, &ev, &x);
		if (ev.type == EVENT_MAX_)
			continue;
		job_step(&w.job, &ev, &a);
		obey(&w, &a);
	}
	cr_assert_eq(w.job.step, STEP_DONE, "seed %u stuck in %s", seed,
		     job_step_name(w.job.step));
	cr_assert(w.cleaned);
	cr_assert_leq(w.ends, 1, "seed %u: two ends", seed);
	cr_assert(!w.revoked || w.ends == 1, "seed %u: contained, and no word", seed);
}

Test(job_machine, every_order_of_events_ends_well)
{
	for (unsigned seed = 1; seed <= 20000; seed++)
		one_life(seed);
}
