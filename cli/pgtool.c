/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pgtool.h"

#include "cli/proc.h"
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

	*t = (struct pgtool){
		.major = pg->major, .bin = pg->bin, .socket_dir = socket_dir};
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
			  const char *container, const char *outside, struct err *err)
{
	uint64_t version = 0;

	*t = (struct pgtool){
		.podman = podman, .container = container, .outside = outside};
	t->env = proc_env();
	if (pgtool_number(t, "postgres",
			  "SELECT current_setting('server_version_num')::int", &version,
			  err) < 0)
		return -1;
	t->major = (unsigned)(version / 10000);
	return 0;
}

void pgtool_close(struct pgtool *t)
{
	if (t->passfile)
		(void)unlink(t->passfile);
	free(t->passfile);
	proc_env_free(t->env);
	*t = (struct pgtool){0};
}

char *pgtool_path(const struct pgtool *t, const char *path)
{
	size_t n = t->outside ? strlen(t->outside) : 0;

	return t->outside && strncmp(path, t->outside, n) == 0
		       ? xasprintf(PGTOOL_INSIDE "%s", path + n)
		       : xstrdup(path);
}

/* The program and the connection: the container's own `lych _pgtool` knows both. */
static int begin_args(const struct pgtool *t, const char *program, bool has_in,
		      char **ret_path, const char **argv, struct err *err)
{
	const char *const host[] = {"-h",	    t->socket_dir,   "-U",
				    "lych_migrate", "--no-password", NULL};
	size_t n = 0;

	if (t->container) {
		argv[n++] = t->podman->program;
		argv[n++] = "exec";
		argv[n++] = has_in ? "--interactive" : "--interactive=false";
		argv[n++] = t->container;
		argv[n++] = "/usr/bin/lych";
		argv[n++] = "_pgtool";
		argv[n++] = program;
		return (int)n;
	}
	*ret_path = xasprintf("%s/%s", t->bin, program);
	if (access(*ret_path, X_OK) < 0)
		return err_set_id(err, ERRID_START_TOOL,
				  "%s: install the package postgresql-client-%u",
				  *ret_path, t->major);
	argv[n++] = *ret_path;
	for (size_t i = 0; host[i]; i++)
		argv[n++] = host[i];
	return (int)n;
}

int pgtool_run(const struct pgtool *t, const char *program, const char *const *args,
	       char **ret_output, struct err *err)
{
	cleanup_free char *path = NULL;
	const char *argv[24];
	int n = begin_args(t, program, false, &path, argv, err);

	if (n < 0)
		return -1;
	for (; *args; args++) {
		if ((size_t)n + 1 >= ARRAY_SIZE(argv))
			return err_set(err, ERR_INTERNAL, "too many arguments");
		argv[n++] = *args;
	}
	argv[n] = NULL;
	return proc_run(argv, (const char *const *)t->env, NULL, TOOL_TIMEOUT,
			ERRID_BACKUP_FAILED, ret_output, err);
}

/* Podman's warnings may stand around it: the line that is a number. */
int pgtool_number(const struct pgtool *t, const char *database, const char *sql,
		  uint64_t *ret, struct err *err)
{
	const char *const args[] = {"-X",     "-q", "-A", "-t", "-d",
				    database, "-c", sql,  NULL};
	cleanup_free char *out = NULL;

	if (pgtool_run(t, "psql", args, &out, err) < 0)
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

#define FIXED_ARGS_MAX 20
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
	cleanup_free char *path = NULL;
	cleanup_free char *said = NULL;
	int status = 0, r = begin_args(t, "psql", in >= 0, &path, argv, err);
	size_t n = (size_t)r;
	const char *error;

	if (r < 0)
		return -1;

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
