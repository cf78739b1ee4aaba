/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation
 *
 * A pool is a first-in-first-out queue of calls and up to eight connections. A
 * connection that is READY takes the first call; if its statement is not prepared
 * there yet, PREPARE goes first. One call at a time is on a connection.
 *
 * A connection is lost when the socket fails, when the server says so (57P01, 57P02,
 * 57P03, class 08), when a call's deadline passes while it is on the wire, or when
 * connecting takes too long. What was on the wire has an unknown outcome: with
 * `resend` it goes back to the head of the queue, else its callback gets RUN_DB.
 * A transaction that the server rolled back by itself (40001, 40P01) is sent again.
 *
 * Callbacks may make new calls and may free the pool: `depth` counts the frames in
 * which the pool must stay, the last one frees it.
 */
#include "common/net/pgconn.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <libpq-fe.h>

#define CONNS_MAX 8
#define CALLS_MAX 4096
#define PREPARED_MAX 64
#define PARAMS_MAX 16
#define CONNECT_TIMEOUT_USEC (5 * USEC_PER_SEC)
#define BACKOFF_MIN_USEC (50 * USEC_PER_MSEC)
#define BACKOFF_MAX_USEC (2 * USEC_PER_SEC)

struct call {
	struct call *prev, *next; /* in a list of pg's while it is in no connection */
	struct pg *pg;
	struct pg_conn *conn;
	const struct pg_stmt *stmt;
	char *values[PARAMS_MAX];
	int lengths[PARAMS_MAX], formats[PARAMS_MAX];
	bool resend, refused;
	struct loop_timer *timer; /* the deadline */
	pg_done *done;
	void *arg;
};

struct call_list {
	struct call *head, *tail;
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
	struct call *call;
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
	struct call_list waiting, refused;
	size_t n_calls;
	bool up, told, freed;
	unsigned depth;
};

struct decoded {
	struct decoded *next;
	size_t row, col, len;
	unsigned char *data;
};

struct pg_result {
	PGresult *res;
	struct decoded **decoded; /* grows behind a const result */
};

static void conn_start(struct pg_conn *cn);
static void conn_lost(struct pg_conn *cn, const struct err *why);
static void dispatch(struct pg *pg);

/* ---- the pool's life -------------------------------------------------------- */

static void pg_enter(struct pg *pg)
{
	pg->depth++;
}

static void pg_destroy(struct pg *pg)
{
	free(pg->socket_dir);
	free(pg->dbname);
	free(pg->user);
	explicit_bzero(pg->password, strlen(pg->password));
	free(pg->password);
	free(pg->application_name);
	free(pg->listen_sql);
	free(pg);
}

/* false: the pool is gone. */
static bool pg_leave(struct pg *pg)
{
	assert(pg->depth > 0);
	if (--pg->depth > 0)
		return !pg->freed;
	if (!pg->freed)
		return true;
	pg_destroy(pg);
	return false;
}

static void set_line(struct err *err, const char *what, const char *msg)
{
	(void)err_set_id(err, ERRID_RUN_DB, "%s: %s", what, msg);
}

/* ---- calls ------------------------------------------------------------------ */

static void list_remove(struct call_list *list, struct call *call)
{
	if (call->prev)
		call->prev->next = call->next;
	else
		list->head = call->next;
	if (call->next)
		call->next->prev = call->prev;
	else
		list->tail = call->prev;
	call->prev = call->next = NULL;
}

static void list_append(struct call_list *list, struct call *call)
{
	call->prev = list->tail;
	if (list->tail)
		list->tail->next = call;
	else
		list->head = call;
	list->tail = call;
}

static void list_prepend(struct call_list *list, struct call *call)
{
	call->next = list->head;
	if (list->head)
		list->head->prev = call;
	else
		list->tail = call;
	list->head = call;
}

static void call_free(struct call *call)
{
	loop_timer_free(call->timer);
	for (int i = 0; i < call->stmt->n_params; i++) {
		if (!call->values[i])
			continue;
		/* a lease's token, a job's text: not for the next owner of the memory */
		explicit_bzero(call->values[i], (size_t)call->lengths[i]);
		free(call->values[i]);
	}
	call->pg->n_calls--;
	free(call);
}

