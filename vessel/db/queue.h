/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The vessel's side of the queue: typed calls over the vessel_api SQL functions.
 * The rules (lease, fencing, idempotency, retry) live once, in
 * the SQL files of vessel/db/schema; nothing here decides. All calls are asynchronous;
 * `done` is called exactly once from the loop. Borrowed pointers in callbacks live until
 * the callback returns.
 */
#ifndef LYCH_VESSEL_DB_QUEUE_H
#define LYCH_VESSEL_DB_QUEUE_H

#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include "common/proto.h"
#include <stdbool.h>
#include <stddef.h>

struct queue;

struct queue_config {
	const char *socket_dir; /* PostgreSQL's */
	const char *password;	/* of lych_vessel */
	void (*on_change)(
		void *arg); /* a job changed somewhere (NOTIFY hint, or reconnect) */
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
};

MUST_CHECK int queue_new(struct loop *l, const struct queue_config *cfg,
			 struct queue **ret, struct err *err);
void queue_free(struct queue *q);
bool queue_is_up(const struct queue *q);

/* One job as the API shows it. Strings are "" when absent. */
struct queue_job {
	job_id_t id;
	const char *queue, *request_id;
	enum job_state state; /* already mapped to what a user sees */
	enum fail_class fail_class;
	const char *phase; /* "preparing", "running", "harvesting" or "" */
	int64_t epoch;
	int attempts, lost;
	const char *created_at, *started_at, *finished_at,
		*updated_at;   /* RFC 3339, UTC */
	int64_t ended_ago_sec; /* by the database's clock; -1: it has not ended */
	const char *owner;     /* the tomb's role while leased */
	const char *taint;
	int64_t version;  /* grows with every change of this job: for queue_look() */
	const void *spec; /* the stored JSON; NULL unless asked for */
	size_t spec_len;
	const void *result; /* the tomb's JSON; NULL unless asked for and present */
	size_t result_len;
};

/* Submit. Same request_id + same spec bytes: the same job, *existing true.
 * Other content: ERRID_RUN_CONFLICT. Too many waiting: ERRID_RUN_QUEUE_FULL. It was contained, or names
 * what a contained one made: ERRID_RUN_TAINTED. */
struct queue_submit {
	const char *queue;	/* "main" */
	const char *request_id; /* <= 200 bytes, never NULL: the API makes one up */
	const void *spec;	/* canonical JSON, <= SPEC_MAX_BYTES */
	size_t spec_len;
	int priority;		  /* 0..100, 50 default, larger first */
	bool retry_on_lost;	  /* else one attempt only */
	unsigned max_runtime_sec; /* per attempt: after it, extend answers lost */
	unsigned max_waiting;
	bool attended; /* somebody waits for it (attended.h) */
};
typedef void queue_submit_done(job_id_t id, bool existing, const struct err *err,
			       void *arg);
void queue_submit(struct queue *q, const struct queue_submit *s, queue_submit_done *done,
		  void *arg);

/* n jobs, newest first; err NULL on success. */
typedef void queue_jobs_done(const struct queue_job *jobs, size_t n,
			     const struct err *err, void *arg);
/* ERRID_RUN_NOT_FOUND when there is none; with spec and result. */
void queue_show(struct queue *q, job_id_t id, queue_jobs_done *done, void *arg);
struct queue_list {
	bool by_state;
	enum job_state state;
	job_id_t before; /* ids below this, 0 = from the newest */
	unsigned limit;	 /* 1..500 */
};
void queue_list(struct queue *q, const struct queue_list *f, queue_jobs_done *done,
		void *arg);
/* Of these jobs those that are at another version than the one that was seen, as they are
 * now, and those that are no more. */
struct queue_seen {
	job_id_t job;
	int64_t version;
};
typedef void queue_look_done(const struct queue_job *jobs, size_t n, const job_id_t *gone,
			     size_t n_gone, const struct err *err, void *arg);
void queue_look(struct queue *q, const struct queue_seen *seen, size_t n,
		queue_look_done *done, void *arg);

/* held/queued -> cancelled at once; running -> cancelling until the tomb has proved the
 * tree gone; final states are returned as they are. */
