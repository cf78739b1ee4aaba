/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych restore in embedded mode: the host's PostgreSQL, secrets made anew.
 */
#include "cli/backup/restore.h"

#include "cli/base/proc.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define LOG_MAX ((size_t)1 << 20)

/* The log goes with what is made: its last line is what stays of it. */
static int server_failed(const struct restore *r, const char *what, struct err *err)
{
	cleanup_free char *text = NULL;
	struct err ignored = ERR_INIT;
	const char *line = "it wrote no log";
	size_t len = 0;

	if (fs_read_file(AT_FDCWD, r->pg.log, LOG_MAX, &text, &len, &ignored) == 0 &&
	    len) {
		text[len - (text[len - 1] == '\n')] = '\0';
		line = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
	}
	return err_set_id(err, ERRID_START_DB, "%s: %.300s", what, line);
}

static int server_start(struct restore *r, struct err *err)
{
	usec_t deadline = clock_boot_usec() + RESTORE_START_TIMEOUT;
	cleanup_env char **argv = NULL;
	cleanup_env char **env = proc_env();
	cleanup_close int log = -1;

	if (pg_configure(&r->new, &r->pg, err) < 0)
		return -1;
	argv = pg_server_argv(&r->new, &r->pg);
	log = open(r->pg.log, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		   0600);
	if (log < 0)
		return err_sys(err, "%s", r->pg.log);
	const struct proc_spec spec = {
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.in = -1,
		.out = log,
		.err = log,
		.ready_fd = -1,
		.death_signal = SIGINT,
	};

	if (proc_start(&spec, &r->server, err) < 0)
		return -1;
	while (!pg_is_ready(&r->pg, r->server)) {
		struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};

		bool is_dead = waitpid(r->server, NULL, WNOHANG) == r->server;

		if (is_dead)
			r->server = 0;
		if (is_dead || clock_boot_usec() >= deadline)
			return server_failed(r, "the new cluster", err);
		(void)nanosleep(&nap, NULL);
	}
	return 0;
}

static int server_stop(struct restore *r, struct err *err)
{
	int status = 0;

	if (r->server <= 0)
		return 0;
	(void)kill(r->server, SIGINT);
	while (waitpid(r->server, &status, 0) < 0 && errno == EINTR)
		;
	r->server = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return server_failed(r, "the new cluster did not stop cleanly", err);
	return 0;
}

static int migrate(struct restore *r, const char *to, struct err *err)
{
	cleanup_env char **env = proc_env();

	return up_migrate(r->vessel, &r->new, to, (const char *const *)env,
			  RESTORE_MIGRATE_TIMEOUT, err);
}

static int start(struct restore *r, struct err *err)
{
	cleanup_free char *secrets = xasprintf("%s/secrets", r->new.data);

	if (paths_program("lych-vessel", &r->vessel, err) < 0 ||
	    pg_prepare(&r->new, r->conf.postgres_bin, NULL, &r->pg, err) < 0)
		return -1;
	if (server_start(r, err) < 0)
		return -1;
	return pgtool_open(&r->tool, &r->pg, r->new.pg_dir, secrets, r->new.data, err);
}

static int stop(struct restore *r, struct err *err)
{
	int rc;

	rc = server_stop(r, err);
	pg_cluster_done(&r->pg);
	free(r->vessel);
	r->vessel = NULL;
	return rc;
}

const struct restore_ops restore_embedded = {
	.store = "files",
	.start = start,
	.migrate = migrate,
	.stop = stop,
};