/* The one place where done is called. The call is in no list and no connection. */
static void call_end(struct call *call, PGresult *res, const struct err *err)
{
	struct pg *pg = call->pg;
	pg_done *done = call->done;
	void *arg = call->arg;
	struct decoded *decoded = NULL;
	struct pg_result result = {.res = res, .decoded = &decoded};

	call_free(call);
	if (!pg->freed)
		done(res ? &result : NULL, err, arg);
	while (decoded) {
		struct decoded *next = decoded->next;

		PQfreemem(decoded->data);
		free(decoded);
		decoded = next;
	}
}

static void call_deadline(void *arg)
{
	struct call *call = arg;
	struct pg *pg = call->pg;
	struct pg_conn *cn = call->conn;
	struct err err = ERR_INIT;

	pg_enter(pg);
	if (call->refused)
		(void)err_set_id(&err, ERRID_RUN_QUEUE_FULL,
				 "%d calls wait for the database", CALLS_MAX);
	else
		(void)err_set_id(&err, ERRID_RUN_DB, "%s: no answer in time",
				 call->stmt->name);
	if (cn) {
		cn->call = NULL;
		call->conn = NULL;
		call_end(call, NULL, &err);
		conn_lost(cn, &err);
	} else {
		list_remove(call->refused ? &pg->refused : &pg->waiting, call);
		call_end(call, NULL, &err);
	}
	(void)pg_leave(pg);
}

void pg_call(struct pg *pg, const struct pg_stmt *stmt, const struct pg_param *params,
	     usec_t timeout_usec, bool resend, pg_done *done, void *arg)
{
	struct call *call = xnew(struct call);

	assert(stmt->n_params >= 0 && stmt->n_params <= PARAMS_MAX);
	call->pg = pg;
	call->stmt = stmt;
	call->resend = resend;
	call->done = done;
	call->arg = arg;
	for (int i = 0; i < stmt->n_params; i++) {
		if (!params[i].data)
			continue;
		size_t len = params[i].binary ? params[i].len
					      : strlen((const char *)params[i].data);
		assert(len < INT32_MAX);
		call->values[i] = xmalloc(len + 1);
		memcpy(call->values[i], params[i].data, len);
		call->values[i][len] = 0;
		call->lengths[i] = (int)len;
		call->formats[i] = params[i].binary;
	}
	call->timer = loop_timer_new(pg->loop, call_deadline, call);
	call->refused = pg->n_calls >= CALLS_MAX;
	pg->n_calls++;
	loop_timer_arm(call->timer, call->refused ? 0 : timeout_usec);
	list_append(call->refused ? &pg->refused : &pg->waiting, call);
	dispatch(pg);
}

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
static bool conn_send(struct pg_conn *cn)
{
	struct call *call = cn->call;
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

static void dispatch(struct pg *pg)
{
	pg_enter(pg);
	for (unsigned i = 0; i < pg->n_conns && pg->waiting.head && !pg->freed; i++) {
		struct pg_conn *cn = &pg->conns[i];
		struct err err = ERR_INIT;

		if (cn->state != CONN_READY)
			continue;
		cn->call = pg->waiting.head;
		list_remove(&pg->waiting, cn->call);
		cn->call->conn = cn;
		if (conn_send(cn))
			continue;
		set_line(&err, "send", PQerrorMessage(cn->c));
		conn_lost(cn, &err);
	}
	(void)pg_leave(pg);
}

static bool state_is_loss(const char *sqlstate)
{
	return str_starts(sqlstate, "57P0") || str_starts(sqlstate, "08");
}

static bool state_is_rollback(const char *sqlstate)
{
	return str_eq(sqlstate, "40001") || str_eq(sqlstate, "40P01");
}

static const char *result_sqlstate(const PGresult *res)
{
	const char *s = PQresultErrorField(res, PG_DIAG_SQLSTATE);

	return s ? s : "";
}

static bool result_is_error(const PGresult *res)
{
	ExecStatusType s = PQresultStatus(res);

	return s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK;
}

static void server_err(const PGresult *res, struct err *err)
{
	const char *state = result_sqlstate(res);
	const char *msg = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
	enum err_code code = ERR_UPSTREAM;

	if (str_eq(state, "42501"))
		code = ERR_DENIED;
	else if (str_starts(state, "22") || str_starts(state, "23"))
		code = ERR_INVALID;
	/* Out of disk, or of another resource: rolled back, and worth trying again. */
	if (str_starts(state, "53")) {
		(void)err_set_id(
			err, str_eq(state, "53100") ? ERRID_CORE_DISK_FULL : ERRID_RUN_DB,
			"the database: %s", msg ? msg : state);
		return;
	}
	(void)err_set(err, code, "%s: %s", state, msg ? msg : "no message");
}

static void set_up(struct pg *pg, bool up, const struct err *why)
{
	if (pg->freed || (pg->told && pg->up == up))
		return;
	pg->up = up;
	pg->told = true;
	if (pg->on_state)
		pg->on_state(up, why, pg->arg);
}

static void conn_ready(struct pg_conn *cn)
{
	struct pg *pg = cn->pg;
	bool fresh = cn->state != CONN_BUSY;

	cn->state = CONN_READY;
	cn->failures = 0;
	if (!fresh)
		return;
	set_up(pg, true, NULL);
	if (!pg->freed && cn->index == 0 && pg->listen_sql && pg->on_notify)
		pg->on_notify(pg->arg);
}

/* The running command is complete; its result is ours. false: the connection is no good.
 */
static bool command_done(struct pg_conn *cn)
{
	struct pg *pg = cn->pg;
	struct call *call = cn->call;
	PGresult *res = cn->res;
	struct err err = ERR_INIT;
	bool failed = !res || result_is_error(res);

	cn->res = NULL;
	if (!res || (failed && state_is_loss(result_sqlstate(res)))) {
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
		return conn_send(cn);
	}
	cn->call = NULL;
	call->conn = NULL;
	conn_ready(cn);
	if (failed && call->resend && state_is_rollback(result_sqlstate(res))) {
		PQclear(res);
		list_prepend(&pg->waiting, call);
		return true;
	}
	if (failed)
		server_err(res, &err);
	call_end(call, res, failed ? &err : NULL);
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
		} else if (cn->res && result_is_error(cn->res)) {
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
			set_line(&err, "connection lost", PQerrorMessage(cn->c));
			conn_lost(cn, &err);
		}
	}
	if (!pg->freed)
		dispatch(pg);
	(void)pg_leave(pg);
}

