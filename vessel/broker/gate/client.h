/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The dispatcher's side of the gate: a question to a gate worker, an answer on the
 * loop. Anonymising and the second look are done here: what the dispatcher hears is
 * final. A worker that is away, slow, or speaks nonsense is a refusal (score 1.0).
 *
 *	parts = gate_parts_new();
 *	gate_parts_add_json(parts, request);
 *	gate_client_ask(c, job, "portal:local", parts, done, arg, &ask);
 *	done: answer->verdict GATE_PASS: send the request as it is
 *	      GATE_ANONYMISE: gate_parts_write_json(answer->parts, 0, request, &w)
 *	      GATE_REFUSE: answer->err says why
 */
#ifndef LYCH_VESSEL_BROKER_GATE_CLIENT_H
#define LYCH_VESSEL_BROKER_GATE_CLIENT_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "common/worker/reading.h"
#include "vessel/broker/gate/job.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/parts.h"
#include "vessel/gate/private.h"

#define GATE_ASKS_MAX 1024 /* waiting or at work, of each worker */
/* ... and of one job: as many as it may have under way, and of these so many bytes. */
#define GATE_ASKS_JOB_MAX 64u
#define GATE_ASKS_JOB_MAX_BYTES ((size_t)64 << 20)
/* Two workers: up to so many bytes of text a question is a small one. */
#define GATE_SMALL_BYTES ((size_t)128 << 10)

struct gate_client;
struct gate_ask;

struct gate_client_config {
	struct loop *loop;
	double portal_threshold, forbidden_threshold;
	bool refuses[GATE_MEDIUM_MAX_];
	usec_t timeout_usec; /* 0: 10 s, of one question; and a second for each 64 KiB, up to 50 */
	void (*on_away)(const struct err *why,
			void *arg); /* the worker went, for the log;
							      may be NULL */
	/* It died while it read this, which had been given to it. May be NULL. */
	void (*on_died)(const char *name, const struct reading_note *note, void *arg);
	struct reading *note; /* of this process; NULL: none */
	void *arg;
};

struct gate_answer {
	enum gate_verdict verdict; /* GATE_ANONYMISE: it was done, and fell below */
	double score;		   /* of the request as it came */
	double score_after;	   /* of what may go */
	const struct err *err;	   /* GATE_REFUSE: ERRID_GATE_PRIVATE, GATE_AWAY, ... */
	bool has_canary;	   /* a signal for containment, unless it was replaced */
	bool is_canary_replaced; /* it stood in a text for a portal, as it is; none is left */
	bool has_planted,
		is_planted_replaced;	     /* the same of what was planted in the job */
	const struct gate_finding *findings; /* of the request as it came */
	size_t n_findings;
	const struct gate_parts *parts; /* rewritten; borrowed during the callback */
};
typedef void gate_ask_done(const struct gate_answer *a, void *arg);

struct gate_client *gate_client_new(const struct gate_client_config *cfg);
void gate_client_free(struct gate_client *c); /* open questions end without an answer */
/* The socket to a (new) worker: egress_events.on_gate. Takes fd. note: what the worker
 * reads, NULL: not known; the last one is dead. */
void gate_client_attach(struct gate_client *c, enum gate_lanes which, int fd,
			struct reading *note);
bool gate_client_is_up(const struct gate_client *c);
/* What the user registered: copied to the worker now, and to each later one. */
void gate_client_set_private(struct gate_client *c, const struct gate_private *p);

/*
 * Questions take turns by what they cost, the bytes: first between the person and each
 * tomb, then between the jobs of a tomb (turns.h). So nobody waits for more than the
 * one at the worker and what others of equal share have asked for. Small questions and
 * large ones have a worker each. What a job asks beside a large one waits with that, and
 * where small ones wait when the large one comes, they go there with it: a large one never
 * gets before the small ones of others.
 *
 * Judges parts (taken, freed by the client) on their way to `destination`. job may be
 * NULL: then nothing is rewritten or remembered (`lych gate scan`) and the verdict is the
 * plain one. ERRID_GATE_AWAY at once when there is no worker; ERRID_GATE_BUSY when too many
 * wait, of all or of this job. done comes from the loop, once, unless cancelled.
 */
MUST_CHECK int gate_client_ask(struct gate_client *c, struct gate_job *job,
			       const char *destination, struct gate_parts *parts,
			       gate_ask_done *done, void *arg, struct gate_ask **ret,
			       struct err *err);
void gate_client_cancel(struct gate_ask *a);

struct gate_client_figures {
	uint64_t passed, anonymised, refused, failed, bytes, findings[GATE_FAMILY_MAX_];
	uint64_t scan_usec; /* of all scans together */
	unsigned restarts;
};
struct gate_client_figures gate_client_figures(const struct gate_client *c);

#endif
