/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See job.h.
 */
#include "tomb/job/job.h"

#include "common/attr.h"
#include "common/str.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void job_init(struct job *j, bool has_input, bool has_deps)
{
	*j = (struct job){.step = STEP_NEW, .has_input = has_input, .has_deps = has_deps};
}

bool job_is_live(const struct job *j)
{
	return j->step >= STEP_UNPACK && j->step <= STEP_RUN;
}

const char *job_step_name(enum job_step s)
{
	static const char *const names[STEP_MAX_] = {
		"new", "prepare", "unpack",  "deps-fetch", "deps-install", "start",
		"run", "harvest", "deliver", "report",	   "clean",	   "done",
	};

	return s < STEP_MAX_ ? names[s] : "?";
}

/* How the spawner's word for an end maps to the public class. FAIL_NONE: success. */
static enum fail_class class_of_end(const struct spawn_exited *x)
{
	switch ((enum spawn_end)x->how) {
	case SPAWN_END_EXITED:
		return x->code == 0 ? FAIL_NONE : FAIL_EXIT;
	case SPAWN_END_TIMEOUT:
		return FAIL_TIMEOUT_KILL;
	case SPAWN_END_OOM:
		return FAIL_OOM_KILL;
	case SPAWN_END_DISK:
		return FAIL_DISK_LIMIT;
	case SPAWN_END_OUTPUT:
		return FAIL_OUTPUT_LIMIT;
	case SPAWN_END_PROCESSES:
	case SPAWN_END_CPU:
	case SPAWN_END_UNMEASURED:
	case SPAWN_END_OBJECTS:
		return FAIL_RESOURCE_KILL;
	case SPAWN_END_LEASE:
	case SPAWN_END_SHUTDOWN:
	case SPAWN_END_LOST:
		return FAIL_TRANSPORT_LOSS;
	case SPAWN_END_SIGNALLED:
	case SPAWN_END_CANCEL:
	case SPAWN_END_EXEC:
	case SPAWN_END_MAX_:
		break;
	}
	return FAIL_CRASH;
}

static void act(struct job_actions *a, enum job_action what)
{
	assert(a->n < JOB_ACTIONS_MAX);
	a->list[a->n++] = what;
}

static void act_kill(struct job *j, struct job_actions *a, enum spawn_end why,
		     unsigned grace_ms)
{
	j->killing = true;
	a->kill_why = why;
	a->kill_grace_ms = grace_ms;
	act(a, ACT_KILL);
}

static void set_detail(struct job *j, const char *text)
{
	/* Truncation is fine: it is a sentence for a person. */
	(void)snprintf(j->detail, sizeof(j->detail), "%s", text ? text : "");
}

/* Nothing of the job is alive any more: say how it ended. */
static void report(struct job *j, struct job_actions *a)
{
	j->step = STEP_REPORT;
	switch (j->verdict) {
	case VERDICT_ACK:
		act(a, ACT_ACK);
		return;
	case VERDICT_FAIL:
	case VERDICT_CANCELLED:
		act(a, ACT_FAIL);
		return;
	case VERDICT_RELEASE:
	case VERDICT_REVOKED:
		act(a, ACT_RELEASE);
		return;
	case VERDICT_DISCARD:
		j->step = STEP_CLEAN;
		act(a, ACT_CLEAN);
		return;
	case VERDICT_NONE:
		break;
	}
	assert(false && "a job without a verdict is not over");
}

/* The tree is gone, or there never was one. */
static void settle(struct job *j, struct job_actions *a)
{
	bool kept = j->verdict == VERDICT_ACK || j->verdict == VERDICT_FAIL;

	if (j->retry) {
		/* The tomb failed it: another attempt does all of it again. */
		act(a, ACT_ABORT);
		report(j, a);
	} else if (kept && j->ran) {
		j->step = STEP_HARVEST;
		act(a, ACT_HARVEST);
	} else if ((kept || j->verdict == VERDICT_CANCELLED) && j->step != STEP_PREPARE) {
		/* No artifacts, but what the job or the archive's tar said is kept. */
		j->step = STEP_DELIVER;
		act(a, ACT_DELIVER);
	} else {
		act(a, ACT_ABORT);
		report(j, a);
	}
}

