/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the gate remembers of one job, in the vessel's memory and nowhere else: which
 * placeholder stands for which text, the end of what went to each destination, how much
 * privacy leaked in small amounts, its canaries, and what portals issued to it (issued.h).
 *
 * Replies are put right here: a stream is restored as it comes, a placeholder that is cut
 * by the end of a piece waits for the next one.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_JOB_H
#define LYCH_VESSEL_BROKER_GATE_JOB_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/id.h"
#include "common/json/json.h"
#include "vessel/broker/gate/turns.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/parts.h"

#define GATE_DESTINATIONS_MAX 16
#define GATE_COUNTED_MAX 512 /* texts that add to the bucket once */
#define GATE_BUCKET_HALF_LIFE_USEC (600 * USEC_PER_SEC)

struct gate_job;

struct gate_job *gate_job_new(const struct clock_ops *clock);
void gate_job_free(struct gate_job *j); /* wipes */
static inline void gate_job_free_p(struct gate_job **j)
{
	gate_job_free(*j);
}
#define cleanup_gate_job __attribute__((cleanup(gate_job_free_p)))

/*
 * Whose turn it is at the worker. Who takes part: the person (party 0), each tomb, and within a
 * tomb each of its jobs.
 */
#define GATE_PARTIES 65
enum gate_lanes { GATE_SMALL, GATE_LARGE, GATE_LANES_MAX_ }; /* client.h */
struct gate_turn {
	unsigned party; /* below GATE_PARTIES */
	job_id_t job;	/* for the note of what is read (reading.h); 0: none */
	int64_t epoch;
	/* The client's: */
	struct turns_account at[GATE_LANES_MAX_]; /* bytes, of this job at each worker */
	size_t bytes;				  /* of its questions that wait */
	bool is_large;				  /* which worker the next waits for */
	bool is_read; /* a worker has a question of it: no other one gets the next */
};
static inline unsigned gate_turn_waiting(const struct gate_turn *t)
{
	return t->at[GATE_SMALL].waiting + t->at[GATE_LARGE].waiting;
}
struct gate_turn *gate_job_turn(struct gate_job *j);

/* A value that was planted in the job: found anywhere, the score is 1.0.
 * ERRID_GATE_CANARY: too short, too long, too many. */
MUST_CHECK int gate_job_add_canary(struct gate_job *j, const void *value, size_t len,
				   struct err *err);
/* The same, as GATE_PLANTED. */
MUST_CHECK int gate_job_add_planted(struct gate_job *j, const void *value, size_t len,
				    struct err *err);

/* The first of them that stands in a text of ASCII, with letters of either case; NULL: none does. */
const struct gate_canary *gate_job_canary_in(const struct gate_job *j, const char *text);

/* What a scan needs of the job, borrowed until the next change. */
void gate_job_fill(struct gate_job *j, const char *destination, struct gate_input *in);
/* The parts went out, of which that is the report: their ends (gate_judged) and what they add to the
 * bucket are remembered. */
void gate_job_sent(struct gate_job *j, const char *destination,
		   const struct gate_parts *p, const struct gate_report *r);

/* What a portal said to the job, a reply or an event of one, before anything in it was put
 * right: its ids and opaque fields are known again. */
void gate_job_issued(struct gate_job *j, const char *portal, const struct json *said);
/* A signature that it said in several events, whole. */
void gate_job_issued_signature(struct gate_job *j, const char *portal, const char *text);
/* Of p's parts, which from `first` on are the request's, those that this portal issued become
 * GATE_PART_ECHO. */
void gate_job_mark_issued(struct gate_job *j, const char *portal,
			  const struct json *request, struct gate_parts *p, size_t first);

/*
 * Puts a placeholder for each finding, the same one for the same text.
 * ERRID_GATE_MAP: the job's map is full, or a finding cannot be rewritten.
 */
MUST_CHECK int gate_job_anonymise(struct gate_job *j, const struct gate_finding *f,
				  size_t n, struct gate_parts *p, struct err *err);

/* True when nothing was ever replaced: replies need not be looked at. */
bool gate_job_is_clean(const struct gate_job *j);

/* How the reply's text is written: as it is; inside a JSON document (placeholders with
 * < and > or as \u003c and \u003e, originals escaped); inside a JSON document that is
 * itself inside a string, as tool arguments are. */
enum gate_form { GATE_FORM_TEXT, GATE_FORM_JSON, GATE_FORM_JSON_IN_JSON };

struct gate_restore;
struct gate_restore *gate_restore_new(const struct gate_job *j, enum gate_form form);
/* Appends what is certain; keeps at most one placeholder's length back. */
void gate_restore_feed(struct gate_restore *r, const void *data, size_t len,
		       struct buf *out);
void gate_restore_end(struct gate_restore *r, struct buf *out);
size_t gate_restore_held(const struct gate_restore *r);
void gate_restore_free(struct gate_restore *r);

#endif
