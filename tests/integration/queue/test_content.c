/* SPDX-License-Identifier: Apache-2.0 */
/* timeout: 120 */
/* What of the database an archive has: no table is forgotten, at no version of the schema; and
 * what the role that reads rows into them may do. */
#include "cli/backup/content.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "tests/support/pgtest.h"
#include "vessel/db/migrate.h"
#include <criterion/criterion.h>
#include <criterion/hooks.h>

ReportHook(PRE_ALL)(struct criterion_test_set *set UNUSED)
{
	(void)pgtest_start();
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats UNUSED)
{
	pgtest_stop();
}

TestSuite(content, .init = pgtest_lock, .timeout = 100);

static void migrate_to(unsigned version)
{
	char *sock = xstrdup(pgtest_path("sock"));
	char *secrets = xstrdup(pgtest_path("secrets"));
	const char *const tombs[] = {"tomb_1"};
	const struct migrate_config cfg = {.socket_dir = sock,
					   .secrets_dir = secrets,
					   .tombs = tombs,
					   .n_tombs = 1,
					   .to = version};
	struct err err = ERR_INIT;
	int applied = 0;

	cr_assert_eq(migrate_run(&cfg, &applied, &err), 0, "%s", err.msg);
	free(sock);
	free(secrets);
}

/* Each is known by exactly one list. */
static void compare(PGconn *root, unsigned schema)
{
	size_t n = 0;

	for (size_t i = 0; content_table(schema, i); i++, n++)
		cr_expect_str_eq(pgtest_askp(root,
					     "SELECT count(*) FROM pg_class WHERE "
					     "relnamespace = 'lych'::regnamespace AND "
					     "relkind = 'r' AND relname = $1",
					     content_table(schema, i), NULL),
				 "1", "schema %u has no table %s", schema,
				 content_table(schema, i));
	for (size_t i = 0; content_left_out(i); i++, n++)
		for (size_t k = 0; content_table(schema, k); k++)
			cr_expect_str_neq(content_table(schema, k), content_left_out(i));
	cr_expect_eq(
		(size_t)strtoul(
			pgtest_ask(
				root,
				"SELECT count(*) FROM pg_class WHERE relnamespace ="
				" 'lych'::regnamespace AND relkind IN ('r', 'p', 'm')"),
			NULL, 10),
		n,
		"schema %u has a table that content.c does not know: say there whether "
		"an "
		"archive has it, and raise CONTENT_SCHEMA",
		schema);
	cr_expect_eq(content_sections(schema) - 1, n - 4 /* those that are left out */);
}

static void every_table_is_saved_or_left_out_with_a_reason(void)
{
	PGconn *root = NULL;

	cr_assert_eq(
		CONTENT_SCHEMA, migrate_schema_version(),
		"a migration was added: say in content.c what becomes of its tables, "
		"and raise CONTENT_SCHEMA");
	cr_assert_geq(CONTENT_SCHEMA_FIRST, migrate_schema_first(),
		      "no archive of that schema can be restored");
	cr_expect_str_eq(content_table(CONTENT_SCHEMA, CONTENT_JOBS), "job");
	for (unsigned v = CONTENT_SCHEMA_FIRST; v <= CONTENT_SCHEMA; v++) {
		migrate_to(v);
		root = root ? root : pgtest_connect("lych_migrate");
		cr_expect_eq(
			(unsigned)strtoul(
				pgtest_ask(
					root,
					"SELECT max(version) FROM lych.schema_version"),
				NULL, 10),
			v, "--to %u", v);
		compare(root, v);
	}
	/* behind the newest there is nothing, and no login is made on the way */
	migrate_to(CONTENT_SCHEMA + 5);
	cr_expect_str_eq(pgtest_ask(root, "SELECT count(*) FROM pg_roles WHERE rolname ="
					  " 'tomb_1'"),
			 "0");
	cr_expect_str_eq(pgtest_ask(root, "SELECT count(*) FROM pg_class WHERE"
					  " relnamespace = 'lych'::regnamespace AND"
					  " relkind = 'S' AND relname NOT IN"
					  " ('job_id_seq', 'audit_outbox_id_seq')"),
			 "0", "a sequence whose last number no archive has");
	PQfinish(root);
}

static void who_reads_the_rows_can_touch_no_file_and_no_program(void)
{
	static const char *const refused[] = {
		"COPY (SELECT 1) TO PROGRAM 'true'",
		"COPY lych.removed FROM PROGRAM 'true'",
		"COPY (SELECT 1) TO '/tmp/lych-test-content'",
		"COPY lych.removed FROM '/etc/passwd'",
		"SELECT pg_read_file('/etc/passwd')",
		"SELECT pg_ls_dir('/')",
		"SELECT lo_import('/etc/passwd')",
		"CREATE FUNCTION lych.x() RETURNS int LANGUAGE c AS 'x'",
		"CREATE EXTENSION file_fdw",
		"ALTER SYSTEM SET archive_command = 'true'",
		"SET session_preload_libraries = 'x'",
		"ALTER ROLE lych_owner SUPERUSER",
		"GRANT pg_execute_server_program TO lych_owner",
		"SET ROLE lych_vessel",
		"INSERT INTO lych.schema_version VALUES (99, 'x', 'x')",
	};
	PGconn *root;

	migrate_to(CONTENT_SCHEMA);
	root = pgtest_connect("lych_migrate");
	cr_expect_str_eq(
		pgtest_ask(root,
			   "SELECT concat(rolsuper, rolcreaterole, rolcreatedb, "
			   "rolcanlogin, rolreplication, rolbypassrls) FROM pg_roles "
			   "WHERE rolname = 'lych_owner'"),
		"ffffff");
	cr_expect_str_eq(pgtest_ask(root, "SELECT count(*) FROM pg_auth_members WHERE"
					  " member = 'lych_owner'::regrole"),
			 "0");
	(void)pgtest_ask(root, "SET SESSION AUTHORIZATION lych_owner");
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		cr_expect(str_starts(pgtest_ask(root, refused[i]), "ERROR "), "%s",
			  refused[i]);
	/* and each script begins by becoming it */
	struct content_script s;

	content_load(CONTENT_SCHEMA, &s);
	cr_expect_str_eq(s.statement[0], "SET SESSION AUTHORIZATION lych_owner");
	content_save(CONTENT_SCHEMA, &s);
	cr_expect_str_eq(s.statement[1], "SET SESSION AUTHORIZATION lych_owner");
	PQfinish(root);
}

/* The words that an archive may say, and those that the vessel can read. */
static void every_class_may_be_restored(void)
{
	PGconn *root = pgtest_connect("lych_migrate");

	cr_expect_str_eq(pgtest_ask(root, content_broken), "0");
	for (int i = FAIL_NONE; i < FAIL_CLASS_MAX_; i++) {
		char *word = xasprintf("'%s'", fail_class_name((enum fail_class)i));

		cr_expect(strstr(content_broken, word), "%s", word);
		free(word);
	}
	PQfinish(root);
}

/* In this order: the first needs a cluster that has no schema yet. */
Test(content, of_each_schema)
{
	every_table_is_saved_or_left_out_with_a_reason();
	who_reads_the_rows_can_touch_no_file_and_no_program();
	every_class_may_be_restored();
}
