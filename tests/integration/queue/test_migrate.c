/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 120 */
/* What `lych-vessel migrate` refuses, and that it changes nothing that is right already.
 */
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/pgtest.h"
#include "vessel/db/migrate.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <fcntl.h>
#include <sys/stat.h>

ReportHook(PRE_ALL)(struct criterion_test_set *set UNUSED)
{
	(void)pgtest_start();
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats UNUSED)
{
	pgtest_stop();
}

TestSuite(migrate, .init = pgtest_lock, .timeout = 60);

static int migrate(const char *secrets, const char *name, int *applied, struct err *err)
{
	char *sock = xstrdup(pgtest_path("sock"));
	char *dir = xstrdup(pgtest_path(secrets));
	const char *const tombs[] = {name};
	const struct migrate_config cfg = {
		.socket_dir = sock, .secrets_dir = dir, .tombs = tombs, .n_tombs = 1};
	int r = migrate_run(&cfg, applied, err);

	free(sock);
	free(dir);
	return r;
}

static void good(void)
{
	struct err err = ERR_INIT;
	int applied = -1;

	cr_assert(migrate("secrets", "tomb_1", &applied, &err) == 0, "%s", err.msg);
}

Test(migrate, a_second_run_applies_nothing_and_keeps_everything)
{
	struct err err = ERR_INIT;
	int applied = -1;

	good();
	PGconn *root = pgtest_connect("lych_migrate");
	char *before = xstrdup(pgtest_ask(
		root,
		"SELECT string_agg(version || sha256 || applied_at, ' ' ORDER BY version)"
		" FROM lych.schema_version"));
	(void)pgtest_ask(root, "UPDATE lych.worker_queue SET max_leases = 7");
	cr_assert(migrate("secrets", "tomb_1", &applied, &err) == 0, "%s", err.msg);
	cr_expect_eq(applied, 0);
	cr_expect_str_eq(pgtest_ask(root,
				    "SELECT string_agg(version || sha256 || applied_at,"
				    " ' ' ORDER BY version) FROM lych.schema_version"),
			 before);
	cr_expect_str_eq(pgtest_ask(root, "SELECT max_leases FROM lych.worker_queue"),
			 "7");
	PQfinish(root);
	free(before);
}

Test(migrate, a_changed_a_newer_or_a_missing_migration_is_refused)
{
	static const char *const damage[] = {
		"UPDATE lych.schema_version SET sha256 = repeat('0', 64) WHERE version ="
		" (SELECT max(version) FROM lych.schema_version)",
		"INSERT INTO lych.schema_version SELECT max(version) + 1, 'x', 'x'"
		" FROM lych.schema_version",
		/* the first one */
		"DELETE FROM lych.schema_version WHERE version ="
		" (SELECT min(version) FROM lych.schema_version)",
	};

	good();
	PGconn *root = pgtest_connect("lych_migrate");
	(void)pgtest_ask(root,
			 "CREATE TEMP TABLE saved AS SELECT * FROM lych.schema_version");
	for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
		struct err err = ERR_INIT;
		int applied = -1;

		(void)pgtest_ask(root, damage[i]);
		cr_expect(migrate("secrets", "tomb_9", &applied, &err) < 0);
		cr_expect_eq(err.id, ERRID_START_SCHEMA, "%s: %s", damage[i], err.msg);
		cr_expect_str_eq(pgtest_ask(root, "SELECT count(*) FROM pg_roles"
						  " WHERE rolname = 'tomb_9'"),
				 "0");
		(void)pgtest_ask(root, "DELETE FROM lych.schema_version");
		(void)pgtest_ask(root,
				 "INSERT INTO lych.schema_version SELECT * FROM saved");
	}
	PQfinish(root);
}

