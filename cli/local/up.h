/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The embedded starter. up_pg.c owns the private PostgreSQL cluster, up_wall.c
 * the tomb's wall, up_cgroup.c its group, supervise.c the processes, cmd_up.c the
 * commands.
 */
#ifndef LYCH_CLI_LOCAL_UP_H
#define LYCH_CLI_LOCAL_UP_H

#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/clock.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TOMB_NAME "tomb_1"
#define STARTER_STATE                                                                    \
	"starter.json" /* in the data directory: who runs, for status and down */

/* ---- up_pg.c ------------------------------------------------------------- */
struct pg_cluster {
	char *bin;  /* directory with initdb and postgres */
	char *data; /* <data>/phylactery/data */
	char *log;  /* <data>/phylactery/log/postgres.log */
	unsigned major;
	int lock_fd; /* <data>/phylactery/lock: whoever holds it may run the server */
};
void pg_cluster_done(struct pg_cluster *c);
/* Of memory of its own that a process of the server may have (what all share is apart): a
 * login can ask for any amount. */
#define PG_DATA_MAX_BYTES ((uint64_t)256 << 20)
/* Find the programs of the cluster that is there; nothing is made. */
MUST_CHECK int pg_find(const struct paths *p, const char *conf_bin,
		       struct pg_cluster *ret, struct err *err);
/* Find the programs, check the version of what is there, build the cluster on first
 * use (in data.tmp, renamed when complete). Nothing is touched on a refusal. secrets: the
 * directory that holds them; NULL: <data>/secrets, and what is missing there is made. */
MUST_CHECK int pg_prepare(const struct paths *p, const char *conf_bin,
			  const char *secrets, struct pg_cluster *ret, struct err *err);
/* postgresql.conf and pg_hba.conf of this release; a server left over by a killed starter
 * is stopped first. */
MUST_CHECK int pg_configure(const struct paths *p, const struct pg_cluster *c,
			    struct err *err);
/* argv of the server (NULL-terminated, caller frees with proc_env_free). */
char **pg_server_argv(const struct paths *p, const struct pg_cluster *c) MUST_CHECK;
/* Does postmaster.pid say that this server takes connections? */
bool pg_is_ready(const struct pg_cluster *c, pid_t pid);

/* ---- up_migrate.c -------------------------------------------------------- */
/* Schema, roles and passwords as this release wants them, for every tomb that has secrets
 * in <data>/secrets; those of TOMB_NAME are made when it has none. to: that version of the
 * schema, and no logins; NULL: the newest. */
MUST_CHECK int up_migrate(const char *vessel, const struct paths *p, const char *to,
			  const char *const *env, usec_t timeout, struct err *err);

/* ---- supervise.c --------------------------------------------------------- */
struct supervise {
	const struct paths *paths;
	const struct conf *conf;
	struct pg_cluster pg;
	char *self, *scribe, *vessel, *tomb, *sandbox, *tools;
	int lock_fd;	/* <data>/lock, held */
	int *report_fd; /* `lych up --detach` listens: "ok" is written and it becomes -1;
			   else it is -1 */
};
/* Migrate, and start vessel and tomb anew (SIGHUP is a terminal's that was closed). */
#define STARTER_RESTART_SIGNAL SIGUSR1
/* Start everything, watch it, stop it on SIGTERM or SIGINT. 0 after a clean stop. */
MUST_CHECK int supervise_run(struct supervise *s, struct err *err);

/* ---- starter.c ----------------------------------------------------------- */
/* What a starter says of itself in STARTER_STATE. */
struct starter_state {
	char state[16]; /* starting, up, restarting, stopping */
	char *runtime;	/* where its sockets are; caller frees */
	uint64_t generation;
};
MUST_CHECK int starter_state_read(const struct paths *p, struct starter_state *ret,
				  struct err *err);
/* The process that holds the data directory, as a descriptor that cannot come to mean
 * another one; -1 and *ret_pid 0: nobody does. */
MUST_CHECK int starter_hold(const struct paths *p, int *ret_pidfd, pid_t *ret_pid,
			    struct err *err);
/* Is the holder of the data directory a starter? ERRID_START_LOCKED says what else it is, and what
 * to do. */
MUST_CHECK int starter_check_holder(const struct paths *p, pid_t holder, struct err *err);
/* Ask a running starter to start its readers of secrets anew, and wait until they are
 * ready. *ret_ran: false when none runs. */
MUST_CHECK int starter_restart(const struct paths *p, bool *ret_ran, struct err *err);

/* ---- up_cgroup.c --------------------------------------------------------- */
/* NULL: a user manager can give the tomb a scope with memory and pids delegated. Else why
 * not. */
const char *up_no_cgroup_reason(void);
/* Which of cpu, memory and pids the user manager was not given, as "cpu, pids". NULL: it has
 * all, or there is none to ask. The caller frees it. */
char *up_missing_controllers(void);
/* Inside that scope. *ret_jobs: the group for the jobs' leaves; or NULL and *ret_reason
 * when the scope was not given both controllers. -1: they are there, but it failed. */
MUST_CHECK int up_cgroup_prepare(char **ret_jobs, char **ret_reason, struct err *err);
/* The tomb's guard writes it before READY=1 to the ready pipe, with that reason. */
#define UP_NO_CGROUP "NO_CGROUP="

#endif
