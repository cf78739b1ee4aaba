/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The queue's second door: tombs that hold no database login claim through the vessel.
 *
 * For each tomb that it was told of the vessel keeps database connections that are logged in with
 * that tomb's own role, and passes its calls on to the same five functions of tomb_api.
 * So session_user is the tomb here as there, the vessel's own role gains no power over
 * leases, and no SQL knows which door was taken (docs/adr/0018).
 */
#ifndef LYCH_VESSEL_DB_DOOR_H
#define LYCH_VESSEL_DB_DOOR_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "vessel/db/door_wire.h"
#include <stdbool.h>
#include <stddef.h>

#define DOOR_TOMBS_MAX 64

struct door;
struct door_tomb;

struct door_config {
	const char *socket_dir; /* PostgreSQL's; outlives it */
	const char *const *tombs;
	size_t n_tombs; /* 0: nobody claims through the vessel */
	/* A tomb's connections came up or were lost. */
	void (*on_state)(struct door_tomb *t, bool up, const struct err *why, void *arg);
	void *arg;
};

MUST_CHECK int door_new(struct loop *l, const struct door_config *cfg, struct door **ret,
			struct err *err);
/* With this password (copied, wiped at free) from now on; sessions with another end. */
MUST_CHECK int door_log_in(struct door *d, const char *tomb, const char *password,
			   struct err *err);
void door_free(struct door *d); /* open calls end with ERRID_RUN_DB */
/* NULL: no such tomb is registered. */
struct door_tomb *door_find(const struct door *d, const char *name);
const char *door_tomb_name(const struct door_tomb *t);
bool door_tomb_is_up(const struct door_tomb *t); /* false before it has logged in */

struct door_claimed {
	int64_t job, epoch;
	const char *token;
	int attempt;
	const void *spec;
	size_t spec_len;
};
/* Each `done` is called exactly once, also before the call is back. An err: the outcome is
 * unknown. */
typedef void door_claim_done(const struct door_claimed *jobs, size_t n,
			     const struct err *err, void *arg);
void door_claim(struct door_tomb *t, const struct door_claim *rq, door_claim_done *done,
		void *arg);

struct door_word {
	int64_t job;
	const char *status; /* "ok", "cancel", "lost", "revoked" */
};
typedef void door_extend_done(const struct door_word *words, size_t n,
			      const struct err *err, void *arg);
void door_extend(struct door_tomb *t, const struct door_extend *rq,
		 door_extend_done *done, void *arg);

typedef void door_end_done(const char *answer, const struct err *err, void *arg);
void door_ack(struct door_tomb *t, const struct queue_lease *l, const void *result,
	      size_t len, door_end_done *done, void *arg);
struct door_fail {
	bool retry;
	enum fail_class why;
	const void *result; /* NULL: none */
	size_t len;
};
void door_fail(struct door_tomb *t, const struct queue_lease *l,
	       const struct door_fail *f, door_end_done *done, void *arg);
void door_release(struct door_tomb *t, const struct queue_lease *l, bool died,
		  door_end_done *done, void *arg);

#endif
