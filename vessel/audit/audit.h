/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The vessel's side of the audit log: ships the outbox in order, logs what is in no
 * database (starts, refused peers), and says whether the log is written. It is the only
 * one that opens claims, and lets them close by themselves when it is not sure.
 */
#ifndef LYCH_VESSEL_AUDIT_AUDIT_H
#define LYCH_VESSEL_AUDIT_AUDIT_H

#include "common/clock.h"
#include "common/id.h"
#include "common/jsonw.h"
#include "common/net/loop.h"
#include "vessel/db/queue.h"

struct audit;

struct audit_config {
	struct loop *loop;
	const struct clock_ops *clock;
	struct queue *queue;
	const struct uuid *boot; /* of this process; borrowed, as all of these are */
	const char *socket_dir;
	/* An attempt of a job, or its containment, has ended: this is on its way to the log, once or,
	 * to the vessel after one that was killed, again. May be NULL. */
	void (*on_end)(job_id_t job, int64_t epoch, void *arg);
	void *arg;
};
MUST_CHECK int audit_new(const struct audit_config *cfg, struct audit **ret,
			 struct err *err);
void audit_free(struct audit *a);
/* The fencing row is ours: shipping may begin. */
void audit_owned(struct audit *a);
/* Something changed in the database. */
void audit_hint(struct audit *a);
/* A peer was refused; told at most once a second, with how many there were. */
void audit_peer_refused(struct audit *a, const char *listener);
/* The last event; sent at once, nobody waits for the answer. */
void audit_stopping(struct audit *a);
/*
 * Write ahead: done(NULL) once this event is on the log's disk, done(err) when it cannot
 * be known to be (ERRID_AUDIT_AWAY, ...). From the loop, once, unless it was forgotten.
 * NULL: there is no log to write to now, *err says why; done is not called.
 */
struct audit_wait;
struct audit_event;
struct audit_wait *audit_before(struct audit *a, const struct audit_event *e,
				queue_done *done, void *arg, struct err *err);
void audit_forget(struct audit_wait *w);
/* The same without waiting: outcomes, refusals, signals. */
void audit_note(struct audit *a, const struct audit_event *e);
/* {"ok":..,...} for status. */
void audit_write_status(const struct audit *a, struct jsonw *w);
struct audit_figures {
	bool is_good;
	uint64_t events, batches, duplicates, acked, waiting;
};
struct audit_figures audit_figures(const struct audit *a);

#endif
