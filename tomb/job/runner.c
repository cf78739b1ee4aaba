/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See runner.h.
 */
#include "tomb/job/runner.h"

#include "common/cleanup.h"
#include "common/crypto/broker_key.h"
#include "common/log.h"
#include "common/mem.h"
#include "tomb/broker/proxy.h"
#include "tomb/job/report.h"
#include "tomb/job/run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define END_AGAIN_USEC (500 * USEC_PER_MSEC)
#define WORDS_MAX_BYTES 160u

struct runner {
	struct runner_world world;
	struct run *runs;
	uint64_t next_handle;
};

struct runner *runner_new(const struct runner_world *world)
{
	struct runner *r = xnew(struct runner);

	r->world = *world;
	r->next_handle = 1;
	return r;
}

static void run_free(struct run *run)
{
	run_abort(run);
	lease_drop(run->world->leases, run->lease);
	loop_timer_free(run->late);
	loop_timer_free(run->end_again);
	loop_timer_free(run->reap);
	harvest_done(&run->harvest);
	proxy_free(run->proxy);
	run_end_tls(run);
	explicit_bzero(&run->broker_key, sizeof(run->broker_key));
	explicit_bzero(&run->planted, sizeof(run->planted));
	tomb_spec_done(&run->spec);
	denials_done(&run->denials);
	buf_done(&run->report);
	buf_done(&run->words);
	free(run);
}

void runner_free(struct runner *r)
{
	if (!r)
		return;
	while (r->runs) {
		struct run *run = r->runs;

		r->runs = run->next;
		run_free(run);
	}
	free(r);
}

unsigned runner_count(const struct runner *r)
{
	unsigned n = 0;

	for (const struct run *i = r->runs; i; i = i->next)
		n++;
	return n;
}

bool runner_has(const struct runner *r, job_id_t job)
{
	for (const struct run *i = r->runs; i; i = i->next)
		if (i->key.job == job)
			return true;
	return false;
}

static void run_log(enum log_level level, const char *msg, const struct run *run)
{
	char job[24], epoch[24];

	(void)snprintf(job, sizeof(job), "%" PRId64, run->key.job);
	(void)snprintf(epoch, sizeof(epoch), "%" PRId64, run->key.epoch);
	log_kv(level, msg, "job", job, "epoch", epoch, "step",
	       job_step_name(run->job.step), "class",
	       fail_class_name(run->job.fail_class), "detail", run->job.detail, NULL);
}

static void end_send(void *arg);

static void run_event(struct run *run, const struct job_event *ev);

static void end_done(enum queue_answer answer, const struct err *err, void *arg)
{
	struct run *run = arg;
	struct job_event ev = {.type = EVENT_ANSWER, .answer = answer};

	run->end_pending = false;
	if (run->job.step != STEP_REPORT) {
		loop_timer_arm(run->reap, 0);
		return;
	}
	if (err) {
		/* Unknown outcome: the same words again until there is a definite answer.
		 */
		loop_timer_arm(run->end_again, END_AGAIN_USEC);
		return;
	}
	if (answer != ANSWER_OK && answer != ANSWER_ALREADY &&
	    run->job.verdict != VERDICT_REVOKED)
		log_kv(LOG_WARN_, "the queue did not take the end of a job", "answer",
		       queue_answer_name(answer), NULL);
	run_event(run, &ev);
}

static void end_send(void *arg)
{
	struct run *run = arg;
	const struct queue *q = run->world->queue;
	const struct job *j = &run->job;

	if (j->step != STEP_REPORT || run->end_pending)
		return;
	run->end_pending = true;
	if (j->verdict == VERDICT_RELEASE || j->verdict == VERDICT_REVOKED) {
		q->ops->release(q->ctx, &run->key, j->verdict == VERDICT_REVOKED,
				end_done, run);
		return;
	}
	if (!run->report_written) {
		struct report rep = {.job = j,
				     .unrooted = run->world->unrooted,
				     .denials = &run->denials,
				     .broker_refused = &run->broker_refused,
				     .harvest = run->harvested ? &run->harvest : NULL};

		if (run->relay) {
			rep.stdout_bytes = relay_bytes(run->relay, RELAY_STDOUT);
			rep.stderr_bytes = relay_bytes(run->relay, RELAY_STDERR);
			rep.stdout_truncated = relay_truncated(run->relay, RELAY_STDOUT);
			rep.stderr_truncated = relay_truncated(run->relay, RELAY_STDERR);
		}
		report_write(&rep, &run->report);
		assert(buf_ok(&run->report));
		run->report_written = true;
	}
	if (j->verdict == VERDICT_ACK)
		q->ops->ack(q->ctx, &run->key, run->report.data, run->report.len,
			    end_done, run);
	else
		q->ops->fail(q->ctx, &run->key, j->retry, j->fail_class, run->report.data,
			     run->report.len, end_done, run);
}

