/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation
 *
 * Connects over the unix socket as lych_migrate, the bootstrap superuser, and
 *   1. makes the database `lychgate` where there is none;
 *   2. compares lych.schema_version with the migrations compiled in, whose numbers run
 *      from the first one's: each one that was applied must be here with the same sha256.
 *      A version we do not have, one from before the first, or another text under a number
 *      that we have, is refused before anything changes. Then every database is closed to
 *      everybody else;
 *   3. applies the missing ones in order, each in one transaction with its row
 *	(--to N: none behind that one, and then it ends here: `lych restore` fills in rows
 *	of that version before it goes on);
 *   4. gives every login its password and every tomb its grant; a tomb's password is made
 *      from the tombs' master, its name and its generation (tomb_secret.h), and sessions
 *      of an older generation are ended.
 *
 * An advisory lock makes two concurrent runs take turns. No password is ever part
 * of a statement: libpq computes the SCRAM verifier here, and the verifier goes as
 * a parameter to lych.set_login.
 */
#include "vessel/db/migrate.h"
#include "common/cleanup.h"
#include "common/crypto/tomb_secret.h"
#include "common/err.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/pg/pgconn.h"
#include "common/str.h"
#include <errno.h>
#include <libpq-fe.h>
#include <stdbool.h>

struct migration {
	int version;
	const char *name, *sha256, *sql;
};
#include "schema.inc"

#define ROLE_MIGRATE "lych_migrate"
#define SECRET_SIZE 256
#define LOGIN_TRIES 10
/* Any constant will do; every run of every version must use the same. */
#define LOCK_SQL "SELECT pg_advisory_lock(7241980532)"

static void result_clear(PGresult **r)
{
	PQclear(*r);
}

static void conn_finish(PGconn **c)
{
	PQfinish(*c);
}

static void secret_wipe(char (*s)[SECRET_SIZE])
{
	explicit_bzero(*s, sizeof(*s));
}

#define cleanup_result __attribute__((cleanup(result_clear)))
#define cleanup_conn __attribute__((cleanup(conn_finish)))
#define cleanup_secret __attribute__((cleanup(secret_wipe)))

/* libpq's messages end in newlines and may span lines. */
static int pg_err(enum err_id id, const char *what, const char *msg, struct err *err)
{
	return err_set_id(err, id, "%s: %s", what, msg);
}

static void drop_notice(void *arg UNUSED, const PGresult *res UNUSED)
{
}

static int connect_db(const struct migrate_config *cfg, const char *dbname,
		      const char *password, PGconn **ret, struct err *err)
{
	const char *const keys[] = {"host",
				    "user",
				    "password",
				    "dbname",
				    "connect_timeout",
				    "application_name",
				    "gssencmode",
				    "client_encoding",
				    "options",
				    NULL};
	const char *const values[] = {
		cfg->socket_dir,
		ROLE_MIGRATE,
		password,
		dbname,
		"10",
		"lych-migrate",
		"disable",
		"UTF8",
		"-c synchronous_commit=on -c statement_timeout=120s",
		NULL};
	cleanup_conn PGconn *c = PQconnectdbParams(keys, values, 0);

	if (!c || PQstatus(c) != CONNECTION_OK)
		return pg_err(ERRID_START_DB, "connect as " ROLE_MIGRATE,
			      c ? PQerrorMessage(c) : "out of memory", err);
	(void)PQsetNoticeReceiver(c, drop_notice, NULL);
	*ret = TAKE_PTR(c);
	return 0;
}

/* A whole script or a statement without parameters. */
static int run_sql(PGconn *c, const char *what, const char *sql, struct err *err)
{
	cleanup_result PGresult *r = PQexec(c, sql);
	ExecStatusType s = PQresultStatus(r);

	if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
		return pg_err(ERRID_START_MIGRATION, what, PQerrorMessage(c), err);
	return 0;
}

