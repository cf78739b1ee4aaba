/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the tomb.
 * One connection of the pool: connecting, preparing and sending, what comes back.
 */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/net/dial.h"
#include "common/pg/pgconn_priv.h"
#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_USEC (5 * USEC_PER_SEC)
#define BACKOFF_MIN_USEC (50 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (2 * USEC_PER_SEC)

static void conn_start(struct pg_conn *cn);

/* ---- a connection's commands -------------------------------------------------- */

static bool is_prepared(const struct pg_conn *cn, const struct pg_stmt *stmt)
{
	for (size_t i = 0; i < cn->n_prepared; i++)
		if (cn->prepared[i] == stmt)
			return true;
	return false;
}

/* Send what libpq holds back; watch for writability while it holds some. */
static bool conn_flush(struct pg_conn *cn)
{
	int r = PQflush(cn->c);

	if (r < 0)
		return false;
	loop_io_set(cn->io, r > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
	return true;
}

/* false: the connection is no good. */
bool pgconn_send(struct pg_conn *cn)
{
	struct pg_request *call = cn->call;
	const struct pg_stmt *stmt = call->stmt;

	cn->state = CONN_BUSY;
	cn->preparing = !is_prepared(cn, stmt);
	if (cn->preparing) {
		assert(cn->n_prepared < PREPARED_MAX);
		if (!PQsendPrepare(cn->c, stmt->name, stmt->sql, stmt->n_params, NULL))
			return false;
	} else if (!PQsendQueryPrepared(cn->c, stmt->name, stmt->n_params,
					(const char *const *)call->values, call->lengths,
					call->formats, 0)) {
		return false;
	}
	return conn_flush(cn);
}

static void conn_ready(struct pg_conn *cn)
{
	struct pg *pg = cn->pg;
	bool fresh = cn->state != CONN_BUSY;

	cn->state = CONN_READY;
	cn->failures = 0;
	if (!fresh)
		return;
	pg_tell_state(pg, true, NULL);
	if (!pg->freed && cn->index == 0 && pg->listen_sql && pg->on_notify)
		pg->on_notify(pg->arg);
}

/* The running command is complete; its result is ours. false: the connection is no good.
 */
static bool command_done(struct pg_conn *cn)
{
	struct pg_request *call = cn->call;
	PGresult *res = cn->res;
	struct err err = ERR_INIT;
	bool failed = !res || pg_is_error(res);

	cn->res = NULL;
	if (!res || (failed && pg_is_loss(res))) {
		PQclear(res);
		return false;
	}
	if (cn->state == CONN_LISTENING) {
		PQclear(res);
		if (failed)
			return false;
		loop_timer_disarm(cn->timer);
		conn_ready(cn);
		return true;
	}
	if (cn->preparing && !failed) {
		PQclear(res);
		cn->prepared[cn->n_prepared++] = call->stmt;
		return pgconn_send(cn);
	}
	cn->call = NULL;
	call->conn = NULL;
	conn_ready(cn);
	if (failed && call->resend && pg_is_rollback(res)) {
		PQclear(res);
		pg_request_again(call);
		return true;
	}
	if (failed)
		pg_server_err(res, &err);
	pg_request_end(call, res, failed ? &err : NULL);
	PQclear(res);
	return true;
}

static void tell_notifies(struct pg_conn *cn)
{
	struct pg *pg = cn->pg;
	bool notified = false;
	PGnotify *n;

	while ((n = PQnotifies(cn->c)) != NULL) {
		notified = true;
		PQfreemem(n);
	}
	if (notified && pg->on_notify)
		pg->on_notify(pg->arg);
}

/* Everything that has arrived. false: the connection is no good. */
static bool conn_read(struct pg_conn *cn)
{
	struct pg *pg = cn->pg;

	if (!PQconsumeInput(cn->c))
		return false;
	tell_notifies(cn);
	while (!pg->freed && (cn->state == CONN_BUSY || cn->state == CONN_LISTENING) &&
	       !PQisBusy(cn->c)) {
		PGresult *r = PQgetResult(cn->c);

		if (!r) {
			if (!command_done(cn))
				return false;
		} else if (cn->res && pg_is_error(cn->res)) {
			PQclear(r);
		} else {
			PQclear(cn->res);
			cn->res = r;
		}
	}
	/* those that lay behind a result were parsed with it: no byte will announce them
	 */
	if (!pg->freed && cn->c)
		tell_notifies(cn);
	return true;
}

static void conn_io(int fd UNUSED, unsigned what, void *arg)
{
	struct pg_conn *cn = arg;
	struct pg *pg = cn->pg;
	struct err err = ERR_INIT;
	bool ok = true;

	pg_enter(pg);
	if (what & LOOP_WRITE)
		ok = conn_flush(cn);
	if (ok && (what & LOOP_READ))
		ok = conn_read(cn);
	if (!pg->freed && cn->c) {
		/* an idle connection that the server closed shows up here as well */
		if (!ok || PQstatus(cn->c) == CONNECTION_BAD) {
			pg_line(&err, "connection lost", PQerrorMessage(cn->c));
			pgconn_lost(cn, &err);
		}
	}
	if (!pg->freed)
		pg_dispatch(pg);
	(void)pg_leave(pg);
}

/* ---- connecting ----------------------------------------------------------------- */

void pgconn_close(struct pg_conn *cn)
{
	loop_io_free(cn->io);
	cn->io = NULL;
	PQclear(cn->res);
	cn->res = NULL;
	PQfinish(cn->c);
	cn->c = NULL;
	cn->n_prepared = 0;
	cn->state = CONN_DOWN;
}

static usec_t backoff_usec(unsigned failures)
{
	usec_t base = BACKOFF_MIN_USEC << (failures < 6 ? failures : 6);
	uint32_t r;

	if (base > BACKOFF_MAX_USEC)
		base = BACKOFF_MAX_USEC;
	random_bytes(&r, sizeof(r));
	return base / 2 + r % base;
}

void pgconn_lost(struct pg_conn *cn, const struct err *why)
{
	struct pg *pg = cn->pg;
	struct pg_request *call = cn->call;
	bool any = false;

	if (pg->freed)
		return;
	pg_enter(pg);
	pgconn_close(cn);
	loop_timer_arm(cn->timer, backoff_usec(cn->failures++));
	cn->call = NULL;
	if (call) {
		call->conn = NULL;
		if (call->resend)
			pg_request_again(call);
		else
			pg_request_end(call, NULL, why);
	}
	for (unsigned i = 0; i < pg->n_conns; i++)
		any |= pg->conns[i].state >= CONN_READY;
	if (!any)
		pg_tell_state(pg, false, why);
	(void)pg_leave(pg);
}

static void connect_io(int fd, unsigned what, void *arg);

/* libpq may close and reopen its socket while it connects: watch it anew each time. */
static void connect_step(struct pg_conn *cn)
{
	struct pg *pg = cn->pg;
	struct err err = ERR_INIT;

	loop_io_free(cn->io);
	cn->io = NULL;
	PostgresPollingStatusType s = PQconnectPoll(cn->c);
	if (s == PGRES_POLLING_READING || s == PGRES_POLLING_WRITING) {
		cn->io = loop_io_new(pg->loop, PQsocket(cn->c),
				     s == PGRES_POLLING_READING ? LOOP_READ : LOOP_WRITE,
				     connect_io, cn);
		return;
	}
	if (s != PGRES_POLLING_OK || PQsetnonblocking(cn->c, 1) < 0) {
		pg_line(&err, "connect", PQerrorMessage(cn->c));
		pgconn_lost(cn, &err);
		return;
	}
	cn->io = loop_io_new(pg->loop, PQsocket(cn->c), LOOP_READ, conn_io, cn);
	if (cn->index == 0 && pg->listen_sql) {
		cn->state = CONN_LISTENING;
		if (!PQsendQuery(cn->c, pg->listen_sql) || !conn_flush(cn)) {
			pg_line(&err, "listen", PQerrorMessage(cn->c));
			pgconn_lost(cn, &err);
		}
		return;
	}
	loop_timer_disarm(cn->timer);
	conn_ready(cn);
}

static void connect_io(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	struct pg_conn *cn = arg;
	struct pg *pg = cn->pg;

	pg_enter(pg);
	connect_step(cn);
	if (!pg->freed)
		pg_dispatch(pg);
	(void)pg_leave(pg);
}

static void drop_notice(void *arg UNUSED, const PGresult *res UNUSED)
{
}

/* libpq has made a socket and believes that it is being connected: the filter has answered
 * connect() with EINPROGRESS. It goes on with the descriptor of the starter, in that place. */
static int put_dialed(int at, struct err *err)
{
	cleanup_close int fd = dial(DIAL_DATABASE, err);

	if (fd < 0)
		return -1;
	return dup3(fd, at, O_CLOEXEC) < 0 ? err_sys_id(err, ERRID_RUN_DB, "dup3") : 0;
}

static void conn_start(struct pg_conn *cn)
{
	struct pg *pg = cn->pg;
	struct err err = ERR_INIT;
	const char *const keys[] = {"host",	  "port",
				    "user",	  "password",
				    "dbname",	  "application_name",
				    "gssencmode", "client_encoding",
				    "options",	  NULL};
	const char *const values[] = {pg->socket_dir,
				      "5432",
				      pg->user,
				      pg->password,
				      pg->dbname,
				      pg->application_name,
				      "disable",
				      "UTF8",
				      "-c synchronous_commit=on -c bytea_output=hex",
				      NULL};

	cn->c = PQconnectStartParams(keys, values, 0);
	cn->state = CONN_CONNECTING;
	loop_timer_arm(cn->timer, CONNECT_TIMEOUT_USEC);
	if (!cn->c || PQstatus(cn->c) == CONNECTION_BAD) {
		pg_line(&err, "connect", cn->c ? PQerrorMessage(cn->c) : "no memory");
		pgconn_lost(cn, &err);
		return;
	}
	if (dial_is_on() && put_dialed(PQsocket(cn->c), &err) < 0) {
		pgconn_lost(cn, &err);
		return;
	}
	(void)PQsetNoticeReceiver(cn->c, drop_notice, NULL);
	cn->io = loop_io_new(pg->loop, PQsocket(cn->c), LOOP_WRITE, connect_io, cn);
}

void pgconn_timer(void *arg)
{
	struct pg_conn *cn = arg;
	struct pg *pg = cn->pg;
	struct err err = ERR_INIT;

	pg_enter(pg);
	if (cn->state == CONN_DOWN) {
		conn_start(cn);
	} else if (cn->state < CONN_READY) {
		(void)err_set_id(&err, ERRID_RUN_DB, "connect: no answer in time");
		pgconn_lost(cn, &err);
	}
	(void)pg_leave(pg);
}
