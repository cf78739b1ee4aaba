/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The door straight to PostgreSQL: a login that may execute five functions.
 */
#ifndef LYCH_TOMB_QUEUE_QUEUE_PG_H
#define LYCH_TOMB_QUEUE_QUEUE_PG_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"
#include "tomb/queue/queue.h"
#include <stdbool.h>

struct queue_pg;

struct queue_pg_config {
	const char *socket_dir;
	const char *role;     /* "tomb_1" */
	const char *password; /* copied, wiped at free */
	const char *queue;    /* "main" */
	struct uuid boot;     /* of this process */
	void (*on_hint)(void *arg);
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
};

/* *ret_queue is valid until queue_pg_free(). */
MUST_CHECK int queue_pg_new(struct loop *l, const struct queue_pg_config *cfg,
			    struct queue_pg **ret, struct queue *ret_queue,
			    struct err *err);
/* Calls under way are dropped without a callback. */
void queue_pg_free(struct queue_pg *q);

#endif