/* Frees the run from the loop, when nobody up the stack holds it. */
static void on_reap(void *arg)
{
	struct run *run = arg;
	struct runner *r = run->runner;
	const struct runner_world *w = run->world;

	if (run->end_pending)
		return; /* its answer still points at us */
	for (struct run **p = &r->runs; *p; p = &(*p)->next) {
		if (*p != run)
			continue;
		*p = run->next;
		break;
	}
	run_free(run);
	w->on_slot(w->arg);
}

/* For the spawner one more sandbox of this job. */
static void new_handle(struct run *run)
{
	run->handle = run->runner->next_handle++;
	run->handed = false;
}

static void kill_tree(struct run *run, const struct job_actions *how)
{
	if (run->handed) {
		spawn_kill(run->world->spawn, run->handle, how->kill_why,
			   how->kill_grace_ms);
		return;
	}
	/* Its files were still being placed. */
	run_simple(run, EVENT_UNSTARTED);
}

/* The clock of the step that begins; of none that is the job's own. */
static void set_clock(struct run *run, enum job_action what)
{
	usec_t by = run->world->prepare_usec;

	switch (what) {
	case ACT_UNPACK:
	case ACT_DEPS_FETCH:
	case ACT_DEPS_INSTALL:
		by += run->spec.timeout_ms * USEC_PER_MSEC;
		break;
	case ACT_PREPARE:
	case ACT_START:
		break;
	case ACT_RUNNING:
	case ACT_KILL:
	case ACT_HARVEST:
	case ACT_DELIVER:
	case ACT_ABORT:
	case ACT_ACK:
	case ACT_FAIL:
	case ACT_RELEASE:
	case ACT_SECURITY:
	case ACT_CLEAN:
	case ACT_MAX_:
		loop_timer_disarm(run->late);
		return;
	}
	run->late_usec = by;
	loop_timer_arm(run->late, by);
}

static void on_late(void *arg)
{
	struct run *run = arg;
	char who[128], text[SPAWN_TEXT_MAX];
	struct job_event ev = {.type = EVENT_LATE, .text = text};

	run_waits_for(run, who, sizeof(who));
	(void)snprintf(text, sizeof(text), "%s was not done within %" PRIu64 " s: %s",
		       job_step_name(run->job.step), run->late_usec / USEC_PER_SEC, who);
	run_event(run, &ev);
}

/* Its end was reported. */
static void put_away(struct run *run)
{
	const struct runner_world *w = run->world;

	if (run->job.verdict != VERDICT_ACK)
		run_log(LOG_INFO_, "job ended", run);
	lease_drop(w->leases, run->lease);
	run->lease = NULL;
	notes_end(w->notes, run->note);
	run->note = 0;
	run_clean(run);
}

static void carry_out(struct run *run, enum job_action what,
		      const struct job_actions *all)
{
	const struct runner_world *w = run->world;

	set_clock(run, what);
	switch (what) {
	case ACT_PREPARE:
		run_prepare(run);
		return;
	case ACT_UNPACK:
		new_handle(run);
		run_unpack(run);
		return;
	case ACT_DEPS_FETCH:
		new_handle(run);
		run_deps_fetch(run);
		return;
	case ACT_DEPS_INSTALL:
		new_handle(run);
		run_deps_install(run);
		return;
	case ACT_START:
		new_handle(run);
		run_start(run);
		return;
	case ACT_RUNNING:
		run_phase(run, "running");
		stdin_pipe_begin(run->stdin_pipe);
		return;
	case ACT_KILL:
		kill_tree(run, all);
		return;
	case ACT_HARVEST:
		run_harvest(run);
		return;
	case ACT_DELIVER:
		run_deliver(run);
		return;
	case ACT_ABORT:
		run_abort(run);
		return;
	case ACT_ACK:
	case ACT_FAIL:
	case ACT_RELEASE:
		work_cancel(run->phase_call);
		run->phase_call = NULL;
		end_send(run);
		return;
	case ACT_SECURITY:
		run_log(LOG_ERROR_, "security: two speakers for one job", run);
		w->on_security(&run->key, ANSWER_CONFLICT, w->arg);
		return;
	case ACT_CLEAN:
		put_away(run);
		return;
	case ACT_MAX_:
		break;
	}
	assert(false && "unknown action");
}

