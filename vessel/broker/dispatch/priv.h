/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Shared by the files of this folder.
 */
#ifndef LYCH_VESSEL_BROKER_DISPATCH_PRIV_H
#define LYCH_VESSEL_BROKER_DISPATCH_PRIV_H

#include "common/json/json.h"
#include "common/jsonw.h"
#include "vessel/broker/dispatch/dispatch.h"
#include "vessel/broker/dispatch/machine.h"
#include "vessel/broker/intents/packages.h"
#include "vessel/broker/intents/registry.h"
#include "vessel/broker/intents/registry_seen.h"
#include <stddef.h>

#define DISPATCH_JOBS_MAX BUDGET_LEASES_MAX
#define TARGET_SIZE (CONF_PORTAL_NAME_SIZE + 16) /* "portal:NAME" */
#define TARGETS_MAX (CONF_PORTALS_MAX + 4)

/* What a rule or a registry names goes to the worker as it is. */
_Static_assert(CONF_ADDRESSES_MAX <= EGRESS_ADDRESSES_MAX, "addresses of a request");

struct dispatch_call;

enum { DISPATCH_KEPT = 1, DISPATCH_REDIRECTS, DISPATCH_GATHERS };

/* What a kind of request puts in the place of each step. */
struct dispatch_kind {
	const char
		*name; /* "ask": also the books' word, and the beginning of its events */
	bool installs; /* for egress registry and for jobs with dependencies */
	enum budget_thing counts; /* what one of it is in the books: 0 is a request */
	size_t own_size; /* of what is the kind's own in a call, behind it: call->own */
	/* Reads the request, fills call->ward and call->target. */
	int (*read)(struct dispatch_call *c, struct err *err);
	/* The ward's word is r: a further refusal, or a better reason. May be NULL. */
	int (*judged)(struct dispatch_call *c, int r, struct err *err);
	/* The rules are others now, and r is what they say: is it still what this may do?
	 * Nothing is counted. May be NULL. */
	int (*still)(const struct dispatch_call *c, int r, const struct ward_verdict *v,
		     struct err *err);
	/* After that: what may it take? call->want, and call->up_reserved of its bytes. */
	void (*estimate)(struct dispatch_call *c);
	struct gate_parts *(*parts)(struct dispatch_call *c);
	/* a: what may go. Fills call->body. */
	int (*write)(struct dispatch_call *c, const struct gate_answer *a,
		     struct err *err);
	/* 0: by dispatch_send(); DISPATCH_KEPT: the request has its whole answer. */
	int (*start)(struct dispatch_call *c, struct err *err);
	/* For the log: members of an open object. */
	void (*describe)(const struct dispatch_call *c, struct jsonw *w);
	/* The reply: its head (0: the stream is started by dispatch_stream;
	 * DISPATCH_GATHERS: body() puts what comes by, end() answers the request;
	 * DISPATCH_REDIRECTS: the call goes through all steps again), what goes on of its
	 * body, its end. */
	int (*head)(struct dispatch_call *c, const struct egress_head *h,
		    struct err *err);
	int (*body)(struct dispatch_call *c, const void *data, size_t len,
		    struct buf *out, struct err *err);
	int (*end)(struct dispatch_call *c, struct buf *out, struct err *err);
	/* What it took beside requests and bytes, sent being true. May be NULL. */
	void (*actual)(const struct dispatch_call *c, struct budget_amounts *ret);
	void (*done)(struct dispatch_call *c); /* frees what is the kind's own */
};
extern const struct dispatch_kind dispatch_kind_ask, dispatch_kind_fetch,
	dispatch_kind_package;

/* What of a request's time is counted apart. */
enum dispatch_phase {
	PHASE_END,
	PHASE_LEASE,
	PHASE_RESERVE,
	PHASE_GATE,
	PHASE_AUDIT,
	PHASE_ACT,
	PHASE_DRAIN,
	PHASES_
};

/* How much of one thing a job has in the log. */
struct dispatch_logged {
	unsigned logged;   /* one by one */
	uint64_t unlogged; /* since their number was logged last */
	usec_t since;	   /* the first of those */
	enum err_id last;
};

/* Where the gate found what it refused, for the log: never the text. */
#define DISPATCH_PLACES 8u
struct dispatch_place {
	enum gate_family family;
	enum gate_part_kind kind;
	unsigned nth; /* among the request's parts of that kind, from 1 */
	uint32_t offset, len;
};

