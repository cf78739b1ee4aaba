/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The vessel's work socket as the tomb sees it. A call is repeated, with backoff, until
 * the vessel gives a definite answer or the call is cancelled: every route is idempotent,
 * and a vessel that is away is waited for.
 */
#ifndef LYCH_TOMB_QUEUE_WORK_H
#define LYCH_TOMB_QUEUE_WORK_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/httpc.h"
#include "common/net/loop.h"
#include "tomb/queue/queue.h"
#include "tomb/queue/vessel_peer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct work;
struct work_call;

struct work_reply {
	int status; /* 200.., 4xx */
	const char *body;
	size_t len;
	bool repeated; /* an earlier try of this call may have been carried out */
};
typedef void work_done(const struct work_reply *reply, void *arg);

/* The peer must outlive it. */
MUST_CHECK int work_new(struct loop *l, const struct vessel_peer *peer,
			unsigned max_connections, struct work **ret, struct err *err);
void work_free(struct work *w); /* all calls must be over or cancelled */

struct work_request {
	enum http_method method;
	const char *target;
	const void *body;
	size_t len;
	size_t reply_max;
};
/* The body is copied. done is called exactly once unless the call is cancelled. */
struct work_call *work_send(struct work *w, const struct lease_key *key,
			    const struct work_request *rq, work_done *done, void *arg);
void work_cancel(struct work_call *call); /* NULL is fine */

/* The vessel said that this attempt is not ours (any more). */
bool work_is_lost(int status);
/* Then: ERRID_RUN_REVOKED when the job was contained, else ERRID_RUN_STALE. */
int work_lost_err(const struct work_reply *r, const char *what, struct err *err);
/* A number of a JSON reply: "size", "received", "expected". */
MUST_CHECK int work_reply_u64(const struct work_reply *r, const char *key, uint64_t *ret,
			      struct err *err);
/* A refusal as an error: "LYCH-STORE-004: title: detail". */
int work_reply_err(const struct work_reply *r, const char *what, struct err *err);

#endif