typedef void queue_state_done(enum job_state now, const struct err *err, void *arg);
void queue_cancel(struct queue *q, job_id_t id, queue_state_done *done, void *arg);

/* A person's decisions about a job that has ended; neither is sent twice.
 * ERRID_RUN_NOT_FOUND, _TAINTED, _STATE; of a retry _QUEUE_FULL too. */
typedef void queue_done(const struct err *err, void *arg);
void queue_retry(struct queue *q, job_id_t id, unsigned max_waiting, queue_done *done,
		 void *arg);
void queue_remove(struct queue *q, job_id_t id, queue_done *done, void *arg);

/* Who speaks for a job on the work socket. */
struct queue_lease {
	job_id_t job;
	int64_t epoch;
	struct uuid token;
	unsigned party; /* a number for the tomb that speaks, 0: nobody's; takes turns */
};
/* strict: expires_at > now, current epoch, no taint, no cancel (egress).
 * Not strict: the token matches the current unended attempt (output, phases, artifacts).
 * Failure is ERRID_RUN_STALE, _REVOKED or _DENIED. */
void queue_lease_check(struct queue *q, const struct queue_lease *l, bool strict,
		       queue_done *done, void *arg);
void queue_set_phase(struct queue *q, const struct queue_lease *l, const char *phase,
		     queue_done *done, void *arg);
/* Does this job's spec name this blob? (input, files) */
void queue_job_has_blob(struct queue *q, const struct queue_lease *l,
			const char *sha256_hex, queue_done *done, void *arg);

/* The tombs of the database (registered.h). */
#define QUEUE_TOMBS_MAX 64
struct queue_tomb {
	const char *name;
	uint64_t generation;
};
typedef void queue_tombs_done(const struct queue_tomb *list, size_t n,
			      const struct err *err, void *arg);
void queue_tombs(struct queue *q, queue_tombs_done *done, void *arg);
/* Whose attempt it is; ERRID_RUN_DENIED when job, epoch and token do not belong together. */
typedef void queue_text_done(const char *text, size_t len, const struct err *err,
			     void *arg);
void queue_lease_owner(struct queue *q, const struct queue_lease *l,
		       queue_text_done *done, void *arg);

/* The reconciler's calls. */
typedef void queue_count_done(unsigned n, const struct err *err, void *arg);
void queue_reap(struct queue *q, unsigned limit, queue_count_done *done, void *arg);
/* Delete finished jobs, attempts, results older than keep_sec; ids come back so that
 * blobs and output can go too. */
typedef void queue_ids_done(const job_id_t *ids, size_t n, const struct err *err,
			    void *arg);
void queue_retain(struct queue *q, unsigned keep_sec, unsigned limit,
		  queue_ids_done *done, void *arg);
/* Nobody waits any more for these jobs, or (others) for any but these: at most limit of those that
 * are attended are cancelled; their ids. Not sent twice. */
void queue_abandon(struct queue *q, const job_id_t *jobs, size_t n, bool others,
		   unsigned limit, queue_ids_done *done, void *arg);
/* Every blob sha256 that some job still names. */
typedef void queue_shas_done(const char *const *hex, size_t n, const struct err *err,
			     void *arg);
void queue_live_blobs(struct queue *q, const char *prefix, queue_shas_done *done,
		      void *arg);
/* The fencing row: only one vessel may own the database. boot is this process's.
 * ERRID_START_TWO when another one is alive (renewed < 15 s ago). Call every 5 s. */
void queue_vessel_beat(struct queue *q, const struct uuid *boot, queue_done *done,
		       void *arg);
void queue_vessel_bye(struct queue *q, const struct uuid *boot, queue_done *done,
		      void *arg);

/* Is the schema the one that this program was built for? ERRID_START_SCHEMA (newer),
 * _SCHEMA_OLD or (below first) _SCHEMA_GONE, which say what to do; anything else: it could
 * not be asked. */
void queue_schema_check(struct queue *q, unsigned first, unsigned want, queue_done *done,
			void *arg);

/* ---- containment (queue_contain.c; schema/0019_containment) ------------------ */

/* The job is revoked, wherever it is, and nothing of it runs again before a person says so.
 * One that is contained already, or gone, is no error. */