/* Somebody holds a row that we need: SQLSTATE 55P03. */
static bool waited_too_long(const PGresult *r)
{
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	return state && str_eq(state, "55P03");
}

static int run_params(PGconn *c, const char *what, const char *sql, int n,
		      const char *const *params, PGresult **ret, struct err *err)
{
	cleanup_result PGresult *r = PQexecParams(c, sql, n, NULL, params, NULL, NULL, 0);
	ExecStatusType s = PQresultStatus(r);

	if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK) {
		(void)pg_err(ERRID_START_MIGRATION, what, PQerrorMessage(c), err);
		err->sys = waited_too_long(r) ? EAGAIN : 0;
		return -1;
	}
	if (ret)
		*ret = TAKE_PTR(r);
	return 0;
}

#define OWNER_SECRET "lychgate_db_migrate"
#define OWNER_NEXT OWNER_SECRET ".next"

/*
 * The superuser's password. While it is being rotated the next one lies beside it, and
 * the server knows either: the one that it takes is ours.
 */
static int owner_password(const struct migrate_config *cfg, int secrets_fd,
			  char ret[SECRET_SIZE], struct err *err)
{
	cleanup_secret char next[SECRET_SIZE] = {0};
	cleanup_conn PGconn *c = NULL;
	struct err why = ERR_INIT;

	if (fs_read_secret(secrets_fd, OWNER_SECRET, ret, SECRET_SIZE, err) < 0)
		return -1;
	if (fs_read_secret(secrets_fd, OWNER_NEXT, next, sizeof(next), &why) < 0)
		return why.id == ERRID_SECRET_MISSING ? 0 : (*err = why, -1);
	if (connect_db(cfg, "postgres", ret, &c, err) == 0)
		return 0;
	if (connect_db(cfg, "postgres", next, &c, &why) < 0)
		return -1; /* what the first attempt said */
	err_clear(err);
	memcpy(ret, next, SECRET_SIZE);
	return 0;
}

static int make_database(const struct migrate_config *cfg, const char *password,
			 struct err *err)
{
	cleanup_conn PGconn *c = NULL;
	cleanup_result PGresult *r = NULL;

	if (connect_db(cfg, "postgres", password, &c, err) < 0)
		return -1;
	if (run_sql(c, "lock", LOCK_SQL, err) < 0)
		return -1;
	if (run_params(c, "look for the database",
		       "SELECT 1 FROM pg_database WHERE datname = 'lychgate'", 0, NULL,
		       &r, err) < 0)
		return -1;
	if (PQntuples(r) > 0)
		return 0;
	return run_sql(c, "create the database",
		       "CREATE DATABASE lychgate TEMPLATE template0 ENCODING 'UTF8'",
		       err);
}

static int close_databases(PGconn *c, struct err *err)
{
	return run_sql(c, "close the databases to everybody",
		       "REVOKE ALL ON DATABASE postgres FROM PUBLIC;"
		       "REVOKE ALL ON DATABASE template1 FROM PUBLIC;"
		       "REVOKE ALL ON DATABASE lychgate FROM PUBLIC;",
		       err);
}

/* The i-th row, whose version is v; last: the newest's. */
static int check_version(size_t i, uint64_t v, const char *sha256, const char *last,
			 struct err *err)
{
	unsigned first = migrate_schema_first();

	if (v < first)
		return err_set_id(err, ERRID_START_SCHEMA_GONE,
				  "the database is at version %s, this program "
				  "upgrades from %u on",
				  last, first);
	if (v != first + i)
		return err_set_id(err, ERRID_START_SCHEMA,
				  "migration %zu is missing below %llu", first + i,
				  (unsigned long long)v);
	if (i >= ARRAY_SIZE(schema_migrations))
		return err_set_id(err, ERRID_START_SCHEMA,
				  "the database is at version %s, this program at %u",
				  last, migrate_schema_version());
	if (!str_eq(schema_migrations[i].sha256, sha256))
		return err_set_id(err, ERRID_START_SCHEMA,
				  "migration %s was applied with another text",
				  schema_migrations[i].name);
	return 0;
}

