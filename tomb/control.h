/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The control socket: one JSON object a line, answered in order. Only our own uid is
 * served. Nothing here grants anything: startStage means "claim now" and cancelStage
 * "renew the leases now"; who may run or stop what is the queue's word alone.
 */
#ifndef LYCH_TOMB_CONTROL_H
#define LYCH_TOMB_CONTROL_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"

struct control;

struct control_ops {
	void (*health)(struct buf *json, void *arg); /* one JSON object */
	void (*claim_now)(void *arg);
	/* false: no such job here */
	bool (*check_now)(job_id_t job, void *arg);
	void *arg;
};

/* Binds and listens; a stale socket is removed only if nothing answers on it. */
MUST_CHECK int control_new(struct loop *l, const char *path,
			   const struct control_ops *ops, struct control **ret,
			   struct err *err);
void control_free(struct control *c); /* unlinks the socket */

#endif
