/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See pgtool.h.
 */
#include "cli/backup/pgtool.h"

#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <fcntl.h>
#include <sys/wait.h>

#define TOOL_TIMEOUT (3600 * USEC_PER_SEC)

/* "*:*:*:lych_migrate:PASSWORD", as libpq reads it. */
static int write_passfile(struct pgtool *t, const char *secrets, const char *tmp,
			  struct err *err)
{
	cleanup_close int dirfd = open(secrets, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int tmpfd = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char password[256], line[320];
	int r;

	if (dirfd < 0 || tmpfd < 0)
		return err_sys(err, "open %s, %s", secrets, tmp);
	if (fs_read_secret(dirfd, "lychgate_db_migrate", password, sizeof(password),
			   err) < 0)
		return -1;
	r = str_fmt(line, sizeof(line), "*:*:*:lych_migrate:%s\n", password);
	if (r == 0)
		r = fs_write_atomic(tmpfd, "pgpass", line, strlen(line), 0600, err);
	explicit_bzero(password, sizeof(password));
	explicit_bzero(line, sizeof(line));
	if (r == 0)
		t->passfile = xasprintf("%s/pgpass", tmp);
	return r;
}

int pgtool_open(struct pgtool *t, const struct pg_cluster *pg, const char *socket_dir,
		const char *secrets, const char *tmp, struct err *err)
{
	size_t n = 0;

	*t = (struct pgtool){.psql = xasprintf("%s/psql", pg->bin),
			     .socket_dir = socket_dir};
	if (access(t->psql, X_OK) < 0)
		return err_set_id(err, ERRID_START_TOOL,
				  "%s: install the package postgresql-client-%u", t->psql,
				  pg->major);
	if (write_passfile(t, secrets, tmp, err) < 0)
		return -1;
	t->env = proc_env();
	while (t->env[n])
		n++;
	t->env = xreallocarray(t->env, n + 3, sizeof(*t->env));
	t->env[n] = xasprintf("PGPASSFILE=%s", t->passfile);
	t->env[n + 1] = xstrdup("PGCONNECT_TIMEOUT=20");
	t->env[n + 2] = NULL;
	return 0;
}

int pgtool_open_container(struct pgtool *t, const struct podman *podman,
			  const char *container, struct err *err)
{
	uint64_t one = 0;

	*t = (struct pgtool){.podman = podman, .container = container};
	t->env = proc_env();
	return pgtool_number(t, "postgres", "SELECT 1", &one, err);
}

void pgtool_close(struct pgtool *t)
{
	if (t->passfile)
		(void)unlink(t->passfile);
	free(t->passfile);
	free(t->psql);
	proc_env_free(t->env);
	*t = (struct pgtool){0};
}

/* The program and the connection: the container's own `lych _pgtool` knows both. */
static size_t begin_args(const struct pgtool *t, bool has_in, const char **argv)
{
	const char *const here[] = {t->psql, "-h",	     t->socket_dir,
				    "-U",    "lych_migrate", "--no-password"};
	const char *const there[] = {
		t->container ? t->podman->program : NULL,
		"exec",
		has_in ? "--interactive" : "--interactive=false",
		t->container,
		"/usr/bin/lych",
		"_pgtool",
		"psql",
	};
	const char *const *from = t->container ? there : here;
	size_t n = t->container ? ARRAY_SIZE(there) : ARRAY_SIZE(here);

	memcpy(argv, from, n * sizeof(*argv));
	return n;
}

#define FIXED_ARGS_MAX 20

/* Podman's warnings may stand around it: the line that is a number. */
int pgtool_number(const struct pgtool *t, const char *database, const char *sql,
		  uint64_t *ret, struct err *err)
{
	const char *const args[] = {"-X",     "-q", "-A", "-t", "-d",
				    database, "-c", sql,  NULL};
	const char *argv[FIXED_ARGS_MAX + ARRAY_SIZE(args)];
	size_t n = begin_args(t, false, argv);
	cleanup_free char *out = NULL;

	memcpy(argv + n, args, sizeof(args));
	if (proc_run(argv, (const char *const *)t->env, NULL, TOOL_TIMEOUT,
		     ERRID_BACKUP_FAILED, &out, err) < 0)
		return -1;
	for (char *at = out, *next; *at; at = next) {
		struct err ignored = ERR_INIT;

		next = at + strcspn(at, "\n");
		if (*next)
			*next++ = '\0';
		if (parse_u64(at, 0, INT64_MAX, ret, &ignored) == 0)
			return 0;
	}
	return err_set_id(err, ERRID_BACKUP_FAILED, "psql's answer is no number");
}

#define ERROR_WORD "ERROR:  "
#define SQLSTATE_LEN 5

/* "ERROR:  22P02: invalid input ..." is what the server said; NULL: it said nothing. */
static char *find_error(char *said)
{
	for (char *at = said; at && *at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!str_starts(at, ERROR_WORD))
			continue;
		at[strcspn(at, "\n")] = '\0';
		return at + strlen(ERROR_WORD);
	}
	return NULL;
}

/* Classes 22 (values), 23 (constraints) and 54 (too large for the server). */
static bool is_of_rows(const char *error)
{
	return error && strlen(error) > SQLSTATE_LEN && error[SQLSTATE_LEN] == ':' &&
	       (str_starts(error, "22") || str_starts(error, "23") ||
		str_starts(error, "54"));
}

int pgtool_script(const struct pgtool *t, const char *const *statements, int in, int out,
		  bool is_one, enum err_id bad_rows, struct err *err)
{
	static const char *const args[] = {
		"-X", "-q",	 "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose",
		"-d", "lychgate"};
	const char *argv[FIXED_ARGS_MAX + 2 * PGTOOL_STATEMENTS_MAX + 1];
	size_t n = begin_args(t, in >= 0, argv);
	cleanup_free char *said = NULL;
	const char *error;
	int status = 0;

	memcpy(argv + n, args, sizeof(args));
	n += ARRAY_SIZE(args);
	if (is_one)
		argv[n++] = "-1";
	for (; *statements; statements++) {
		assert(n + 2 < ARRAY_SIZE(argv));
		argv[n++] = "-c";
		argv[n++] = *statements;
	}
	argv[n] = NULL;
	if (proc_pipe(argv, (const char *const *)t->env, in, out, TOOL_TIMEOUT, &said,
		      &status, err) < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (proc_says_disk_full(said))
		return err_set_id(err, ERRID_CORE_DISK_FULL, "%s", proc_why(said));
	error = find_error(said);
	return err_set_id(err, is_of_rows(error) ? bad_rows : ERRID_BACKUP_FAILED,
			  "psql: %s", error ? error : proc_why(said));
}
