/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * PostgreSQL's own client, psql, as its superuser: on the host, over the private cluster's
 * socket, or in the phylactery's container, where it and the password are. What it executes
 * are constants of this program, one argument each; rows go through stdin and stdout, of
 * which psql and server read nothing but what a COPY asks for. The password goes through a
 * file: on the host 0600 in a directory of ours that exists for this time, in the container
 * one without a name; never argv or the environment.
 */
#ifndef LYCH_CLI_BACKUP_PGTOOL_H
#define LYCH_CLI_BACKUP_PGTOOL_H

#include "cli/base/podman.h"
#include "cli/local/up.h"

struct pgtool {
	char **env;
	/* on the host; psql NULL in a container, socket_dir borrowed */
	char *psql;
	const char *socket_dir;
	char *passfile;
	/* in a container; borrowed */
	const struct podman *podman;
	const char *container;
};

/* On the host. tmp: a private directory; secrets: that of lychgate_db_migrate. */
MUST_CHECK int pgtool_open(struct pgtool *t, const struct pg_cluster *pg,
			   const char *socket_dir, const char *secrets, const char *tmp,
			   struct err *err);
/* In a running container, whose server must answer. Both are borrowed until
 * pgtool_close(). */
MUST_CHECK int pgtool_open_container(struct pgtool *t, const struct podman *podman,
				     const char *container, struct err *err);
void pgtool_close(struct pgtool *t);

/* One number that a constant statement on `database` answers. */
MUST_CHECK int pgtool_number(const struct pgtool *t, const char *database,
			     const char *sql, uint64_t *ret, struct err *err);
/* Constant statements (NULL-terminated, at most PGTOOL_STATEMENTS_MAX) on database
 * lychgate, in one session that ends with the first that fails. COPY reads `in` and writes
 * `out` (-1: nothing). is_one: as one transaction. The error is bad_rows when the server
 * refuses values or their combination, else ERRID_BACKUP_FAILED or ERRID_CORE_DISK_FULL. */
#define PGTOOL_STATEMENTS_MAX 64
MUST_CHECK int pgtool_script(const struct pgtool *t, const char *const *statements,
			     int in, int out, bool is_one, enum err_id bad_rows,
			     struct err *err);

#endif