static void run_event(struct run *run, const struct job_event *ev)
{
	struct job_actions todo;

	job_step(&run->job, ev, &todo);
	for (unsigned i = 0; i < todo.n; i++)
		carry_out(run, todo.list[i], &todo);
}

void run_simple(struct run *run, enum job_event_type type)
{
	struct job_event ev = {.type = type};

	run_event(run, &ev);
}

void run_gone(struct run *run, const struct err *err)
{
	run_simple(run,
		   err->id == ERRID_RUN_REVOKED ? EVENT_LEASE_REVOKED : EVENT_LEASE_LOST);
}

void run_trouble(struct run *run, enum fail_class class, bool retry, bool nothing_runs,
		 const struct err *err)
{
	char text[SPAWN_TEXT_MAX];
	struct job_event ev = {
		.type = EVENT_TROUBLE,
		.fail_class = class,
		.retry = retry,
		.nothing_runs = nothing_runs,
		.not_begun = err->id == ERRID_CORE_DISK_FULL ||
			     err->id == ERRID_SANDBOX_SPAWNER,
		.text = text,
	};

	(void)snprintf(text, sizeof(text), "%s: %.160s", err_text(err), err->msg);
	run_event(run, &ev);
}

static void on_lease_word(enum lease_word word, void *owner)
{
	struct run *run = owner;

	switch (word) {
	case LEASE_WORD_CANCEL:
		run_simple(owner, EVENT_CANCEL);
		return;
	case LEASE_WORD_LOST:
		run_simple(owner, EVENT_LEASE_LOST);
		break;
	case LEASE_WORD_REVOKED:
		run_simple(owner, EVENT_LEASE_REVOKED);
		break;
	case LEASE_WORD_DEADLINE:
		run_simple(owner, EVENT_LEASE_DEADLINE);
		break;
	}
	/* What is discarded must not be renewed: somebody else may start it. */
	if (run->job.verdict == VERDICT_DISCARD || run->job.verdict == VERDICT_REVOKED) {
		lease_drop(run->world->leases, run->lease);
		run->lease = NULL;
	}
}

void runner_take(struct runner *r, const struct queue_claimed *claimed, usec_t sent)
{
	struct run *run;

	for (run = r->runs; run; run = run->next)
		if (run->key.job == claimed->key.job &&
		    run->key.epoch == claimed->key.epoch)
			return;
	run = xnew(struct run);
	run->runner = r;
	run->world = &r->world;
	run->key = claimed->key;
	run->note = notes_lease(r->world.notes, &run->key);
	run->get_fd = run->put_fd = -1;
	broker_key_of(run->key.job, run->key.epoch, &run->key.token, &run->broker_key);
	planted_of(run->key.job, run->key.epoch, &run->key.token, &run->planted);
	(void)snprintf(run->folder, sizeof(run->folder), "%" PRId64 ".%" PRId64,
		       run->key.job, run->key.epoch);
	buf_init(&run->report, RESULT_MAX_BYTES);
	buf_init(&run->words, WORDS_MAX_BYTES);
	run->late = loop_timer_new(r->world.loop, on_late, run);
	run->end_again = loop_timer_new(r->world.loop, end_send, run);
	run->reap = loop_timer_new(r->world.loop, on_reap, run);
	run->next = r->runs;
	r->runs = run;
	run->lease = lease_add(r->world.leases, &run->key, sent, on_lease_word, run);
	r->world.on_lease(r->world.arg);
	if (tomb_spec_parse(claimed->spec, claimed->spec_len, &run->spec,
			    &run->spec_err) < 0)
		run->spec = (struct tomb_spec){.n_argv = 0};
	job_init(&run->job, run->spec.input_blob[0] != '\0', deps_any(&run->spec.deps));
	run_simple(run, EVENT_BEGIN);
}

void runner_shutdown(struct runner *r, bool now)
{
	for (struct run *i = r->runs; i; i = i->next)
		run_simple(i, now ? EVENT_SHUTDOWN_NOW : EVENT_SHUTDOWN);
}

/* A handle is known while its sandbox may be alive. */
static struct run *run_of(const struct runner *r, uint64_t handle)
{
	for (struct run *i = r->runs; i; i = i->next)
		if (i->handle == handle && job_is_live(&i->job))
			return i;
	return NULL;
}

