/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the tomb.
 * Inside the pool of database connections: pgconn.c, its pool and calls; pgconn_wire.c, one
 * connection; pgconn_result.c, what the server answers.
 */
#ifndef LYCH_COMMON_PG_PGCONN_PRIV_H
#define LYCH_COMMON_PG_PGCONN_PRIV_H

#include "common/pg/pgconn.h"
#include <libpq-fe.h>

#define CONNS_MAX 8
#define CALLS_MAX 4096
#define YIELDING_MAX 3840 /* of these */
#define PREPARED_MAX 64
#define PARAMS_MAX 16

/* A call that has not ended. */
struct pg_request {
	/* in a list of pg's while it is in no connection */
	struct pg_request *prev, *next;
	struct pg *pg;
	struct pg_conn *conn;
	const struct pg_stmt *stmt;
	char *values[PARAMS_MAX];
	int lengths[PARAMS_MAX], formats[PARAMS_MAX];
	bool resend, yields, refused;
	unsigned party;
	struct loop_timer *timer; /* the deadline */
	pg_done *done;
	void *arg;
};

struct pg_requests {
	struct pg_request *head, *tail;
};

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_LISTENING, CONN_READY, CONN_BUSY };

struct pg_conn {
	struct pg *pg;
	unsigned index;
	enum conn_state state;
	PGconn *c;
	struct loop_io *io;
	struct loop_timer *timer; /* back-off, or the limit of one connection attempt */
	unsigned failures;
	const struct pg_stmt *prepared[PREPARED_MAX];
	size_t n_prepared;
	bool preparing;
	struct pg_request *call;
	PGresult *res; /* of the running command: the first error, else the last result */
};

struct pg {
	struct loop *loop;
	char *socket_dir, *dbname, *user, *password, *application_name, *listen_sql;
	void (*on_notify)(void *arg);
	void (*on_state)(bool up, const struct err *why, void *arg);
	void *arg;
	struct pg_conn conns[CONNS_MAX];
	unsigned n_conns;
	struct pg_requests waiting, refused, yielding[PG_PARTIES];
	unsigned next_party; /* whose turn it is */
	size_t n_calls;
	bool up, told, freed;
	unsigned depth;
};

/* A bytea in binary, kept as long as its result. */
struct pg_decoded {
	struct pg_decoded *next;
	size_t row, col, len;
	unsigned char *data;
};

struct pg_result {
	PGresult *res;
	struct pg_decoded **decoded; /* grows behind a const result */
};

/* ---- pgconn.c */
/* Around what may call back: the pool stays until the last one left. false: it is gone. */
void pg_enter(struct pg *pg);
bool pg_leave(struct pg *pg);
/* Give waiting calls to connections that are ready. */
void pg_dispatch(struct pg *pg);
void pg_tell_state(struct pg *pg, bool up, const struct err *why);
/* Back to the head of those that wait, to be sent again. */
void pg_request_again(struct pg_request *call);
/* The one place where done is called. The call is in no list and no connection. */
void pg_request_end(struct pg_request *call, PGresult *res, const struct err *err);

/* ---- pgconn_wire.c */
/* The connection's call, prepared first when it must be. false: the connection is no good. */
bool pgconn_send(struct pg_conn *cn);
/* Close, settle what was on the wire, try again after a pause. */
void pgconn_lost(struct pg_conn *cn, const struct err *why);
void pgconn_close(struct pg_conn *cn);
/* Begin to connect, or give an attempt up. */
void pgconn_timer(void *arg);

/* ---- pgconn_result.c */
bool pg_is_error(const PGresult *res);
/* The server ends this connection. */
bool pg_is_loss(const PGresult *res);
/* It rolled a transaction back by itself. */
bool pg_is_rollback(const PGresult *res);
void pg_server_err(const PGresult *res, struct err *err);
/* libpq's own message, as RUN_DB. */
void pg_line(struct err *err, const char *what, const char *msg);
void pg_decoded_free(struct pg_decoded *d);

#endif
