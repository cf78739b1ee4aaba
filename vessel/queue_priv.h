/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by queue.c and queue_audit.c. */
#ifndef LYCH_VESSEL_QUEUE_PRIV_H
#define LYCH_VESSEL_QUEUE_PRIV_H

#include "common/net/pgconn.h"
#include "vessel/queue.h"

struct queue {
	struct pg *pg;
	struct uuid boot; /* of the last beat that was sent; "" before */
	void (*on_change)(void *arg);
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
};

#endif
