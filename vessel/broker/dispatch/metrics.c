/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Counters of requests by target and verdict, and how long each state took.
 */
#include "vessel/store/metrics.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include <string.h>

static size_t find(const struct dispatch_figures *f, const char *target)
{
	for (size_t i = 0; i < f->n_targets; i++)
		if (str_eq(f->target[i].target, target))
			return i;
	return f->n_targets;
}

/* Targets are portals and kinds: their number is the configuration's. */
static size_t find_or_add(struct dispatch_figures *f, const char *target)
{
	size_t i = find(f, target);

	if (i == TARGETS_MAX)
		return TARGETS_MAX - 1;
	if (i == f->n_targets) {
		if (str_copy(f->target[i].target, TARGET_SIZE, target) < 0)
			return TARGETS_MAX - 1;
		f->n_targets++;
	}
	return i;
}

void dispatch_count(struct dispatch *d, const char *target, enum dispatch_verdict v)
{
	d->fig.target[find_or_add(&d->fig, target)].n[v]++;
}

/* What a state's time is counted for; the rest are ends. */
static enum dispatch_phase phase_of(enum dispatch_state s)
{
	static const enum dispatch_phase phases[DISPATCH_STATES_] = {
		[WAY_NEW] = PHASE_LEASE,
		[WAY_LEASE] = PHASE_LEASE,
		[WAY_LEASE_HOP] = PHASE_LEASE,
		[WAY_LEASE_JUDGED] = PHASE_LEASE,
		[WAY_LEASE_CUT] = PHASE_LEASE,
		[WAY_LEASE_GONE] = PHASE_LEASE,
		[WAY_TAKE] = PHASE_LEASE,
		[WAY_TAKE_KNOWN] = PHASE_LEASE,
		[WAY_WAIT] = PHASE_LEASE,
		[WAY_WARD] = PHASE_LEASE,
		[WAY_WARD_KNOWN] = PHASE_LEASE,
		[WAY_WARD_HOP] = PHASE_LEASE,
		[WAY_RESERVE] = PHASE_RESERVE,
		[WAY_RESERVE_ASK] = PHASE_GATE,
		[WAY_RESERVE_GATE] = PHASE_GATE,
		[WAY_RESERVE_WRITE] = PHASE_GATE,
		[WAY_RESERVE_LOG] = PHASE_AUDIT,
		/* what it takes beyond the others */
		[WAY_RESERVE_READY] = PHASE_RESERVE,
		[WAY_RESERVE_JUDGED] = PHASE_RESERVE,
		[WAY_RESERVE_CUT] = PHASE_RESERVE,
		[WAY_RESERVE_GONE] = PHASE_RESERVE,
		[WAY_GATE] = PHASE_GATE,
		[WAY_WRITE] = PHASE_GATE,
		[WAY_LOG] = PHASE_AUDIT,
		[WAY_START] = PHASE_ACT,
		[WAY_SENT] = PHASE_ACT,
		[WAY_HEAD] = PHASE_ACT,
		[WAY_REPLY] = PHASE_ACT,
		[WAY_PAUSED] = PHASE_ACT,
		[WAY_END] = PHASE_ACT,
		[WAY_DRAIN] = PHASE_DRAIN,
		[WAY_GATHER] = PHASE_ACT,
		[WAY_GATHERED] = PHASE_ACT,
	};

	return phases[s];
}

void dispatch_count_phase(struct dispatch_call *c, enum dispatch_state was)
{
	enum dispatch_phase phase = phase_of(was);
	usec_t now;

	if (phase == phase_of(c->machine.way))
		return;
	now = dispatch_now(c->d);
	c->d->fig.phase_usec[phase] += now - c->stepped;
	c->stepped = now;
}

void dispatch_count_times(const struct dispatch_call *c)
{
	struct dispatch_figures *f = &c->d->fig;
	size_t i = find_or_add(f, c->target);

	f->target[i].ends++;
	f->target[i].total_usec += dispatch_now(c->d) - c->began;
	if (c->acted)
		f->target[i].decide_usec += c->acted - c->began;
	if (c->answered) {
		f->target[i].first_bytes++;
		f->target[i].first_byte_usec += c->answered - c->acted;
	}
}

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_addf(out, "# HELP lychgate_broker_%s %s\n# TYPE lychgate_broker_%s %s\n",
		 name, help, name, type);
}

static void one(struct buf *out, const char *name, const char *type, const char *help,
		uint64_t value)
{
	head(out, name, type, help);
	buf_addf(out, "lychgate_broker_%s %llu\n", name, (unsigned long long)value);
}

static void seconds(struct buf *out, const char *name, const char *target, uint64_t usec)
{
	buf_addf(out, "lychgate_broker_%s{target=\"%s\"} %llu.%06llu\n", name, target,
		 (unsigned long long)(usec / USEC_PER_SEC),
		 (unsigned long long)(usec % USEC_PER_SEC));
}

