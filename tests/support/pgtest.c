/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/pgtest.h"
#include "common/id.h"
#include "common/mem.h"
#include <assert.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64];

/* Criterion executes every test in a fresh process, whose parent called pgtest_start().
 */
static void set_dir(pid_t runner)
{
	if (!dir[0] && snprintf(dir, sizeof(dir), "/tmp/ly-pg-%d", (int)runner) < 0)
		abort();
}

static void run(const char *const *argv)
{
	extern char **environ;
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv,
			 environ) != 0)
		abort();
	if (waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "pgtest: %s failed\n", argv[1]);
		abort();
	}
}

void pgtest_pg(const char *verb)
{
	const char *const argv[] = {"tests/support/pg", verb, dir, NULL};

	set_dir(getppid());
	run(argv);
}

const char *pgtest_start(void)
{
	set_dir(getpid());
	if (mkdir(dir, 0700) < 0)
		abort();
	pgtest_pg("start");
	return dir;
}

void pgtest_stop(void)
{
	const char *const argv[] = {"rm", "-rf", dir, NULL};

	pgtest_pg("stop");
	run(argv);
}

const char *pgtest_path(const char *name)
{
	static char path[128];

	set_dir(getppid());
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		abort();
	return path;
}

void pgtest_lock(void)
{
	int fd = open(pgtest_path("lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		abort();
}

const char *pgtest_secret(const char *name)
{
	static char value[256];
	char rel[64];

	if (snprintf(rel, sizeof(rel), "secrets/%s", name) >= (int)sizeof(rel))
		abort();
	FILE *f = fopen(pgtest_path(rel), "re");
	if (!f || !fgets(value, sizeof(value), f))
		abort();
	(void)fclose(f);
	return value;
}

PGconn *pgtest_connect(const char *role)
{
	char sock[128], secret[64];

	set_dir(getppid());
	if (snprintf(secret, sizeof(secret), "lychgate_db_%s%s",
		     strncmp(role, "lych_", 5) == 0 ? "" : "of_",
		     strncmp(role, "lych_", 5) == 0 ? role + 5 : role) >=
	    (int)sizeof(secret))
		abort();
	if (snprintf(sock, sizeof(sock), "%s/sock", dir) >= (int)sizeof(sock))
		abort();
	const char *const keys[] = {"host", "user", "password", "dbname", NULL};
	const char *const values[] = {sock, role, pgtest_secret(secret), "lychgate",
				      NULL};
	PGconn *c = PQconnectdbParams(keys, values, 0);
	if (PQstatus(c) != CONNECTION_OK) {
		fprintf(stderr, "pgtest: %s", PQerrorMessage(c));
		abort();
	}
	return c;
}

static const char *keep(char *s)
{
	static char *ring[16];
	static size_t next;
	char **slot = &ring[next++ % 16];

	free(*slot);
	*slot = s;
	return s;
}

static const char *answer(PGresult *r, bool rows)
{
	char *s;
	ExecStatusType status = PQresultStatus(r);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
		const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);

		s = xasprintf("ERROR %s", state ? state : "connection");
	} else if (rows) {
		s = xasprintf("%d", PQntuples(r));
	} else {
		s = xstrdup(PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
	}
	PQclear(r);
	return keep(s);
}

const char *pgtest_ask(PGconn *c, const char *sql)
{
	return answer(PQexec(c, sql), false);
}

static PGresult *exec_params(PGconn *c, const char *sql, va_list ap)
{
	const char *params[16];
	int n = 0;

	while (n < 16 && (params[n] = va_arg(ap, const char *)) != NULL)
		n++;
	return PQexecParams(c, sql, n, NULL, params, NULL, NULL, 0);
}

const char *pgtest_askp(PGconn *c, const char *sql, ...)
{
	va_list ap;

	va_start(ap, sql);
	PGresult *r = exec_params(c, sql, ap);
	va_end(ap);
	return answer(r, false);
}

const char *pgtest_rowsp(PGconn *c, const char *sql, ...)
{
	va_list ap;

	va_start(ap, sql);
	PGresult *r = exec_params(c, sql, ap);
	va_end(ap);
	return answer(r, true);
}

const char *pgtest_uuid(void)
{
	struct uuid id;

	uuid_new(&random_real, &id);
	return keep(xstrdup(id.s));
}