Test(migrate, logins_are_plain_and_no_password_reaches_the_log)
{
	static char log[1 << 22];

	good();
	/* What a login changed about itself does not outlive the next start. */
	PGconn *tomb = pgtest_connect("tomb_1");
	PQclear(PQexec(tomb, "ALTER ROLE tomb_1 SET default_transaction_read_only = on"));
	PQclear(PQexec(tomb,
		       "ALTER ROLE tomb_1 IN DATABASE lychgate SET statement_timeout"
		       " = '1ms'"));
	PQfinish(tomb);
	good();
	PGconn *root = pgtest_connect("lych_migrate");
	cr_expect_str_eq(
		pgtest_ask(root, "SELECT string_agg(array_to_string(setconfig, ','), ';')"
				 " FROM pg_db_role_setting s JOIN pg_roles r ON r.oid ="
				 " s.setrole WHERE rolname = 'tomb_1'"),
		"temp_file_limit=64MB,log_min_messages=fatal,log_min_error_statement="
		"panic");
	cr_expect_str_eq(pgtest_ask(root,
				    "SELECT count(*) FROM pg_roles WHERE rolcanlogin AND"
				    " rolname ~ '^(lych_|tomb_)' AND rolname <>"
				    " 'lych_migrate' AND NOT (rolsuper OR rolcreaterole"
				    " OR rolcreatedb OR rolreplication OR rolbypassrls)"),
			 "3");
	cr_expect_str_eq(pgtest_ask(root,
				    "SELECT count(*) FROM pg_authid WHERE rolcanlogin AND"
				    " coalesce(rolpassword, '') NOT LIKE"
				    " 'SCRAM-SHA-256$%'"),
			 "0");
	cr_expect_str_eq(pgtest_ask(root,
				    "SELECT rolcanlogin FROM pg_roles WHERE rolname ="
				    " 'lych_owner'"),
			 "f");
	cr_expect_str_eq(pgtest_ask(root,
				    "SELECT count(*) FROM pg_database WHERE"
				    " has_database_privilege('tomb_1', oid, 'CONNECT')"
				    " AND datname <> 'template0'"),
			 "1");
	PQfinish(root);
	FILE *f = fopen(pgtest_path("log"), "re");
	cr_assert(f);
	size_t n = fread(log, 1, sizeof(log) - 1, f);
	(void)fclose(f);
	cr_assert(n > 0);
	log[n] = 0;
	cr_expect(strstr(log, "set_login") != NULL); /* the log does show statements */
	static const char *const names[] = {"lychgate_db_migrate", "lychgate_db_vessel",
					    "lychgate_db_watchdog", "lychgate_db_tomb"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		cr_expect(strstr(log, pgtest_secret(names[i])) == NULL, "%s", names[i]);
	cr_expect(strstr(log, "SCRAM-SHA-256$4096") == NULL);
}

Test(migrate, a_tomb_that_holds_its_own_row_delays_it_for_a_moment)
{
	usec_t began;

	good();
	PGconn *tomb = pgtest_connect("tomb_1");
	(void)pgtest_ask(tomb, "SET idle_in_transaction_session_timeout = 0");
	(void)pgtest_ask(tomb, "BEGIN");
	cr_expect_str_eq(pgtest_ask(tomb, "ALTER ROLE tomb_1 SET work_mem = '1GB'"), "");
	cr_expect_str_eq(pgtest_ask(tomb, "ALTER ROLE tomb_1 PASSWORD 'mine'"), "");
	began = clock_boot_usec();
	good();
	cr_expect_lt(clock_boot_usec() - began, 10 * USEC_PER_SEC);
	cr_expect(strncmp(pgtest_ask(tomb, "COMMIT"), "ERROR", 5) == 0);
	PQfinish(tomb);
	/* its password is the one that was given */
	PQfinish(pgtest_connect("tomb_1"));
}

Test(migrate, names_and_secrets_are_checked)
{
	struct err err = ERR_INIT;
	int applied = -1;

	good();
	cr_expect(migrate("secrets", "lych_owner", &applied, &err) < 0);
	cr_expect(migrate("secrets", "tomb_1; DROP ROLE x", &applied, &err) < 0);
	cr_expect(migrate("secrets", "postgres", &applied, &err) < 0);
	cr_expect(migrate("nowhere", "tomb_1", &applied, &err) < 0);
	char *path = xstrdup(pgtest_path("secrets/lychgate_db_vessel"));
	cr_assert(chmod(path, 0644) == 0);
	err_clear(&err);
	cr_expect(migrate("secrets", "tomb_1", &applied, &err) < 0);
	cr_expect_eq(err.id, ERRID_SECRET_FILE, "%s", err.msg);
	cr_assert(chmod(path, 0600) == 0);
	free(path);
}

Test(migrate, the_vessel_and_the_tomb_can_log_in)
{
	good();
	PQfinish(pgtest_connect("lych_vessel"));
	PQfinish(pgtest_connect("lych_watchdog"));
	PQfinish(pgtest_connect("tomb_1"));
}