/* ---- connecting ----------------------------------------------------------------- */

static void conn_close(struct pg_conn *cn)
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

/* Close, settle what was on the wire, try again after a pause. */
static void conn_lost(struct pg_conn *cn, const struct err *why)
{
	struct pg *pg = cn->pg;
	struct call *call = cn->call;
	bool any = false;

	if (pg->freed)
		return;
	pg_enter(pg);
	conn_close(cn);
	loop_timer_arm(cn->timer, backoff_usec(cn->failures++));
	cn->call = NULL;
	if (call) {
		call->conn = NULL;
		if (call->resend)
			list_prepend(&pg->waiting, call);
		else
			call_end(call, NULL, why);
	}
	for (unsigned i = 0; i < pg->n_conns; i++)
		any |= pg->conns[i].state >= CONN_READY;
	if (!any)
		set_up(pg, false, why);
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
		set_line(&err, "connect", PQerrorMessage(cn->c));
		conn_lost(cn, &err);
		return;
	}
	cn->io = loop_io_new(pg->loop, PQsocket(cn->c), LOOP_READ, conn_io, cn);
	if (cn->index == 0 && pg->listen_sql) {
		cn->state = CONN_LISTENING;
		if (!PQsendQuery(cn->c, pg->listen_sql) || !conn_flush(cn)) {
			set_line(&err, "listen", PQerrorMessage(cn->c));
			conn_lost(cn, &err);
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
		dispatch(pg);
	(void)pg_leave(pg);
}

static void drop_notice(void *arg UNUSED, const PGresult *res UNUSED)
{
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
		set_line(&err, "connect", cn->c ? PQerrorMessage(cn->c) : "no memory");
		conn_lost(cn, &err);
		return;
	}
	(void)PQsetNoticeReceiver(cn->c, drop_notice, NULL);
	cn->io = loop_io_new(pg->loop, PQsocket(cn->c), LOOP_WRITE, connect_io, cn);
}

static void conn_timer(void *arg)
{
	struct pg_conn *cn = arg;
	struct pg *pg = cn->pg;
	struct err err = ERR_INIT;

	pg_enter(pg);
	if (cn->state == CONN_DOWN) {
		conn_start(cn);
	} else if (cn->state < CONN_READY) {
		(void)err_set_id(&err, ERRID_RUN_DB, "connect: no answer in time");
		conn_lost(cn, &err);
	}
	(void)pg_leave(pg);
}