/* A sandbox of the tomb's own making, before the job's. */
static bool is_before(const struct job *j)
{
	return j->step >= STEP_UNPACK && j->step < STEP_START;
}

static void go_on(struct job *j, enum job_step to, enum job_action what,
		  struct job_actions *a)
{
	j->step = to;
	act(a, what);
}

/* What comes behind the input. */
static void begin(struct job *j, struct job_actions *a)
{
	if (j->has_deps)
		go_on(j, STEP_DEPS_FETCH, ACT_DEPS_FETCH, a);
	else
		go_on(j, STEP_START, ACT_START, a);
}

static void on_started(struct job *j, const struct job_event *ev, struct job_actions *a)
{
	if (is_before(j))
		return;
	assert(j->step == STEP_START);
	j->started = *ev->started;
	j->ran = true;
	j->step = STEP_RUN;
	act(a, ACT_RUNNING);
}

static void on_refused(struct job *j, const struct job_event *ev, struct job_actions *a)
{
	assert(is_before(j) || j->step == STEP_START);
	if (j->verdict == VERDICT_NONE) {
		j->verdict = VERDICT_FAIL;
		j->fail_class = FAIL_SETUP_REFUSED;
		j->refused = *ev->refused;
		j->has_refused = true;
		(void)snprintf(j->detail, sizeof(j->detail), "%.*s at %.*s: %.*s",
			       (int)sizeof(ev->refused->error_code),
			       ev->refused->error_code, (int)sizeof(ev->refused->stage),
			       ev->refused->stage, (int)sizeof(ev->refused->text) - 1,
			       ev->refused->text);
	}
	settle(j, a);
}

/* The keeper, when nobody asked for it: our failure, not the job's. */
static bool killed_from_outside(const struct job *j)
{
	return j->fail_class == FAIL_TRANSPORT_LOSS;
}

/* A code of tar, pip or npm tells of what they were given; else they never had it. */
static enum fail_class class_before(enum fail_class c)
{
	if (c == FAIL_EXIT)
		return FAIL_INPUT;
	return c == FAIL_CRASH ? FAIL_SETUP_REFUSED : c;
}

static void on_before_exited(struct job *j, const struct job_event *ev,
			     struct job_actions *a)
{
	const struct spawn_exited *x = ev->exited;
	const char *what =
		j->step == STEP_UNPACK	     ? "the input archive could not be unpacked"
		: j->step == STEP_DEPS_FETCH ? "the dependencies could not be fetched"
					     : "the dependencies could not be installed";

	if (j->verdict == VERDICT_NONE && !j->overflow && x->how == SPAWN_END_EXITED &&
	    x->code == 0) {
		if (j->step == STEP_UNPACK)
			begin(j, a);
		else if (j->step == STEP_DEPS_FETCH)
			go_on(j, STEP_DEPS_INSTALL, ACT_DEPS_INSTALL, a);
		else
			go_on(j, STEP_START, ACT_START, a);
		return;
	}
	if (j->verdict == VERDICT_NONE) {
		const char *said = x->detail[0] || !ev->text ? x->detail : ev->text;

		j->verdict = VERDICT_FAIL;
		j->fail_class =
			class_before(j->overflow ? FAIL_OUTPUT_LIMIT : class_of_end(x));
		j->retry = killed_from_outside(j);
		(void)snprintf(j->detail, sizeof(j->detail), "%s (exit code %d)%s%.*s",
			       what, x->code, said[0] ? ": " : "",
			       (int)sizeof(x->detail) - 1, said);
	}
	settle(j, a);
}