void queue_contain(struct queue *q, job_id_t job, const char *reason, queue_done *done,
		   void *arg);
/* The same for whoever wants to know: ERRID_RUN_NOT_FOUND; is_new: it was not contained. */
typedef void queue_contain_done(bool is_new, const struct err *err, void *arg);
void queue_contain_as(struct queue *q, job_id_t job, const char *reason,
		      queue_contain_done *done, void *arg);
/* Those that are not done, and the step that is the vessel's to take now. */
enum queue_contain_step { QUEUE_CONTAIN_WAIT, QUEUE_CONTAIN_CUT, QUEUE_CONTAIN_SEAL };
struct queue_containment {
	job_id_t job;
	int64_t epoch; /* that was revoked */
	enum queue_contain_step step;
};
typedef void queue_containments_done(const struct queue_containment *list, size_t n,
				     const struct err *err, void *arg);
void queue_containments(struct queue *q, queue_containments_done *done, void *arg);
/* The broker has nothing more of the job under way. */
void queue_containment_cut(struct queue *q, job_id_t job, queue_done *done, void *arg);
/* output: JSON, what it printed by digests. */
void queue_containment_seal(struct queue *q, job_id_t job, const char *output,
			    queue_done *done, void *arg);
/* As JSON. ERRID_RUN_NOT_FOUND: it was not contained, or there is no such job. */
void queue_containment_show(struct queue *q, job_id_t job, queue_text_done *done,
			    void *arg);

/* ---- the audit outbox (queue_audit.c; schema/0018_first/13_audit.sql) -------- */

/* A place in the outbox's order, and the number of the event there; zeros before all. */
struct queue_audit_place {
	int64_t xid, id;
	uint64_t pseq;
};
struct queue_audit_event {
	struct queue_audit_place at; /* without pseq: it is counted */
	uint64_t time_ms;
	const char *event, *actor;
	job_id_t job; /* 0: of no job */
	int64_t epoch;
	const char *data; /* JSON */
};
/* Where the numbering stands; closes claims. ERRID_START_TWO when boot does not own the
 * database. */
typedef void queue_audit_begin_done(const struct uuid *stream,
				    const struct queue_audit_place *acked,
				    const struct err *err, void *arg);
void queue_audit_begin(struct queue *q, const struct uuid *boot,
		       queue_audit_begin_done *done, void *arg);
/* The next settled events after a place, in order. */
typedef void queue_audit_next_done(const struct queue_audit_event *events, size_t n,
				   const struct err *err, void *arg);
void queue_audit_next(struct queue *q, const struct queue_audit_place *after,
		      unsigned limit, queue_audit_next_done *done, void *arg);
enum queue_audit_answer {
	QUEUE_AUDIT_OK,
	QUEUE_AUDIT_BEHIND,    /* claims stay closed: an event has waited for too long */
	QUEUE_AUDIT_RESTARTED, /* the stream is no longer in use: begin again */
};
/* Everything up to this place is in the log, and (good) claims may go on for 10 s. */
typedef void queue_audit_mark_done(enum queue_audit_answer answer, const struct err *err,
				   void *arg);
void queue_audit_mark(struct queue *q, const struct uuid *boot, const struct uuid *stream,
		      const struct queue_audit_place *acked, bool good,
		      queue_audit_mark_done *done, void *arg);

/* ---- the anchor of the audit log (queue_anchor.c; schema/0020_audit_anchor.sql) -- */

/* A checkpoint; borrowed for the call. */
struct queue_anchor {
	const char *log, *root, *line;
	uint64_t size;
};
/* was_put false and no error: the newest row of this log has more records, or others of as many. */
typedef void queue_anchor_done(bool was_put, uint64_t newest, const struct err *err,
			       void *arg);
void queue_anchor_put(struct queue *q, const struct queue_anchor *a,
		      queue_anchor_done *done, void *arg);

/* Counters, as JSON text for status and metrics. */
void queue_health(struct queue *q, queue_text_done *done, void *arg);
/* The queue's invariants (docs/ARCHITECTURE.md) and how many are broken, as JSON text: each job,
 * attempt and event is looked at, so it may take seconds. */
void queue_check(struct queue *q, queue_text_done *done, void *arg);

#endif