/* The broker of the sandbox that is being started. */
static enum egress_mode wanted(const struct run *run)
{
	return run->job.step == STEP_DEPS_FETCH
		       ? tomb_spec_egress(&run->spec, SPEC_USE_DEPS_FETCH)
	       : run->job.step == STEP_START ? run->spec.egress
					     : EGRESS_NONE;
}

/* Takes fd. */
static int serve_broker(struct run *run, enum broker_kind kind, int fd, struct err *err)
{
	const struct runner_world *w = run->world;
	const struct proxy_config cfg = {
		.loop = w->loop,
		.vessel = w->intents,
		.peer = w->peer,
		.key = run->key,
		.phantom = run->broker_key.s,
		.packages = wanted(run) == EGRESS_REGISTRY,
		.tls = run->job.step == STEP_START ? run->tls : NULL,
		.inflight_max = proxy_inflight(w->slots),
		.refused = &run->broker_refused,
	};

	return kind == BROKER_LISTENER ? proxy_new_http(&cfg, fd, &run->proxy, err)
				       : proxy_new_floor(&cfg, fd, &run->proxy, err);
}

int runner_terminal(struct runner *r, const struct spawn_terminal *m, int master)
{
	cleanup_close int fd = master;
	struct run *run = run_of(r, m->handle);

	if (!run || run->job.step != STEP_START || !run->spec.tty.cols ||
	    run->has_terminal)
		return -1;
	run->has_terminal = true;
	run_terminal(run, TAKE_FD(fd));
	return 0;
}

int runner_started(struct runner *r, const struct spawn_started *m, int broker)
{
	cleanup_close int fd = broker;
	struct run *run = run_of(r, m->handle);
	struct job_event ev = {.type = EVENT_STARTED, .started = m};
	struct err err = ERR_INIT;
	bool asked;
	int served = 0;

	if (!run || run->job.step == STEP_RUN)
		return -1;
	asked = wanted(run) != EGRESS_NONE;
	if (asked != (fd >= 0))
		return -1;
	/* What is to have a terminal does not run without. */
	if (run->job.step == STEP_START && run->spec.tty.cols && !run->has_terminal)
		return -1;
	if (asked)
		served =
			serve_broker(run, (enum broker_kind)m->broker, TAKE_FD(fd), &err);
	run_event(run, &ev);
	if (served < 0)
		run_trouble(run, FAIL_SETUP_REFUSED, true, false, &err);
	return 0;
}

int runner_refused(struct runner *r, const struct spawn_refused *m)
{
	struct run *run = run_of(r, m->handle);
	struct job_event ev = {.type = EVENT_REFUSED, .refused = m};

	if (!run || run->job.step == STEP_RUN)
		return -1;
	run_event(run, &ev);
	return 0;
}

int runner_denied(struct runner *r, const struct spawn_denied *m)
{
	struct run *run = run_of(r, m->handle);

	if (!run)
		return -1;
	/* Starting: the execution of its command was refused. */
	return run->job.step == STEP_START || run->job.step == STEP_RUN
		       ? denials_add(&run->denials, m)
		       : 0;
}

/* One line of plain text, whatever an archive made tar say. */
static const char *words_of(struct run *run)
{
	relay_drain(run->relay);
	while (run->words.len && run->words.data[run->words.len - 1] == '\n')
		run->words.data[--run->words.len] = '\0';
	for (size_t i = 0; i < run->words.len; i++) {
		char *c = &run->words.data[i];

		if (*c == '\n')
			*c = ';';
		else if (*c < ' ' || *c > '~')
			*c = '?';
	}
	return run->words.len ? buf_str(&run->words) : NULL;
}

int runner_exited(struct runner *r, const struct spawn_exited *m)
{
	struct run *run = run_of(r, m->handle);
	struct job_event ev = {.type = EVENT_EXITED, .exited = m};

	if (!run || !m->tree_gone)
		return -1;
	/* Nobody is left who could ask, or read. */
	proxy_free(TAKE_PTR(run->proxy));
	if (run->job.step == STEP_START || run->job.step == STEP_RUN)
		run_end_tls(run);
	stdin_pipe_free(TAKE_PTR(run->stdin_pipe));
	if (run->job.step == STEP_UNPACK)
		ev.text = words_of(run);
	run_event(run, &ev);
	return 0;
}