static void write_targets(const struct dispatch_figures *f, struct buf *out)
{
	static const char *const verdicts[VERDICTS_] = {"done", "refused", "failed"};

	head(out, "requests_total", "counter", "Requests of jobs by target and verdict");
	for (size_t i = 0; i < f->n_targets; i++)
		for (unsigned v = 0; v < VERDICTS_; v++)
			buf_addf(out,
				 "lychgate_broker_requests_total{target=\"%s\","
				 "verdict=\"%s\"} %llu\n",
				 f->target[i].target, verdicts[v],
				 (unsigned long long)f->target[i].n[v]);
	head(out, "decide_seconds_sum", "counter",
	     "From a request to its sending: all steps until the log was on disk");
	for (size_t i = 0; i < f->n_targets; i++)
		seconds(out, "decide_seconds_sum", f->target[i].target,
			f->target[i].decide_usec);
	head(out, "first_byte_seconds_sum", "counter", "From the sending to the head");
	for (size_t i = 0; i < f->n_targets; i++)
		seconds(out, "first_byte_seconds_sum", f->target[i].target,
			f->target[i].first_byte_usec);
	head(out, "first_byte_seconds_count", "counter", "Heads that came");
	for (size_t i = 0; i < f->n_targets; i++)
		buf_addf(out,
			 "lychgate_broker_first_byte_seconds_count{target=\"%s\"} %llu\n",
			 f->target[i].target,
			 (unsigned long long)f->target[i].first_bytes);
	head(out, "seconds_sum", "counter", "From a request to its end");
	for (size_t i = 0; i < f->n_targets; i++)
		seconds(out, "seconds_sum", f->target[i].target, f->target[i].total_usec);
	head(out, "seconds_count", "counter", "Requests that were sent and ended");
	for (size_t i = 0; i < f->n_targets; i++)
		buf_addf(out, "lychgate_broker_seconds_count{target=\"%s\"} %llu\n",
			 f->target[i].target, (unsigned long long)f->target[i].ends);
}

static void write_phases(const struct dispatch_figures *f, struct buf *out)
{
	static const char *const names[PHASES_] = {
		[PHASE_LEASE] = "lease", [PHASE_RESERVE] = "reserve",
		[PHASE_GATE] = "gate",	 [PHASE_AUDIT] = "audit",
		[PHASE_ACT] = "act",	 [PHASE_DRAIN] = "drain"};

	head(out, "step_seconds_sum", "counter",
	     "Time of all requests in each step; lease has the reading and the ward too");
	for (size_t i = 0; i < PHASES_; i++) {
		if (!names[i])
			continue; /* ends */
		buf_addf(out,
			 "lychgate_broker_step_seconds_sum{step=\"%s\"} %llu.%06llu\n",
			 names[i], (unsigned long long)(f->phase_usec[i] / USEC_PER_SEC),
			 (unsigned long long)(f->phase_usec[i] % USEC_PER_SEC));
	}
}

void dispatch_write_metrics(const struct dispatch *d, struct buf *out)
{
	const struct dispatch_figures *f = &d->fig;

	write_targets(f, out);
	write_phases(f, out);
	head(out, "refused_total", "counter", "Refusals by error code");
	for (unsigned id = 0; id < ERRID_MAX_; id++)
		if (f->refused[id])
			buf_addf(out, "lychgate_broker_refused_total{code=\"%s\"} %llu\n",
				 err_info((enum err_id)id)->text,
				 (unsigned long long)f->refused[id]);
	one(out, "tokens_in_total", "counter", "Tokens sent, as providers counted them",
	    f->tokens_in);
	one(out, "tokens_out_total", "counter", "Tokens that came back", f->tokens_out);
	one(out, "money_micro_total", "counter", "Money booked, in millionths",
	    f->money_micro);
	one(out, "bytes_up_total", "counter", "Bytes of bodies sent", f->bytes_up);
	one(out, "bytes_down_total", "counter", "Bytes of bodies that came back",
	    f->bytes_down);
	one(out, "denials_total", "counter", "Attempts that policy refused", f->denials);
	one(out, "canaries_total", "counter",
	    "Requests that held what was planted in their job", f->canaries);
	one(out, "signals_total", "counter", "Signals for containment", f->signals);
	one(out, "revoked_total", "counter", "Requests cut because their lease ended",
	    f->revoked);
	one(out, "outlawed_total", "counter",
	    "Requests cut because the ward was reloaded and permits them no more",
	    f->outlawed);
	one(out, "gone_total", "counter", "Requests whose tomb hung up", f->gone);
	one(out, "redactions_total", "counter", "Credentials found in replies",
	    f->redactions);
	one(out, "recovered_total", "counter",
	    "Reservations of earlier vessels, booked at their estimate", f->recovered);
	one(out, "in_flight", "gauge", "Requests under way", f->in_flight);
	one(out, "reservations_open", "gauge", "Reservations of requests under way",
	    f->reservations_open);
	one(out, "settlements_open", "gauge", "Settlements that the database has not yet",
	    f->settles_open);
}
