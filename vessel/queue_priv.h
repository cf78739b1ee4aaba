/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by queue.c, queue_audit.c and budget.c. */
#ifndef LYCH_VESSEL_QUEUE_PRIV_H
#define LYCH_VESSEL_QUEUE_PRIV_H

#include "common/net/pgconn.h"
#include "common/str.h"
#include "vessel/queue.h"
#include <assert.h>

struct queue {
	struct pg *pg;
	struct uuid boot; /* of the last beat that was sent; "" before */
	void (*on_change)(void *arg);
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
};

/* A number as a parameter: its text. */
struct number {
	char s[24];
};

static inline struct number number(int64_t v)
{
	struct number n = {0};
	int r = str_fmt(n.s, sizeof(n.s), "%lld", (long long)v);

	assert(r == 0);
	return n;
}

#endif