/* How many of ours are in; refuses what is not ours. */
static int check_versions(PGconn *c, size_t *ret_have, struct err *err)
{
	cleanup_result PGresult *r = NULL;

	if (run_sql(c, "prepare lych.schema_version",
		    "CREATE SCHEMA IF NOT EXISTS lych;"
		    "CREATE TABLE IF NOT EXISTS lych.schema_version ("
		    "version int PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL,"
		    "applied_at timestamptz NOT NULL DEFAULT clock_timestamp())",
		    err) < 0)
		return -1;
	if (run_params(c, "read lych.schema_version",
		       "SELECT version, sha256 FROM lych.schema_version ORDER BY version",
		       0, NULL, &r, err) < 0)
		return -1;
	size_t n = (size_t)PQntuples(r);
	for (size_t i = 0; i < n; i++) {
		const char *version = PQgetvalue(r, (int)i, 0);
		uint64_t v = 0;

		if (parse_u64(version, 1, INT32_MAX, &v, err) < 0)
			return err_wrap(err, "lych.schema_version");
		if (check_version(i, v, PQgetvalue(r, (int)i, 1),
				  PQgetvalue(r, (int)n - 1, 0), err) < 0)
			return -1;
	}
	*ret_have = n;
	return 0;
}

static int apply(PGconn *c, const struct migration *m, struct err *err)
{
	char version[16];
	const char *const params[] = {version, m->name, m->sha256};

	if (str_fmt(version, sizeof(version), "%d", m->version) < 0)
		return err_set(err, ERR_INTERNAL, "version %d", m->version);
	if (run_sql(c, m->name, "BEGIN", err) < 0 ||
	    run_sql(c, m->name, m->sql, err) < 0 ||
	    run_sql(c, m->name, "RESET ROLE", err) < 0 ||
	    run_params(c, m->name,
		       "INSERT INTO lych.schema_version (version, name, sha256)"
		       " VALUES ($1::int, $2, $3)",
		       3, params, NULL, err) < 0 ||
	    run_sql(c, m->name, "COMMIT", err) < 0) {
		struct err ignored = ERR_INIT;

		(void)run_sql(c, m->name, "ROLLBACK", &ignored);
		return -1;
	}
	return 0;
}

static int set_password(PGconn *c, const char *role, const char *password,
			struct err *err)
{
	char *verifier = PQencryptPasswordConn(c, password, role, "scram-sha-256");
	if (!verifier)
		return pg_err(ERRID_START_MIGRATION, role, PQerrorMessage(c), err);
	const char *const params[] = {role, verifier};
	int rc = run_params(c, role, "SELECT lych.set_login($1, $2)", 2, params, NULL,
			    err);
	explicit_bzero(verifier, strlen(verifier));
	PQfreemem(verifier);
	return rc;
}

static int set_login(PGconn *c, int secrets_fd, const char *role, const char *secret,
		     struct err *err)
{
	cleanup_secret char password[SECRET_SIZE] = {0};

	if (fs_read_secret(secrets_fd, secret, password, sizeof(password), err) < 0)
		return err_wrap(err, "password of %s", role);
	return set_password(c, role, password, err);
}

/* *ret_new: this generation has not been here before. */
static int set_tomb(PGconn *c, int secrets_fd, const char *tomb, bool *ret_new,
		    struct err *err)
{
	cleanup_secret char master[SECRET_SIZE] = {0};
	cleanup_secret char password[SECRET_SIZE] = {0};
	cleanup_result PGresult *r = NULL;
	char file[TOMB_SECRET_NAME_SIZE], text[64], number[24];
	uint64_t generation = 0;