/* One attempt of one job, as long as it asks. */
struct dispatch_job {
	struct queue_lease lease;
	char identity[65];
	char egress[16]; /* "none", "brokered", "registry"; with "+deps" behind it */
	unsigned in_flight;
	/* Those that wait to be, in their order, and how many were told that it is their turn. */
	struct dispatch_call *line;
	unsigned waiting, called;
	usec_t used;			  /* boot clock: the last request */
	usec_t denials[CONF_DENIALS_MAX]; /* a ring of as many as codex.yaml says */
	uint64_t n_denials;		  /* since it began */
	bool is_granted;  /* its last reservation was: the next is not waited for */
	usec_t signalled; /* when the last signal of these was given, 0: never */
	struct dispatch_logged refusals, canaries;
	bool sent_its_key; /* a canary was refused: the signal was given */
	bool sent_planted; /* the same of what was planted in it */
	struct gate_job *gate;
	struct opinion_job *opinion; /* NULL: none was asked for */
	struct proposals_made proposed;
	struct seen_by seen; /* the indexes that it fetched */
	struct dispatch_job *next;
};

static inline bool dispatch_job_asks(const struct dispatch_job *j)
{
	return j->in_flight > 0 || j->waiting > 0;
}

struct dispatch_call {
	struct dispatch *d;
	struct dispatch_call *next, **link;
	const struct dispatch_kind *kind;
	struct dispatch_machine machine; /* only dispatch_on() moves it */
	struct httpd_req *req;		 /* NULL: answered or streaming */
	struct httpd_stream *stream;
	struct queue_lease lease;
	struct dispatch_job *job;  /* NULL before it was counted in */
	struct dispatch_job *line; /* whose line it stands in; NULL: none */
	struct dispatch_call *behind_it;
	bool is_called;
	struct loop_timer *timer;
	struct err said;  /* by the event that is taken in */
	struct err why;	  /* it ends */
	struct err cause; /* of that, where the job may know less: for the log */
	unsigned retry_sec;
	/* What the event that is taken in points at, as long as it is. */
	struct {
		const char *identity, *egress; /* NULL: seen before */
		const struct gate_answer *answer;
		const struct egress_head *head;
		const void *data;
		size_t len;
	} now;

	struct budget_call books;
	struct budget_want want;
	uint64_t units; /* that were granted of those */
	/* What is reserved; before that is known, what is at most. */
	struct budget_amounts estimate;
	uint64_t up_reserved;	      /* of its bytes; the rest is for the reply */
	struct budget_amounts actual; /* what it took; since it was settled */
	struct dispatch_room *asking; /* more of the room is, in ROOM_ASKED */
	struct ward_ask ward;
	struct ward_verdict verdict;
	uint64_t proposal;	  /* which it became, or is allowed by; 0: none */
	char target[TARGET_SIZE]; /* "portal:NAME", "fetch" */
	struct gate_ask *gate;
	double score;
	bool is_anonymised;
	/* A classifier reads what would leave, which is in body by then. */
	struct opinion_ask *opinion;
	struct audit_wait *opinion_wait; /* its request is on its way to the log */
	bool is_written;
	struct dispatch_place place[DISPATCH_PLACES]; /* where it was too private */
	size_t n_places;			      /* found; the first are in place */
	struct audit_wait *wait;
	struct egress_call *egress;
	struct buf body;    /* what is sent */
	struct buf pending; /* of the reply, for its reader */
	size_t pending_at;
	unsigned hops; /* redirects that were followed, and what they took */
	uint64_t hop_up, hop_down;
	enum reason reason; /* of a refusal, for the log: the job may know less */
	unsigned status;    /* the upstream's; 0 before its head */
	bool sent;	    /* or perhaps: since the last redirect, as the worker says */
	uint64_t up, down;  /* bytes */
	usec_t began, acted, answered, stepped; /* stepped: when its phase began */

	void *own; /* its kind's: only that knows what it is */
	max_align_t behind[];
};

static inline bool dispatch_is(const struct dispatch_call *c, enum dispatch_fact f)
{
	return dispatch_machine_is(&c->machine, f);
}

enum dispatch_verdict { VERDICT_ALLOWED, VERDICT_REFUSED, VERDICT_FAILED, VERDICTS_ };

