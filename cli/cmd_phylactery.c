/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lych _phylactery: the main process of the database's container. The same cluster as in
 * embedded mode (up_pg.c: initdb on first use, our configuration at every start), then
 * this process becomes the server: it gets the service manager's signals itself. Secrets
 * are given, never made: they belong to whoever installed the pod.
 */
#include "cli/cmd.h"
#include "cli/proc.h"
#include "cli/up.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include <fcntl.h>
#include <getopt.h>

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
		if (fcntl(c.lock_fd, F_SETFD, 0) == 0)
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
