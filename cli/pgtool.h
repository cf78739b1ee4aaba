/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL's own client programs (pg_dump, pg_restore, psql), as its superuser: on the
 * host, over the private cluster's socket, or in the phylactery's container, where they and
 * the password are. The password goes through a file: on the host 0600 in a directory of
 * ours that exists for this time, in the container one without a name; never argv or the
 * environment.
 */
#ifndef LYCH_CLI_PGTOOL_H
#define LYCH_CLI_PGTOOL_H

#include "cli/podman.h"
#include "cli/up.h"

struct pgtool {
	unsigned major; /* of the programs */
	char **env;
	/* on the host; bin is borrowed, NULL in a container */
	const char *bin, *socket_dir;
	char *passfile;
	/* in a container; borrowed */
	const struct podman *podman;
	const char *container;
	const char *outside; /* a directory of the host that the container mounts ... */
};
/* ... there. */
#define PGTOOL_INSIDE "/var/lib/lychgate/phylactery"

/* On the host. tmp: a private directory; secrets: that of lychgate_db_migrate. */
MUST_CHECK int pgtool_open(struct pgtool *t, const struct pg_cluster *pg,
			   const char *socket_dir, const char *secrets, const char *tmp,
			   struct err *err);
/* In a running container, whose server must answer. outside: what it mounts as
 * PGTOOL_INSIDE. All three are borrowed until pgtool_close(). */
MUST_CHECK int pgtool_open_container(struct pgtool *t, const struct podman *podman,
				     const char *container, const char *outside,
				     struct err *err);
void pgtool_close(struct pgtool *t);
/* The name that the programs know a file by; on the host its own. Caller frees. */
char *pgtool_path(const struct pgtool *t, const char *path) MUST_CHECK;
/* args: NULL-terminated, after the connection's. */
MUST_CHECK int pgtool_run(const struct pgtool *t, const char *program,
			  const char *const *args, char **ret_output, struct err *err);
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