struct dispatch_figures {
	struct {
		char target[TARGET_SIZE];
		uint64_t n[VERDICTS_];
		uint64_t decide_usec, first_byte_usec, total_usec, first_bytes, ends;
	} target[TARGETS_MAX];
	size_t n_targets;
	uint64_t phase_usec[PHASES_]; /* spent in each, over all calls */
	uint64_t refused[ERRID_MAX_];
	uint64_t tokens_in, tokens_out, money_micro, bytes_up, bytes_down;
	uint64_t denials, canaries, signals, recovered, revoked, outlawed, gone,
		redactions;
	uint64_t reservations_open, settles_open, in_flight;
};

struct dispatch {
	struct dispatch_config cfg;
	const struct dispatch_ops *ops;
	void *env;
	struct dispatch_call *calls;
	struct dispatch_job *jobs;
	size_t n_jobs;
	unsigned in_flight[DISPATCH_PARTIES];	      /* of each tomb */
	struct registry registry[REGISTRY_KIND_MAX_]; /* url NULL: not configured */
	struct registry_seen *seen;
	struct settlement *settlements;
	struct dispatch_logged strangers; /* refusals of requests that are of no job */
	struct loop_timer *sweep;
	usec_t forgot; /* when old calls were last forgotten */
	struct labels *labels;
	bool is_stopping, is_looking, look_again, is_recovering, is_owned;
	struct queue_lease looked[DISPATCH_JOBS_MAX];
	struct dispatch_figures fig;
};

static inline enum trigger_act dispatch_act(const struct dispatch *d, enum conf_trigger t)
{
	return d->cfg.broker->containment.act[t];
}

static inline usec_t dispatch_now(const struct dispatch *d)
{
	return d->cfg.clock->boot_usec(d->cfg.clock->ctx);
}

/*
 * Around each piece of parsing of what the job wrote, or of what came back for it; before the
 * disk is touched it is over, for who waits there reads nothing.
 */
static inline bool dispatch_reads(const struct dispatch_call *c, enum reading_what what)
{
	return reading_begin(c->d->cfg.note, c->lease.job, c->lease.epoch, what);
}
static inline void dispatch_has_read(struct dispatch *d, bool began)
{
	reading_end(d->cfg.note, began);
}

/* ---- effects: what is done when the machine says so ---- */

/* Returns the event that the effect answers by at once, or ON_NOTHING; errors are in said. */
typedef enum dispatch_event dispatch_doing(struct dispatch_call *c);

/* lease.c */
dispatch_doing dispatch_look_spec, dispatch_look, dispatch_take, dispatch_step_out;
/* ward.c */
dispatch_doing dispatch_judge;
/* What a person allowed by a proposal is this rule's: of no number, and without a gift. */
extern const struct conf_rule dispatch_by_proposal;
static inline bool dispatch_is_by_proposal(const struct dispatch_call *c)
{
	return c->verdict.rule == &dispatch_by_proposal;
}
/* gate.c */
dispatch_doing dispatch_gate, dispatch_cancel_gate, dispatch_write;
/* opinion.c: of what the gate let through. False: nobody is to be asked, and it goes on. */
bool dispatch_opinion(struct dispatch_call *c, const struct gate_answer *a);
void dispatch_opinion_cancel(struct dispatch_call *c);
dispatch_doing dispatch_log, dispatch_forget_log; /* audit.c */
/* budget.c */
dispatch_doing dispatch_estimate, dispatch_reserve;
dispatch_doing dispatch_want_room, dispatch_extend, dispatch_tell_room;
/* act.c */
dispatch_doing dispatch_start, dispatch_resume, dispatch_cancel;
dispatch_doing dispatch_read_head, dispatch_read_chunk, dispatch_read_end;
dispatch_doing dispatch_pump, dispatch_end_stream, dispatch_abort_stream;
/* end.c */
dispatch_doing dispatch_why_said, dispatch_why_less, dispatch_why_broken,
	dispatch_why_no_reply, dispatch_why_gone;
dispatch_doing dispatch_refuse, dispatch_at_time, dispatch_answer, dispatch_drop_request,
	dispatch_count_cut;
dispatch_doing dispatch_settle, dispatch_log_done, dispatch_log_failed;

/* call.c */
struct dispatch_call *dispatch_call_new(struct dispatch *d, struct httpd_req *req,
					const struct queue_lease *l,
					const struct dispatch_kind *kind);
/* Something happened; said: the error that it came with, or NULL. The call may be gone
 * afterwards. */
void dispatch_on(struct dispatch_call *c, enum dispatch_event ev, const struct err *said);
/* The same for the database's answers: a good one is none while the vessel stops. */
void dispatch_on_database(struct dispatch_call *c, enum dispatch_event ev,
			  const struct err *said);

