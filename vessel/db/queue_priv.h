/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Shared by queue.c, queue_jobs.c, queue_audit.c and budget.c.
 */
#ifndef LYCH_VESSEL_DB_QUEUE_PRIV_H
#define LYCH_VESSEL_DB_QUEUE_PRIV_H

#include "common/buf.h"
#include "common/pg/pgconn.h"
#include "common/str.h"
#include "vessel/db/queue.h"
#include <assert.h>

#define QUEUE_CALL_USEC (10 * USEC_PER_SEC)
#define QUEUE_CHECK_USEC (60 * USEC_PER_SEC)
#define QUEUE_READ_USEC (3 * USEC_PER_SEC) /* a person waits for these */

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

static inline struct pg_param text_param(const char *s)
{
	return (struct pg_param){.data = s};
}

/* Numbers as a parameter of type bigint[]: its text, into b, which is initialised here. */
static inline void numbers_init(struct buf *b, const int64_t *v, size_t n)
{
	buf_init(b, n * 21 + 3);
	buf_addc(b, '{');
	for (size_t i = 0; i < n; i++)
		buf_addf(b, "%s%lld", i ? "," : "", (long long)v[i]);
	buf_addc(b, '}');
	assert(buf_ok(b));
}

/* What the database says of a lease that does not stand ("stale", "revoked", "denied"), as an
 * error; false, and err untouched, for any other answer. */
bool queue_set_refused(const char *answer, struct err *err);

#endif