	if (!tomb_name_is_usable(tomb) ||
	    str_fmt(file, sizeof(file), TOMB_GENERATION_OF "%s", tomb) < 0)
		return err_set_id(err, ERRID_CORE_USAGE, "'%.40s' is no tomb's name",
				  tomb);
	if (fs_read_secret(secrets_fd, tomb_secret_master(TOMB_SECRET_DB), master,
			   sizeof(master), err) < 0 ||
	    fs_read_secret(secrets_fd, file, text, sizeof(text), err) < 0 ||
	    tomb_generation_parse(text, &generation, err) < 0)
		return err_wrap(err, "tomb %s", tomb);
	_Static_assert(SECRET_SIZE >= TOMB_SECRET_SIZE, "a derived secret fits");
	tomb_secret_derive(TOMB_SECRET_DB, master, tomb, generation, password);
	if (str_fmt(number, sizeof(number), "%llu", (unsigned long long)generation) < 0)
		return err_set(err, ERR_INTERNAL, "generation");
	const char *const params[] = {tomb, number};
	const char *const grant[] = {tomb};

	if (set_password(c, tomb, password, err) < 0)
		return -1;
	if (run_params(c, tomb, "SELECT lych.set_generation($1, $2::bigint)", 2, params,
		       &r, err) < 0)
		return err_wrap(err, "'lych secret rotate --tomb %s' makes a newer one",
				tomb);
	if (run_params(c, tomb,
		       "INSERT INTO lych.worker_queue (role, queue)"
		       " VALUES ($1, 'main') ON CONFLICT DO NOTHING",
		       1, grant, NULL, err) < 0)
		return -1;
	*ret_new = str_eq(PQgetvalue(r, 0, 0), "t");
	return 0;
}

/* A session that logged in with what counts no more. */
static int end_sessions(PGconn *c, const char *tomb, struct err *err)
{
	const char *const params[] = {tomb};

	return run_params(c, tomb,
			  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
			  " WHERE usename = $1",
			  1, params, NULL, err);
}

static int set_all(PGconn *c, int secrets_fd, const struct migrate_config *cfg,
		   bool *ret_new, struct err *err)
{
	if (run_sql(c, "logins", "BEGIN; SET LOCAL lock_timeout = '500ms'", err) < 0 ||
	    set_login(c, secrets_fd, "lych_vessel", "lychgate_db_vessel", err) < 0 ||
	    set_login(c, secrets_fd, "lych_watchdog", "lychgate_db_watchdog", err) < 0 ||
	    run_sql(c, "grant the database",
		    "GRANT CONNECT ON DATABASE lychgate"
		    " TO lych_vessel, lych_watchdog, lych_tomb",
		    err) < 0)
		return -1;
	for (size_t i = 0; i < cfg->n_tombs; i++) {
		if (set_tomb(c, secrets_fd, cfg->tombs[i], &ret_new[i], err) < 0)
			return -1;
	}
	return run_sql(c, "logins", "COMMIT", err);
}

/* A role may change its own row, so a tomb's session may hold it, for as long as it likes: it is
 * ended, and we are sooner than its next one. */
static int set_logins(PGconn *c, int secrets_fd, const struct migrate_config *cfg,
		      struct err *err)
{
	bool is_new[MIGRATE_TOMBS_MAX] = {false};
	struct err ignored = ERR_INIT;

	for (int left = LOGIN_TRIES; set_all(c, secrets_fd, cfg, is_new, err) < 0;) {
		(void)run_sql(c, "logins", "ROLLBACK", &ignored);
		if (err->sys != EAGAIN || --left == 0)
			return -1;
		err_clear(err);
		for (size_t i = 0; i < cfg->n_tombs; i++)
			if (end_sessions(c, cfg->tombs[i], err) < 0)
				return -1;
	}
	for (size_t i = 0; i < cfg->n_tombs; i++)
		if (is_new[i] && end_sessions(c, cfg->tombs[i], err) < 0)
			return -1;
	return 0;
}