static void on_exited(struct job *j, const struct job_event *ev, struct job_actions *a)
{
	const struct spawn_exited *x = ev->exited;

	assert(job_is_live(j));
	if (is_before(j)) {
		on_before_exited(j, ev, a);
		return;
	}
	j->exited = *x;
	j->has_exited = true;
	if (j->verdict == VERDICT_NONE) {
		j->fail_class = class_of_end(x);
		/* It ended by itself a moment before the kill arrived. */
		if (j->overflow &&
		    (j->fail_class == FAIL_NONE || j->fail_class == FAIL_EXIT ||
		     j->fail_class == FAIL_CRASH))
			j->fail_class = FAIL_OUTPUT_LIMIT;
		j->verdict = j->fail_class == FAIL_NONE ? VERDICT_ACK : VERDICT_FAIL;
		j->retry = killed_from_outside(j);
		(void)snprintf(j->detail, sizeof(j->detail), "%.*s",
			       (int)sizeof(x->detail) - 1, x->detail);
		if (j->fail_class == FAIL_OUTPUT_LIMIT && !j->detail[0])
			set_detail(j, "more output than its limit");
	}
	settle(j, a);
}

/* As if its tree were gone: there never was one. */
static void on_unstarted(struct job *j, struct job_actions *a)
{
	assert(j->killing && (is_before(j) || j->step == STEP_START));
	if (j->verdict ==
	    VERDICT_NONE) { /* more output than allowed, of what went before */
		j->verdict = VERDICT_FAIL;
		j->fail_class = FAIL_OUTPUT_LIMIT;
		set_detail(j, "more output than its limit");
	}
	settle(j, a);
}

static void on_trouble(struct job *j, const struct job_event *ev, struct job_actions *a)
{
	if (j->step >= STEP_REPORT || j->verdict != VERDICT_NONE) {
		/* Delivery and harvest are part of a verdict that stands already: without
		 * them the result would be a lie, so it is the tomb's own failure. */
		if (j->step != STEP_HARVEST && j->step != STEP_DELIVER)
			return;
	}
	j->verdict = ev->not_begun && j->step < STEP_RUN ? VERDICT_RELEASE : VERDICT_FAIL;
	j->fail_class = ev->fail_class;
	j->retry = ev->retry;
	set_detail(j, ev->text);
	if (job_is_live(j) && !ev->nothing_runs) {
		if (!j->killing)
			act_kill(j, a, SPAWN_END_SHUTDOWN, 0);
		return;
	}
	act(a, ACT_ABORT);
	report(j, a);
}

/* Whoever hangs is no part of the job: another attempt does all of it again. */
static void on_late(struct job *j, const struct job_event *ev, struct job_actions *a)
{
	if (j->step >= STEP_RUN || j->verdict != VERDICT_NONE || j->killing)
		return; /* it was done meanwhile, or is being ended */
	assert(j->step >= STEP_PREPARE);
	j->verdict = VERDICT_FAIL;
	j->fail_class = FAIL_TRANSPORT_LOSS;
	j->retry = true;
	set_detail(j, ev->text);
	if (job_is_live(j))
		act_kill(j, a, SPAWN_END_SHUTDOWN, 0);
	else
		settle(j, a);
}

static void on_cancel(struct job *j, struct job_actions *a)
{
	if (j->verdict != VERDICT_NONE || (!job_is_live(j) && j->step != STEP_PREPARE))
		return; /* over already, or being ended: the queue decides by its own
			   order */
	j->verdict = VERDICT_CANCELLED;
	j->fail_class = FAIL_CRASH;
	set_detail(j, "cancelled");
	if (job_is_live(j))
		act_kill(j, a, SPAWN_END_CANCEL, KILL_GRACE_MS);
	else
		settle(j, a);
}

static void on_lease(struct job *j, enum job_event_type how, struct job_actions *a)
{
	bool definite = how != EVENT_LEASE_DEADLINE;

	/* While the end is being reported its own answer decides: a renewal that crossed
	 * with it finds no lease either. */
	if (j->step >= STEP_REPORT || j->verdict == VERDICT_DISCARD ||
	    j->verdict == VERDICT_REVOKED)
		return;
	/* A late ack of an unreaped lease is accepted: only a definite word stops it. */
	if (!definite && j->step > STEP_RUN)
		return;
	j->verdict = how == EVENT_LEASE_REVOKED ? VERDICT_REVOKED : VERDICT_DISCARD;
	set_detail(j, how == EVENT_LEASE_REVOKED ? "the job was contained"
		      : definite		 ? "the lease was lost"
						 : "the lease could not be renewed");
	if (job_is_live(j)) {
		act_kill(j, a, SPAWN_END_LEASE, 0);
		return;
	}
	act(a, ACT_ABORT);
	report(j, a);
}

