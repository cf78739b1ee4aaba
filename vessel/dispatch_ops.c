/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The real doors of the dispatcher's steps.
 */
#include "common/mem.h"
#include "vessel/api/vessel.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/triggers.h"

#define SWEEP_CALLS 5000u

struct env {
	struct dispatch_ops ops; /* first: what the caller holds */
	struct vessel *v;
	struct ward_rates *rates;
	struct budget_limits limits;
};

static void lease(void *env, const struct queue_lease *l, bool with_spec,
		  budget_lease_done *done, void *arg)
{
	struct env *e = env;

	budget_lease(e->v->queue, l, with_spec, done, arg);
}

static void ended(void *env, const struct queue_lease *l, size_t n,
		  budget_ended_done *done, void *arg)
{
	struct env *e = env;

	budget_ended(e->v->queue, l, n, done, arg);
}

static int ward(void *env, const struct ward_ask *ask, struct ward_verdict *ret,
		unsigned *ret_retry_sec, struct err *err)
{
	struct env *e = env;

	return ward_take(e->rates, &e->v->conf.broker, ask,
			 e->v->clock->boot_usec(e->v->clock->ctx), ret, ret_retry_sec,
			 err);
}

static void replace(void *env, struct conf_broker *next)
{
	struct env *e = env;
	struct conf_broker *b = &e->v->conf.broker;
	const struct conf_broker was = *b;

	ward_rates_replace(e->rates, b, next, e->v->clock->boot_usec(e->v->clock->ctx));
	b->rule = next->rule;
	b->n_rules = next->n_rules;
	b->credential = next->credential;
	b->n_credentials = next->n_credentials;
	next->rule = was.rule;
	next->n_rules = was.n_rules;
	next->credential = was.credential;
	next->n_credentials = was.n_credentials;
}

static void reserve(void *env, const struct budget_call *c,
		    const struct budget_want *want, budget_grant_done *done, void *arg)
{
	struct env *e = env;

	budget_reserve(e->v->queue, &e->v->boot, c, want, &e->limits, done, arg);
}

static void extend(void *env, const struct budget_call *c, uint64_t bytes,
		   budget_extend_done *done, void *arg)
{
	struct env *e = env;

	budget_extend(e->v->queue, &e->v->boot, c, bytes, &e->limits, done, arg);
}

static void settle(void *env, const struct budget_call *c,
		   const struct budget_amounts *actual, queue_done *done, void *arg)
{
	struct env *e = env;

	budget_settle(e->v->queue, &e->v->boot, c, actual, done, arg);
}

static void denied(void *env, job_id_t job, queue_done *done, void *arg)
{
	struct env *e = env;

	budget_denied(e->v->queue, job, &e->limits, done, arg);
}

static void trigger(void *env, enum conf_trigger which, const struct queue_lease *l,
		    const char *why)
{
	struct env *e = env;

	triggers_pull(e->v->triggers, which, l, why);
}

static void recover(void *env, queue_count_done *done, void *arg)
{
	struct env *e = env;

	budget_recover(e->v->queue, &e->v->boot, done, arg);
}

static void sweep(void *env, queue_count_done *done, void *arg)
{
	struct env *e = env;

	budget_sweep(e->v->queue, SWEEP_CALLS, done, arg);
}

static int gate(void *env, struct gate_job *job, const char *destination,
		struct gate_parts *parts, gate_ask_done *done, void *arg,
		struct gate_ask **ret, struct err *err)
{
	struct env *e = env;

	return gate_client_ask(e->v->gate, job, destination, parts, done, arg, ret, err);
}

static struct audit_wait *before(void *env, const struct audit_event *event,
				 queue_done *done, void *arg, struct err *err)
{
	struct env *e = env;

	return audit_before(e->v->audit, event, done, arg, err);
}

static void note(void *env, const struct audit_event *event)
{
	struct env *e = env;

	audit_note(e->v->audit, event);
}

static int start(void *env, const struct egress_request *rq, const struct egress_ops *ops,
		 void *arg, struct egress_call **ret, struct err *err)
{
	struct env *e = env;

	return egress_start(e->v->egress, rq, ops, arg, ret, err);
}

struct dispatch_ops *dispatch_ops_real(struct vessel *v)
{
	struct env *e = xnew(struct env);

	e->v = v;
	e->rates = ward_rates_new();
	budget_limits_of(&v->conf.broker, &e->limits);
	e->ops = (struct dispatch_ops){
		.env = e,
		.lease = lease,
		.ended = ended,
		.ward = ward,
		.replace = replace,
		.reserve = reserve,
		.extend = extend,
		.settle = settle,
		.denied = denied,
		.trigger = trigger,
		.recover = recover,
		.sweep = sweep,
		.gate = gate,
		.gate_cancel = gate_client_cancel,
		.before = before,
		.forget = audit_forget,
		.note = note,
		.start = start,
		.resume = egress_resume,
		.room = egress_room,
		.cancel = egress_cancel,
	};
	return &e->ops;
}

void dispatch_ops_free(struct dispatch_ops *o)
{
	struct env *e;

	if (!o)
		return;
	e = o->env;
	ward_rates_free(e->rates);
	free(e);
}