/* How many migrations lead to a version; 0: to the newest. */
static size_t steps_to(unsigned version)
{
	unsigned first = migrate_schema_first();

	if (version == 0 || version > migrate_schema_version())
		return ARRAY_SIZE(schema_migrations);
	return version < first ? 0 : version - first + 1;
}

int migrate_run(const struct migrate_config *cfg, int *ret_applied, struct err *err)
{
	cleanup_secret char password[SECRET_SIZE] = {0};
	cleanup_conn PGconn *c = NULL;
	size_t have = 0, last;
	cleanup_close int secrets_fd = fs_open_dir(cfg->secrets_dir, err);

	if (secrets_fd < 0 || pg_env_check(err) < 0)
		return -1;
	if (owner_password(cfg, secrets_fd, password, err) < 0 ||
	    make_database(cfg, password, err) < 0 ||
	    connect_db(cfg, "lychgate", password, &c, err) < 0)
		return -1;
	if (run_sql(c, "lock", LOCK_SQL, err) < 0 || check_versions(c, &have, err) < 0 ||
	    close_databases(c, err) < 0)
		return -1;
	last = steps_to(cfg->to);
	for (size_t i = have; i < last; i++)
		if (apply(c, &schema_migrations[i], err) < 0)
			return -1;
	*ret_applied = last > have ? (int)(last - have) : 0;
	if (cfg->to)
		return 0;
	if (cfg->restart_audit && run_sql(c, "restart the audit numbering",
					  "SELECT lych.audit_restart()", err) < 0)
		return -1;
	return set_logins(c, secrets_fd, cfg, err);
}

unsigned migrate_schema_version(void)
{
	return (unsigned)schema_migrations[ARRAY_SIZE(schema_migrations) - 1].version;
}

unsigned migrate_schema_first(void)
{
	return (unsigned)schema_migrations[0].version;
}

/* As lych.set_login for the one role that it refuses; gone with the session. */
#define SET_OWNER_SQL                                                                    \
	"CREATE FUNCTION pg_temp.set_owner(p_verifier text) RETURNS void"                \
	" LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$ BEGIN"            \
	" EXECUTE 'ALTER ROLE " ROLE_MIGRATE " PASSWORD ' || quote_literal(p_verifier);" \
	" END $$"

/* Give the superuser the password of lychgate_db_migrate.next; may be done again. Whoever
 * asked renames that file over lychgate_db_migrate afterwards. */
int migrate_rotate_owner(const struct migrate_config *cfg, struct err *err)
{
	cleanup_secret char password[SECRET_SIZE] = {0};
	cleanup_secret char next[SECRET_SIZE] = {0};
	cleanup_conn PGconn *c = NULL;
	cleanup_close int secrets_fd = fs_open_dir(cfg->secrets_dir, err);

	if (secrets_fd < 0 || pg_env_check(err) < 0 ||
	    fs_read_secret(secrets_fd, OWNER_NEXT, next, sizeof(next), err) < 0 ||
	    owner_password(cfg, secrets_fd, password, err) < 0 ||
	    connect_db(cfg, "postgres", password, &c, err) < 0 ||
	    run_sql(c, "lock", LOCK_SQL, err) < 0 ||
	    run_sql(c, "prepare", SET_OWNER_SQL, err) < 0)
		return -1;
	char *verifier = PQencryptPasswordConn(c, next, ROLE_MIGRATE, "scram-sha-256");
	if (!verifier)
		return pg_err(ERRID_START_MIGRATION, ROLE_MIGRATE, PQerrorMessage(c),
			      err);
	const char *const params[] = {verifier};
	int rc = run_params(c, ROLE_MIGRATE, "SELECT pg_temp.set_owner($1)", 1, params,
			    NULL, err);
	explicit_bzero(verifier, strlen(verifier));
	PQfreemem(verifier);
	return rc;
}