static void on_shutdown(struct job *j, bool now, struct job_actions *a)
{
	if (j->step >= STEP_REPORT)
		return;
	if (job_is_live(j)) {
		if (j->verdict == VERDICT_NONE)
			j->verdict = VERDICT_RELEASE;
		if (!j->killing)
			act_kill(j, a, SPAWN_END_SHUTDOWN, KILL_GRACE_MS);
	} else if (j->step <= STEP_PREPARE || now) {
		j->verdict = VERDICT_RELEASE;
		act(a, ACT_ABORT);
		report(j, a);
	}
}

static void on_answer(struct job *j, const struct job_event *ev, struct job_actions *a)
{
	if (j->step != STEP_REPORT)
		return;
	if (ev->answer == ANSWER_CONFLICT || ev->answer == ANSWER_DENIED)
		act(a, ACT_SECURITY);
	j->step = STEP_CLEAN;
	act(a, ACT_CLEAN);
}

static void advance(struct job *j, enum job_step from, enum job_step to,
		    enum job_action what, struct job_actions *a)
{
	if (j->step != from)
		return; /* aborted meanwhile */
	j->step = to;
	act(a, what);
}

static void on_prepared(struct job *j, struct job_actions *a)
{
	if (j->has_input)
		advance(j, STEP_PREPARE, STEP_UNPACK, ACT_UNPACK, a);
	else if (j->step == STEP_PREPARE)
		begin(j, a);
}

static void on_delivered(struct job *j, struct job_actions *a)
{
	if (j->step == STEP_DELIVER)
		report(j, a);
}

static void on_overflow(struct job *j, struct job_actions *a)
{
	j->overflow = true;
	if (job_is_live(j) && !j->killing)
		act_kill(j, a, SPAWN_END_OUTPUT, 0);
}

void job_step(struct job *j, const struct job_event *ev, struct job_actions *ret)
{
	*ret = (struct job_actions){.n = 0};
	switch (ev->type) {
	case EVENT_BEGIN:
		assert(j->step == STEP_NEW);
		advance(j, STEP_NEW, STEP_PREPARE, ACT_PREPARE, ret);
		return;
	case EVENT_PREPARED:
		on_prepared(j, ret);
		return;
	case EVENT_TROUBLE:
		on_trouble(j, ev, ret);
		return;
	case EVENT_STARTED:
		on_started(j, ev, ret);
		return;
	case EVENT_REFUSED:
		on_refused(j, ev, ret);
		return;
	case EVENT_EXITED:
		on_exited(j, ev, ret);
		return;
	case EVENT_LATE:
		on_late(j, ev, ret);
		return;
	case EVENT_UNSTARTED:
		on_unstarted(j, ret);
		return;
	case EVENT_HARVESTED:
		advance(j, STEP_HARVEST, STEP_DELIVER, ACT_DELIVER, ret);
		return;
	case EVENT_DELIVERED:
		on_delivered(j, ret);
		return;
	case EVENT_ANSWER:
		on_answer(j, ev, ret);
		return;
	case EVENT_CLEANED:
		if (j->step == STEP_CLEAN)
			j->step = STEP_DONE;
		return;
	case EVENT_OVERFLOW:
		on_overflow(j, ret);
		return;
	case EVENT_CANCEL:
		on_cancel(j, ret);
		return;
	case EVENT_LEASE_LOST:
	case EVENT_LEASE_REVOKED:
	case EVENT_LEASE_DEADLINE:
		on_lease(j, ev->type, ret);
		return;
	case EVENT_SHUTDOWN:
	case EVENT_SHUTDOWN_NOW:
		on_shutdown(j, ev->type == EVENT_SHUTDOWN_NOW, ret);
		return;
	case EVENT_MAX_:
		break;
	}
	assert(false && "unknown event");
}
