/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the tomb.
 * Asynchronous libpq on the loop: a small pool of connections to one server
 * over its unix socket, prepared statements by name, an absolute deadline per
 * call, reconnection with jittered backoff, LISTEN. What jobs ask for yields: a
 * person's call is answered while hundreds of theirs wait.
 *
 * Any error after a call was sent is an unknown outcome, so every call here is
 * idempotent by construction (claim_id, lease token, request_id): with
 * PG_RESEND the same call is sent again after a reconnect until its deadline.
 * Users: vessel/db/queue.c, door.c, watchdog.c and tomb/queue/queue_pg.c only (check-layers).
 */
#ifndef LYCH_COMMON_PG_PGCONN_H
#define LYCH_COMMON_PG_PGCONN_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include <stdbool.h>
#include <stddef.h>

struct pg;
struct pg_result;

struct pg_config {
	const char *socket_dir;
	const char *dbname, *user;
	const char *password; /* copied and wiped at pg_free */
	const char *application_name;
	unsigned connections;	    /* 1..8 */
	const char *listen_channel; /* NULL: none; LISTEN is renewed after a reconnect */
	void (*on_notify)(void *arg); /* also after each reconnect: something may have
					 been missed */
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
};

struct pg_stmt {
	const char *name; /* unique, a constant */
	const char *sql;  /* a constant with $1.. */
	int n_params;
};

/* How a call is made; 0: sent once, in the order of coming. */
enum pg_how {
	/* The same call is sent again after a reconnect, until its deadline. */
	PG_RESEND = 1,
	/* Made at the pace of jobs, hundreds at once: it waits behind every call that
	 * does not yield, and of two or more that are up one is never used for it. */
	PG_YIELD = 2,
};
/* Of calls that yield: whose. They take turns by that, so that nobody's hundreds are before
 * another one's next. */
#define PG_PARTIES 65u
#define PG_OF(party) ((unsigned)(party) << 8) /* below PG_PARTIES */

struct pg_param {
	const void *data; /* NULL: SQL NULL */
	size_t len;	  /* bytes when binary */
	bool binary;	  /* bytea; else NUL-terminated text */
};

/* err is NULL on success; on a server error err->msg holds "SQLSTATE: message". */
typedef void pg_done(const struct pg_result *res, const struct err *err, void *arg);

/* libpq obeys PGHOSTADDR and PGSERVICE, which would lead a password elsewhere: refused.
 */
MUST_CHECK int pg_env_check(struct err *err);
MUST_CHECK int pg_new(struct loop *l, const struct pg_config *cfg, struct pg **ret,
		      struct err *err);
/* Open calls are dropped without a callback; allowed inside a callback. */
void pg_free(struct pg *pg);
bool pg_is_up(const struct pg *pg);
/* Parameters are copied. how: of enum pg_how. done is called exactly once, from the loop. Connection loss
 * or deadline: ERRID_RUN_DB. At most 4096 calls wait, 3840 of those that yield; more is
 * ERRID_RUN_QUEUE_FULL at once. */
void pg_call(struct pg *pg, const struct pg_stmt *stmt, const struct pg_param *params,
	     usec_t timeout_usec, unsigned how, pg_done *done, void *arg);

size_t pg_rows(const struct pg_result *res);
bool pg_is_null(const struct pg_result *res, size_t row, size_t col);
const char *pg_text(const struct pg_result *res, size_t row,
		    size_t col); /* "" for NULL */
int64_t pg_i64(const struct pg_result *res, size_t row, size_t col);
bool pg_bool(const struct pg_result *res, size_t row, size_t col);
/* A bytea column (results are in text format; decoded once, owned by res). */
const void *pg_bytes(const struct pg_result *res, size_t row, size_t col,
		     size_t *ret_len);

#endif
