/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the tomb.
 * What the server answers: rows, and which errors mean what.
 */
#include "common/mem.h"
#include "common/pg/pgconn_priv.h"
#include "common/str.h"
#include <assert.h>

void pg_line(struct err *err, const char *what, const char *msg)
{
	(void)err_set_id(err, ERRID_RUN_DB, "%s: %s", what, msg);
}

static const char *result_sqlstate(const PGresult *res)
{
	const char *s = PQresultErrorField(res, PG_DIAG_SQLSTATE);

	return s ? s : "";
}

bool pg_is_loss(const PGresult *res)
{
	const char *sqlstate = result_sqlstate(res);

	return str_starts(sqlstate, "57P0") || str_starts(sqlstate, "08");
}

bool pg_is_rollback(const PGresult *res)
{
	const char *sqlstate = result_sqlstate(res);

	return str_eq(sqlstate, "40001") || str_eq(sqlstate, "40P01");
}

bool pg_is_error(const PGresult *res)
{
	ExecStatusType s = PQresultStatus(res);

	return s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK;
}

void pg_server_err(const PGresult *res, struct err *err)
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
	/* The server's own number in a column that our SQL declares as one: the least of them, which a stranger's
	 * archive can have, has no positive twin. */
	int r = parse_u64(s + neg, 0, (uint64_t)INT64_MAX + neg, &v, NULL);
	assert(r == 0);
	return (int64_t)(neg ? 0 - v : v);
}

bool pg_bool(const struct pg_result *res, size_t row, size_t col)
{
	return str_eq(pg_text(res, row, col), "t");
}

const void *pg_bytes(const struct pg_result *res, size_t row, size_t col, size_t *ret_len)
{
	struct pg_decoded *d;

	*ret_len = 0;
	if (pg_is_null(res, row, col))
		return NULL;
	for (d = *res->decoded; d; d = d->next)
		if (d->row == row && d->col == col)
			break;
	if (!d) {
		d = xnew(struct pg_decoded);
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

void pg_decoded_free(struct pg_decoded *d)
{
	while (d) {
		struct pg_decoded *next = d->next;

		PQfreemem(d->data);
		free(d);
		d = next;
	}
}
