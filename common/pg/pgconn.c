/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the tomb.
 * Theory of operation
 *
 * A pool is first-in-first-out queues of calls, one of those that do not yield and one for
 * each party of those that do, and up to eight connections. A connection that is READY
 * takes the first call that does not yield, else the first of the party whose turn it is,
 * unless it is the last one without such a call; if its statement is not
 * prepared there yet, PREPARE goes first. One call at a time is on a connection.
 *
 * A connection is lost when the socket fails, when the server says so (57P01, 57P02,
 * 57P03, class 08), when a call's deadline passes while it is on the wire, or when
 * connecting takes too long. What was on the wire has an unknown outcome: with
 * PG_RESEND it goes back to the head of the queue, else its callback gets RUN_DB.
 * A transaction that the server rolled back by itself (40001, 40P01) is sent again.
 *
 * Callbacks may make new calls and may free the pool: `depth` counts the frames in
 * which the pool must stay, the last one frees it.
 */
#include "common/mem.h"
#include "common/pg/pgconn_priv.h"
#include "common/str.h"
#include <assert.h>

/* ---- the pool's life -------------------------------------------------------- */

void pg_enter(struct pg *pg)
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

bool pg_leave(struct pg *pg)
{
	assert(pg->depth > 0);
	if (--pg->depth > 0)
		return !pg->freed;
	if (!pg->freed)
		return true;
	pg_destroy(pg);
	return false;
}

/* ---- calls ------------------------------------------------------------------ */

/* Where a call waits. */
static struct pg_requests *list_of(const struct pg_request *call)
{
	struct pg *pg = call->pg;

	if (call->refused)
		return &pg->refused;
	return call->yields ? &pg->yielding[call->party] : &pg->waiting;
}

static void list_remove(struct pg_request *call)
{
	struct pg_requests *list = list_of(call);

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

static void list_append(struct pg_request *call)
{
	struct pg_requests *list = list_of(call);

	call->prev = list->tail;
	if (list->tail)
		list->tail->next = call;
	else
		list->head = call;
	list->tail = call;
}

void pg_request_again(struct pg_request *call)
{
	struct pg_requests *list = list_of(call);

	call->next = list->head;
	if (list->head)
		list->head->prev = call;
	else
		list->tail = call;
	list->head = call;
}

static void call_free(struct pg_request *call)
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

void pg_request_end(struct pg_request *call, PGresult *res, const struct err *err)
{
	struct pg *pg = call->pg;
	pg_done *done = call->done;
	void *arg = call->arg;
	struct pg_decoded *decoded = NULL;
	struct pg_result result = {.res = res, .decoded = &decoded};

	call_free(call);
	if (!pg->freed)
		done(res ? &result : NULL, err, arg);
	pg_decoded_free(decoded);
}

static void call_deadline(void *arg)
{
	struct pg_request *call = arg;
	struct pg *pg = call->pg;
	struct pg_conn *cn = call->conn;
	struct err err = ERR_INIT;

	pg_enter(pg);
	if (call->refused)
		(void)err_set_id(&err, ERRID_RUN_QUEUE_FULL,
				 "%d calls wait for the database",
				 call->yields ? YIELDING_MAX : CALLS_MAX);
	else
		(void)err_set_id(&err, ERRID_RUN_DB, "%s: no answer in time",
				 call->stmt->name);
	if (cn) {
		cn->call = NULL;
		call->conn = NULL;
		pg_request_end(call, NULL, &err);
		pgconn_lost(cn, &err);
	} else {
		list_remove(call);
		pg_request_end(call, NULL, &err);
	}
	(void)pg_leave(pg);
}

void pg_call(struct pg *pg, const struct pg_stmt *stmt, const struct pg_param *params,
	     usec_t timeout_usec, unsigned how, pg_done *done, void *arg)
{
	struct pg_request *call = xnew(struct pg_request);

	assert(stmt->n_params >= 0 && stmt->n_params <= PARAMS_MAX);
	call->pg = pg;
	call->stmt = stmt;
	call->resend = how & PG_RESEND;
	call->yields = how & PG_YIELD;
	call->party = how >> 8;
	assert(call->party < PG_PARTIES);
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
	call->refused = pg->n_calls >= (call->yields ? YIELDING_MAX : CALLS_MAX);
	pg->n_calls++;
	loop_timer_arm(call->timer, call->refused ? 0 : timeout_usec);
	list_append(call);
	pg_dispatch(pg);
}

/* Of those that yield: the parties take turns. */
static struct pg_request *next_in_turn(struct pg *pg)
{
	for (unsigned i = 0; i < PG_PARTIES; i++) {
		unsigned party = (pg->next_party + i) % PG_PARTIES;

		if (!pg->yielding[party].head)
			continue;
		pg->next_party = party + 1;
		return pg->yielding[party].head;
	}
	return NULL;
}

/* The call that a free connection takes; NULL: none. */
static struct pg_request *next_call(struct pg *pg)
{
	unsigned up = 0, taken = 0;

	if (pg->waiting.head)
		return pg->waiting.head;
	for (unsigned i = 0; i < pg->n_conns; i++) {
		const struct pg_conn *cn = &pg->conns[i];

		up += cn->state >= CONN_READY;
		taken += cn->call && cn->call->yields;
	}
	return up == 1 || taken + 1 < up ? next_in_turn(pg) : NULL;
}

void pg_dispatch(struct pg *pg)
{
	struct pg_request *call;

	pg_enter(pg);
	for (unsigned i = 0; i < pg->n_conns && !pg->freed; i++) {
		struct pg_conn *cn = &pg->conns[i];
		struct err err = ERR_INIT;

		if (cn->state != CONN_READY)
			continue;
		call = next_call(pg);
		if (!call)
			break;
		cn->call = call;
		list_remove(call);
		cn->call->conn = cn;
		if (pgconn_send(cn))
			continue;
		pg_line(&err, "send", PQerrorMessage(cn->c));
		pgconn_lost(cn, &err);
	}
	(void)pg_leave(pg);
}

void pg_tell_state(struct pg *pg, bool up, const struct err *why)
{
	if (pg->freed || (pg->told && pg->up == up))
		return;
	pg->up = up;
	pg->told = true;
	if (pg->on_state)
		pg->on_state(up, why, pg->arg);
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
		cn->timer = loop_timer_new(l, pgconn_timer, cn);
		/* from the loop: callbacks must not run before pg_new has returned */
		loop_timer_arm(cn->timer, 0);
	}
	*ret = pg;
	return 0;
}

static void drop_calls(struct pg_requests *list)
{
	while (list->head) {
		struct pg_request *call = list->head;

		list_remove(call);
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
		pgconn_close(cn);
		loop_timer_free(cn->timer);
		cn->timer = NULL;
	}
	drop_calls(&pg->waiting);
	for (unsigned i = 0; i < PG_PARTIES; i++)
		drop_calls(&pg->yielding[i]);
	drop_calls(&pg->refused);
	(void)pg_leave(pg);
}

bool pg_is_up(const struct pg *pg)
{
	return pg->up;
}