/* budget.c */
/* Bytes that are reserved for a reply at first, beside what is sent. */
#define DISPATCH_ROOM_BYTES ((uint64_t)64 << 10)
/* Sent so often at most: reserved for. */
uint64_t dispatch_up_most(const struct dispatch_call *c, uint64_t bytes);
/* What the worker may read of the reply for now. */
uint64_t dispatch_room(const struct dispatch_call *c);
/* The call ends: the answer finds nobody. */
void dispatch_room_forget(struct dispatch_call *c);
/* Books what a call took; tried again until the database has it. */
void dispatch_settlement_new(struct dispatch *d, const struct budget_call *books,
			     const struct budget_amounts *actual);
void dispatch_settlements_free(struct dispatch *d);

/* act.c */
/* The body of the reply begins; extra headers are added before. */
void dispatch_stream(struct dispatch_call *c, const struct egress_head *h,
		     const char *content_type);
/* Hands the request to its worker; the reply comes to the kind's functions. Times and
 * retries are codex.yaml's, the same for all; the size of the reply is the kind's. */
MUST_CHECK int dispatch_send(struct dispatch_call *c, const struct egress_request *rq,
			     struct err *err);

/* models.c */
/* "openai", "anthropic", "gemini"; false: another. */
bool dispatch_find_dialect(const char *name, enum portal_kind *ret);

/* jobs.c */
struct dispatch_job *dispatch_job_find(struct dispatch *d, const struct queue_lease *l);
/* NULL: too many. */
struct dispatch_job *dispatch_job_get(struct dispatch *d, const struct queue_lease *l);
void dispatch_jobs_free(struct dispatch *d);
void dispatch_jobs_sweep(struct dispatch *d);
/* lease.c: one of its requests ended, whose turn is it? */
void dispatch_call_up(struct dispatch_job *j);
/* Counts a refusal by policy. */
void dispatch_denied(struct dispatch *d, struct dispatch_job *j);
bool dispatch_is_denial(const struct err *err);

/* package_parts.c */
struct package_path {
	enum registry_kind kind;
	const char *
		path; /* as the gate reads it: behind the registry's name, without a mark */
	bool is_seen; /* the digits in it are an index's, not the job's */
};
void package_path_parts(const struct package_path *p, const struct gate_job *job,
			struct gate_parts *parts);

/* log_bounds.c */
/* One more of what a job can make happen at will: is it to be logged by itself? */
MUST_CHECK bool dispatch_may_log(struct dispatch *d, struct dispatch_logged *t,
				 enum err_id what);
/* The number of the others, where it is time; at_end: whatever the time is. j NULL: of
 * the requests that are of no job. */
void dispatch_log_number(struct dispatch *d, struct dispatch_job *j, bool at_end);

/* log.c */
struct audit_wait *dispatch_log_before(struct dispatch_call *c, queue_done *done,
				       struct err *err);
/* Of a call that was allowed: how it ended. */
void dispatch_log_end(const struct dispatch_call *c, const struct budget_amounts *actual,
		      const struct err *why);
void dispatch_log_refused(const struct dispatch_call *c, const struct err *why);
struct audit_wait *dispatch_log_opinion_before(struct dispatch_call *c, queue_done *done,
					       struct err *err);
void dispatch_log_opinion(const struct dispatch_call *c, const struct opinion_answer *a);
void dispatch_log_denials(struct dispatch *d, const struct dispatch_job *j);
void dispatch_log_unlogged(struct dispatch *d, const struct dispatch_job *j,
			   const char *first, const char *second,
			   const struct dispatch_logged *t);
void dispatch_log_proposed(const struct dispatch_call *c);
void dispatch_log_canary(const struct dispatch_call *c, bool is_replaced);
/* Of what was planted in the job. */
void dispatch_log_planted(const struct dispatch_call *c, bool is_replaced);
/* A name below a wildcard that looks made up: data may leave in it. */
void dispatch_log_odd_name(const struct dispatch_call *c, const char *host);
void dispatch_log_redacted(struct dispatch *d, const char *portal, bool in_header,
			   unsigned count);

/* metrics.c */
/* The call has left that state: where a phase ends by it, what it took is counted. */
void dispatch_count_phase(struct dispatch_call *c, enum dispatch_state was);
void dispatch_count(struct dispatch *d, const char *target, enum dispatch_verdict v);
void dispatch_count_times(const struct dispatch_call *c);

#endif
