/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The dispatcher: what a job wants from outside, decided in one order, and done when all
 * of it is final:
 *
 *	lease -> ward -> budget -> gate -> audit (on disk) -> act -> settle, outcome
 *
 * The lease of a job that was seen before is asked for in the statement that reserves, and
 * before any refusal that comes sooner. Gate and audit do not wait for a reservation that
 * is likely to be granted, the act does (docs/adr/0033): its `allowed` in the log may be
 * followed by `denied`.
 *
 * Every step can refuse, with a typed error that the job may read: a code, and the rule
 * that it was. Never an address, a resolver's answer or an upstream's words. A refusal by
 * policy leaves no sooner than 25 ms after the request, and then on a multiple of that, so
 * that its time tells little about which wall it was.
 *
 * Where a classifier is configured, the gate's step is over when that has judged the texts of an ask, too
 * (vessel/broker/opinion): it may refuse what the gate let through, and nothing else.
 *
 * What a step needs is behind struct dispatch_ops, so that the order can be tried without
 * a database or a network. The real ones: dispatch_ops_real().
 */
#ifndef LYCH_VESSEL_BROKER_DISPATCH_DISPATCH_H
#define LYCH_VESSEL_BROKER_DISPATCH_DISPATCH_H

#include "common/net/httpd.h"
#include "common/worker/reading.h"
#include "vessel/audit/audit.h"
#include "vessel/audit/event.h"
#include "vessel/broker/budget.h"
#include "vessel/broker/gate/client.h"
#include "vessel/broker/intents/packages.h"
#include "vessel/broker/opinion/opinion.h"
#include "vessel/broker/proposals.h"
#include "vessel/broker/ward.h"
#include "vessel/egress/egress.h"

/* Refusals (and, apart, canaries) of one attempt of a job that the log has one by one;
 * of what comes after them it has the number, once a minute and at the end. */
#define DISPATCH_LOGGED_MAX 256u
#define DISPATCH_UNLOGGED_USEC (60 * USEC_PER_SEC)
#define DISPATCH_REFUSAL_USEC (25 * USEC_PER_MSEC)
#define DISPATCH_SWEEP_USEC USEC_PER_SEC
/* A reply waits for its reader at this many unwritten bytes: more than half of the cap of
 * the work socket's streams, so that the drain callback comes. */
#define DISPATCH_BACKLOG_MAX_BYTES ((size_t)1 << 20)
#define DISPATCH_PAUSE_BYTES (DISPATCH_BACKLOG_MAX_BYTES / 2)
/* Whose leases are: tombs, and one who is none. */
#define DISPATCH_PARTIES GATE_PARTIES

struct vessel;
struct dispatch;

struct dispatch_ops {
	void *env;
	void (*lease)(void *env, const struct queue_lease *l, bool with_spec,
		      budget_lease_done *done, void *arg);
	void (*ended)(void *env, const struct queue_lease *l, size_t n,
		      budget_ended_done *done, void *arg);
	int (*ward)(void *env, const struct ward_ask *ask, struct ward_verdict *ret,
		    unsigned *ret_retry_sec, struct err *err);
	/* The rules of next become the ward's, and the ward's next's. */
	void (*replace)(void *env, struct conf_broker *next);
	void (*reserve)(void *env, const struct budget_call *c,
			const struct budget_want *want, budget_grant_done *done,
			void *arg);
	void (*extend)(void *env, const struct budget_call *c, uint64_t bytes,
		       budget_extend_done *done, void *arg);
	void (*settle)(void *env, const struct budget_call *c,
		       const struct budget_amounts *actual, queue_done *done, void *arg);
	void (*denied)(void *env, job_id_t job, queue_done *done, void *arg);
	/* A trigger that codex.yaml does not switch off was pulled by this job: triggers.h. It is in
	 * the log by then. */
	void (*trigger)(void *env, enum conf_trigger which, const struct queue_lease *l,
			const char *why);
	void (*recover)(void *env, queue_count_done *done, void *arg);
	void (*sweep)(void *env, queue_count_done *done, void *arg);
	int (*gate)(void *env, struct gate_job *job, const char *destination,
		    struct gate_parts *parts, gate_ask_done *done, void *arg,
		    struct gate_ask **ret, struct err *err);
	void (*gate_cancel)(struct gate_ask *ask);
	struct audit_wait *(*before)(void *env, const struct audit_event *e,
				     queue_done *done, void *arg, struct err *err);
	void (*forget)(struct audit_wait *w);
	void (*note)(void *env, const struct audit_event *e);
	int (*start)(void *env, const struct egress_request *rq,
		     const struct egress_ops *ops, void *arg, struct egress_call **ret,
		     struct err *err);
	void (*resume)(struct egress_call *call);
	void (*room)(struct egress_call *call, uint64_t bytes, bool is_last);
	void (*cancel)(struct egress_call *call);
};

struct dispatch_config {
	struct loop *loop;
	const struct clock_ops *clock;
	const struct random_ops *rng;
	const struct conf_broker *broker; /* borrowed */
	const struct dispatch_ops *ops;	  /* borrowed */
	struct packages *packages;	  /* borrowed */
	struct proposals *proposals;	  /* borrowed; NULL: there are none */
	struct reading *note;		  /* borrowed: of what is parsed; NULL: none */
	struct opinion *opinion; /* borrowed: behind the gate; NULL: nobody is asked */
	uint8_t links_key[SHA256_SIZE]; /* of registry_links.h */
};

struct dispatch *dispatch_new(const struct dispatch_config *cfg);
/* Everything under way is cut; what it reserved is settled by the next start. NULL is
 * fine. */
void dispatch_free(struct dispatch *d);
/* The database is ours: what another vessel left open is settled, then swept on. */
void dispatch_owned(struct dispatch *d);
/* A job changed: leases of requests under way are looked at again. */
void dispatch_hint(struct dispatch *d);
/* The job was contained, so its leases stand no more: what it has under way is cut. How many are left, which end
 * in the next turns. */
unsigned dispatch_cut(struct dispatch *d, job_id_t job);
/* In one step the ward has the rules of next, which has the old ones afterwards. What is under way is
 * judged by them at once, and cut where they would not permit it. How many were. */
unsigned dispatch_replace_ward(struct dispatch *d, struct conf_broker *next);
/* No more is begun, what is under way is cut and settled. */
void dispatch_stop(struct dispatch *d);
/* Something was found that is a signal for containment (deaths.h). */
void dispatch_signal(struct dispatch *d);
/* The key of this portal, or credential, came back in a reply (egress_events.on_redacted). */
void dispatch_redacted(struct dispatch *d, const char *portal, bool in_header,
		       unsigned count);

/* The requests of the work socket; req is answered sooner or later. */
void dispatch_ask(struct dispatch *d, struct httpd_req *req, const struct queue_lease *l);
void dispatch_fetch(struct dispatch *d, struct httpd_req *req,
		    const struct queue_lease *l);
void dispatch_package(struct dispatch *d, struct httpd_req *req,
		      const struct queue_lease *l);
void dispatch_models(struct dispatch *d, struct httpd_req *req,
		     const struct queue_lease *l);

/* Prometheus text. */
void dispatch_write_metrics(const struct dispatch *d, struct buf *out);

/* v must have queue, audit, egress, gate, conf and clock by the time of the first call.
 * The caller frees it with dispatch_ops_free(). */
struct dispatch_ops *dispatch_ops_real(struct vessel *v);
void dispatch_ops_free(struct dispatch_ops *o);

#endif