int pg_env_check(struct err *err)
{
	static const char *const names[] = {"PGHOSTADDR", "PGSERVICE"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (getenv(names[i]))
			return err_set(err, ERR_INVALID, "%s is set in the environment",
				       names[i]);
	return 0;
}

/* A channel is a constant of ours; it becomes an identifier of SQL text. */
static int make_listen(const char *channel, char **ret, struct err *err)
{
	if (!channel)
		return 0;
	for (const char *p = channel; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || *p == '_'))
			return err_set(err, ERR_INTERNAL, "unacceptable channel name");
	*ret = xasprintf("LISTEN %s", channel);
	return 0;
}

int pg_new(struct loop *l, const struct pg_config *cfg, struct pg **ret, struct err *err)
{
	struct pg *pg;
	char *listen_sql = NULL;

	if (pg_env_check(err) < 0 ||
	    make_listen(cfg->listen_channel, &listen_sql, err) < 0)
		return -1;
	assert(cfg->connections >= 1 && cfg->connections <= CONNS_MAX);
	pg = xnew(struct pg);
	pg->loop = l;
	pg->socket_dir = xstrdup(cfg->socket_dir);
	pg->dbname = xstrdup(cfg->dbname);
	pg->user = xstrdup(cfg->user);
	pg->password = xstrdup(cfg->password);
	pg->application_name = xstrdup(cfg->application_name);
	pg->listen_sql = listen_sql;
	pg->on_notify = cfg->on_notify;
	pg->on_state = cfg->on_state;
	pg->arg = cfg->arg;
	pg->n_conns = cfg->connections;
	for (unsigned i = 0; i < pg->n_conns; i++) {
		struct pg_conn *cn = &pg->conns[i];

		cn->pg = pg;
		cn->index = i;
		cn->timer = loop_timer_new(l, conn_timer, cn);
		/* from the loop: callbacks must not run before pg_new has returned */
		loop_timer_arm(cn->timer, 0);
	}
	*ret = pg;
	return 0;
}

static void drop_calls(struct call_list *list)
{
	while (list->head) {
		struct call *call = list->head;

		list_remove(list, call);
		call_free(call);
	}
}

void pg_free(struct pg *pg)
{
	if (!pg || pg->freed)
		return;
	pg_enter(pg);
	pg->freed = true;
	for (unsigned i = 0; i < pg->n_conns; i++) {
		struct pg_conn *cn = &pg->conns[i];

		if (cn->call)
			call_free(cn->call);
		cn->call = NULL;
		conn_close(cn);
		loop_timer_free(cn->timer);
		cn->timer = NULL;
	}
	drop_calls(&pg->waiting);
	drop_calls(&pg->refused);
	(void)pg_leave(pg);
}

bool pg_is_up(const struct pg *pg)
{
	return pg->up;
}

/* ---- results ----------------------------------------------------------------------- */

size_t pg_rows(const struct pg_result *res)
{
	return (size_t)PQntuples(res->res);
}

bool pg_is_null(const struct pg_result *res, size_t row, size_t col)
{
	return PQgetisnull(res->res, (int)row, (int)col);
}

const char *pg_text(const struct pg_result *res, size_t row, size_t col)
{
	const char *s = PQgetvalue(res->res, (int)row, (int)col);

	return s ? s : "";
}

int64_t pg_i64(const struct pg_result *res, size_t row, size_t col)
{
	const char *s = pg_text(res, row, col);
	bool neg = *s == '-';
	uint64_t v = 0;

	if (!*s)
		return 0;
	/* The server's own number in a column that our SQL declares as one. */
	int r = parse_u64(s + neg, 0, INT64_MAX, &v, NULL);
	assert(r == 0);
	return neg ? -(int64_t)v : (int64_t)v;
}

bool pg_bool(const struct pg_result *res, size_t row, size_t col)
{
	return str_eq(pg_text(res, row, col), "t");
}

const void *pg_bytes(const struct pg_result *res, size_t row, size_t col, size_t *ret_len)
{
	struct decoded *d;

	*ret_len = 0;
	if (pg_is_null(res, row, col))
		return NULL;
	for (d = *res->decoded; d; d = d->next)
		if (d->row == row && d->col == col)
			break;
	if (!d) {
		d = xnew(struct decoded);
		d->row = row;
		d->col = col;
		d->data = PQunescapeBytea((const unsigned char *)pg_text(res, row, col),
					  &d->len);
		assert(d->data);
		d->next = *res->decoded;
		*res->decoded = d;
	}
	*ret_len = d->len;
	return d->data;
}
