/* SPDX-License-Identifier: Apache-2.0 */
/* The ledgers of chaos_queue's workers, compared with what the database says. */
#include "tests/support/chaos/chaos_verdict.h"

#include "common/attr.h"
#include "common/str.h"
#include <stdio.h>
#include <stdlib.h>

long chaos_count(PGconn *conn, const char *sql)
{
	PGresult *r = PQexec(conn, sql);
	uint64_t v = 0;

	if (PQresultStatus(r) != PGRES_TUPLES_OK ||
	    parse_u64(PQgetvalue(r, 0, 0), 0, INT64_MAX, &v, NULL) < 0) {
		fprintf(stderr, "chaos: %s: %s", sql, PQerrorMessage(conn));
		exit(1);
	}
	PQclear(r);
	return (long)v;
}

void chaos_command(PGconn *conn, const char *sql)
{
	PGresult *r = PQexec(conn, sql);
	ExecStatusType s = PQresultStatus(r);

	if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK && s != PGRES_COPY_IN) {
		fprintf(stderr, "chaos: %s: %s", sql, PQerrorMessage(conn));
		exit(1);
	}
	PQclear(r);
}

/* One line of the ledger is one row of four words. */
static void load_ledger(PGconn *conn, const char *path)
{
	char line[256];
	FILE *f = fopen(path, "re");

	if (!f)
		abort();
	chaos_command(conn, "CREATE TEMP TABLE led (kind text, a text, b text, c text)");
	chaos_command(conn, "COPY led FROM STDIN");
	while (fgets(line, sizeof(line), f)) {
		char row[300];
		size_t n = 0;
		int words = 1;

		for (const char *p = line; *p && *p != '\n'; p++) {
			row[n++] = *p == ' ' ? '\t' : *p;
			words += *p == ' ';
		}
		for (; words < 4; words++)
			row[n++] = '\t';
		row[n++] = '\n';
		if (PQputCopyData(conn, row, (int)n) != 1)
			abort();
	}
	(void)fclose(f);
	if (PQputCopyEnd(conn, NULL) != 1)
		abort();
	for (PGresult *r; (r = PQgetResult(conn));)
		PQclear(r);
	chaos_command(conn, "ANALYZE led");
}

/* Each counts what may not be. */
static const struct {
	const char *what, *sql;
} zero[] = {
	{"acknowledged submissions lost",
	 "SELECT count(*) FROM led LEFT JOIN lych.job j ON j.id = led.b::bigint "
	 "AND"
	 " j.request_id = led.a LEFT JOIN lych.payload p ON p.job_id = j.id AND "
	 "p.body ="
	 " convert_to('{\"argv\":[\"' || led.a || '\"]}', 'UTF8')"
	 " WHERE kind = 'A' AND p.job_id IS NULL"},
	{"acks answered ok or already but not recorded",
	 "SELECT count(*) FROM led LEFT JOIN lych.attempt t ON t.job_id = "
	 "led.a::bigint"
	 " AND t.epoch = led.b::bigint AND t.outcome = 'succeeded'"
	 " WHERE kind = 'K' AND c IN ('ok', 'already') AND t.job_id IS NULL"},
	{"jobs acknowledged twice",
	 "SELECT count(*) FROM (SELECT a FROM led WHERE kind = 'K' AND c IN"
	 " ('ok', 'already') GROUP BY a HAVING count(DISTINCT b) > 1) AS x"},
	{"an epoch granted twice", "SELECT count(*) FROM (SELECT a, b FROM led "
				   "WHERE kind = 'S' GROUP BY a, b"
				   " HAVING count(*) > 1) AS x"},
	{"results that are not of the recorded success",
	 "SELECT count(*) FROM lych.job j JOIN lych.payload p ON p.job_id = j.id"
	 " JOIN lych.attempt t ON t.job_id = j.id AND t.outcome = 'succeeded'"
	 " LEFT JOIN lych.result r ON r.job_id = j.id AND r.epoch = t.epoch"
	 " WHERE r.body IS DISTINCT FROM convert_to('{\"job\":' || j.id || "
	 "',\"epoch\":'"
	 " || t.epoch || ',\"spec\":\"' || encode(sha256(p.body), 'hex') || "
	 "'\"}',"
	 " 'UTF8')"},
	{"answers that cannot be", "SELECT count(*) FROM led WHERE kind IN ('K', 'F') AND"
				   " c NOT IN ('ok', 'already', 'stale')"},
	{"jobs in any other state than succeeded",
	 "SELECT count(*) FROM lych.job WHERE state <> 'succeeded'"},
	{"errors seen by workers", "SELECT count(*) FROM led WHERE kind = 'V'"},
	{"invariants broken", "SELECT sum(bad) FROM lych.invariants()"},
};

int chaos_verdict(PGconn *conn, const char *ledger)
{
	int bad = 0;

	load_ledger(conn, ledger);
	for (size_t i = 0; i < ARRAY_SIZE(zero); i++) {
		long n = chaos_count(conn, zero[i].sql);

		printf("%8ld %s\n", n, zero[i].what);
		bad += n != 0;
	}
	printf("%8ld jobs, %ld attempts, %ld lost leases, %ld stale answers\n",
	       chaos_count(conn, "SELECT count(*) FROM lych.job"),
	       chaos_count(conn, "SELECT count(*) FROM lych.attempt"),
	       chaos_count(conn,
			   "SELECT count(*) FROM lych.attempt WHERE outcome = 'lost'"),
	       chaos_count(conn,
			   "SELECT count(*) FROM led WHERE kind IN ('K', 'F') AND c = "
			   "'stale'"));
	if (chaos_count(conn, "SELECT count(*) FROM lych.job") < 100) {
		printf("chaos: too few jobs to mean anything\n");
		bad++;
	}
	return bad;
}
