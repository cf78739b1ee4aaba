/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A second opinion on what the gate let through: a local model behind the portal of kind classifier
 * (docs/adr/0053). It is asked through that portal's egress worker, like any portal, in slices
 * (text.h), about the texts of a job that it was not shown before.
 *
 * It fails closed. No answer, one that is none, one that comes too late, too much text: an
 * error, and who asked refuses. What it says only ever raises the gate's own score.
 *
 * Two of a kind never wait for each other in the loop: OPINION_AT_WORK asks are under way, one of a job
 * at most; next is the job that was served longest ago.
 *
 *	opinion_prepare(o, job, ..., parts, &ask, err): the text is ready, and may be logged
 *	opinion_begin(ask, done, arg)
 */
#ifndef LYCH_VESSEL_BROKER_OPINION_OPINION_H
#define LYCH_VESSEL_BROKER_OPINION_OPINION_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include "common/worker/reading.h"
#include "vessel/egress/egress.h"
#include "vessel/gate/parts.h"

#define OPINION_AT_WORK 4u
#define OPINION_ASKS_MAX 1024u /* under way or waiting, and of these so many bytes */
#define OPINION_ASKS_MAX_BYTES ((size_t)64 << 20)

struct opinion;
struct opinion_job; /* what of one job's texts it has judged: keyed digests, bounded */
struct opinion_ask;

struct opinion_config {
	struct loop *loop;
	const struct random_ops *rng;
	const struct conf_portal *classifier; /* borrowed */
	const struct conf_gate *gate;	      /* borrowed: thresholds, time, size */
	struct reading *note;		      /* borrowed; NULL: none */
	int (*start)(void *env, const struct egress_request *rq,
		     const struct egress_ops *ops, void *arg, struct egress_call **ret,
		     struct err *err);
	void (*cancel)(struct egress_call *call);
	void *env;
};

struct opinion *opinion_new(const struct opinion_config *cfg);
void opinion_free(struct opinion *o); /* no ask is left; NULL is fine */
const char *opinion_portal(const struct opinion *o);

struct opinion_job *opinion_job_new(void);
void opinion_job_free(struct opinion_job *j); /* none of its asks is left; NULL is fine */

/*
 * What of p the classifier has to be asked about: keys and texts, without what the portal itself
 * issued. *ret NULL: nothing of it is new. ERRID_CLASSIFIER_SIZE, ERRID_GATE_BUSY.
 */
MUST_CHECK int opinion_prepare(struct opinion *o, struct opinion_job *j, job_id_t job,
			       int64_t epoch, const struct gate_parts *p,
			       struct opinion_ask **ret, struct err *err);
size_t opinion_ask_bytes(const struct opinion_ask *a);

struct opinion_answer {
	double score;	       /* of all slices the highest */
	const struct err *err; /* ERRID_CLASSIFIER_AWAY: there is no answer */
	unsigned slices;       /* that were judged */
	usec_t took_usec;
};
/* Once, from the loop; the ask is gone by then. */
typedef void opinion_done(const struct opinion_answer *answer, void *arg);
void opinion_begin(struct opinion_ask *a, opinion_done *done, void *arg);
/* At any time before that; NULL is fine. */
void opinion_cancel(struct opinion_ask *a);

struct opinion_figures {
	uint64_t passed, refused,
		failed; /* asks: below the portal threshold, not below, none */
	bool answers;	/* the last one was answered, or none was yet */
};
struct opinion_figures opinion_figures(const struct opinion *o);

#endif
