/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych _phylactery: the main process of the database's container. The same cluster as in
 * embedded mode (up_pg.c: initdb on first use, our configuration at every start), then
 * this process becomes the server: it gets the service manager's signals itself. Secrets
 * are given, never made: they belong to whoever installed the pod.
 *
 * lych _pgtool: psql, as `lych backup` and `lych restore` start it in that container
 * (pgtool.h).
 */
#include "cli/base/cmd.h"
#include "cli/base/proc.h"
#include "cli/local/up.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Where the unit mounts them (quadlet/). */
#define CONTAINER_DATA "/var/lib/lychgate"
#define CONTAINER_PG_DIR "/run/lychgate/pg"
#define CONTAINER_SECRETS "/run/secrets"

static int usage(void)
{
	(void)fputs("usage: lych _phylactery --data DIR --pg-dir DIR --secrets DIR\n",
		    stderr);
	return EXIT_USAGE;
}

/* PostgreSQL says READY=1 itself where it was built to. */
static char **server_env(void)
{
	const char *notify = getenv("NOTIFY_SOCKET");
	char **env = proc_env();
	size_t n = 0;

	if (!notify)
		return env;
	while (env[n])
		n++;
	env = xreallocarray(env, n + 2, sizeof(*env));
	env[n] = xasprintf("NOTIFY_SOCKET=%s", notify);
	env[n + 1] = NULL;
	return env;
}

/* Comes back only with an error. */
static int become_server(const struct paths *p, const char *secrets, struct err *err)
{
	struct pg_cluster c = {.lock_fd = -1};
	cleanup_env char **argv = NULL;
	cleanup_env char **env = server_env();
	int r = -1;

	if (pg_prepare(p, NULL, secrets, &c, err) == 0 && pg_configure(p, &c, err) == 0) {
		argv = pg_server_argv(p, &c);
		/* the server holds the lock as long as it lives */
		if (fcntl(c.lock_fd, F_SETFD, 0) == 0 &&
		    proc_limit_data(PG_DATA_MAX_BYTES) == 0)
			(void)execve(argv[0], argv, env);
		r = err_sys_id(err, ERRID_START_DB, "exec %s", argv[0]);
	}
	pg_cluster_done(&c);
	return r;
}

int cmd_phylactery(int argc, char **argv)
{
	static const struct option options[] = {
		{"data", required_argument, NULL, 'd'},
		{"pg-dir", required_argument, NULL, 'p'},
		{"secrets", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	struct paths p = {0};
	const char *secrets = NULL;
	struct err err = ERR_INIT;
	int c;

	log_init("phylactery", LOG_INFO_);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			p.data = optarg;
		else if (c == 'p')
			p.pg_dir = optarg;
		else if (c == 's')
			secrets = optarg;
		else
			return usage();
	}
	if (optind != argc || !p.data || !p.pg_dir || !secrets)
		return usage();
	(void)become_server(&p, secrets, &err);
	log_err(LOG_ERROR_, "the database cannot be served", &err);
	return err_exit_code(&err);
}

/* ---- _pgtool ------------------------------------------------------------------- */

/* The superuser's password, where libpq looks for it: a file that has no name. */
static int nameless_passfile(struct err *err)
{
	cleanup_close int dirfd =
		open(CONTAINER_SECRETS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* handed over by the exec; libpq takes none that others could read */
	cleanup_close int fd = memfd_create("pgpass", 0);
	char password[256], line[320];
	int r;

	if (dirfd < 0 || fd < 0 || fchmod(fd, 0600) < 0)
		return err_sys(err, "%s", CONTAINER_SECRETS);
	if (fs_read_secret(dirfd, "lychgate_db_migrate", password, sizeof(password),
			   err) < 0)
		return -1;
	r = str_fmt(line, sizeof(line), "*:*:*:lych_migrate:%s\n", password);
	if (r == 0)
		r = fs_write_all(fd, line, strlen(line), err);
	explicit_bzero(password, sizeof(password));
	explicit_bzero(line, sizeof(line));
	return r < 0 ? -1 : TAKE_FD(fd);
}

/* Comes back only with an error. */
static int become_psql(char **args, size_t n_args, struct err *err)
{
	const struct paths p = {.data = (char[]){CONTAINER_DATA}};
	struct pg_cluster c = {.lock_fd = -1};
	cleanup_env char **env = proc_env();
	cleanup_free char *path = NULL;
	cleanup_free const char **argv = xcalloc(n_args + 7, sizeof(*argv));
	size_t n_env = 0, n = 0;
	int fd = pg_find(&p, NULL, &c, err) < 0 ? -1 : nameless_passfile(err);

	if (fd < 0) {
		pg_cluster_done(&c);
		return -1;
	}
	path = xasprintf("%s/psql", c.bin);
	pg_cluster_done(&c);
	while (env[n_env])
		n_env++;
	env = xreallocarray(env, n_env + 3, sizeof(*env));
	env[n_env] = xasprintf("PGPASSFILE=/proc/self/fd/%d", fd);
	env[n_env + 1] = xstrdup("PGCONNECT_TIMEOUT=20");
	env[n_env + 2] = NULL;
	argv[n++] = path;
	argv[n++] = "-h";
	argv[n++] = CONTAINER_PG_DIR;
	argv[n++] = "-U";
	argv[n++] = "lych_migrate";
	argv[n++] = "--no-password";
	memcpy(argv + n, args, n_args * sizeof(*args));
	(void)execve(path, (char *const *)(uintptr_t)argv, env);
	return err_sys_id(err, ERRID_BACKUP_FAILED, "exec %s", path);
}

int cmd_pgtool(int argc, char **argv)
{
	struct err err = ERR_INIT;

	if (argc < 2 || !str_eq(argv[1], "psql")) {
		(void)fputs("usage: lych _pgtool psql ARGUMENT...\n", stderr);
		return EXIT_USAGE;
	}
	(void)become_psql(argv + 2, (size_t)argc - 2, &err);
	return cmd_fail(&err, false);
}
