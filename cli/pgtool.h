/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL's own client programs (pg_dump, pg_restore, psql) over the private cluster's
 * socket, as its superuser. The password goes through a file 0600 in a directory of ours
 * that exists for this time, never argv or the environment.
 */
#ifndef LYCH_CLI_PGTOOL_H
#define LYCH_CLI_PGTOOL_H

#include "cli/up.h"

struct pgtool {
	const struct pg_cluster *pg;
	const char *socket_dir;
	char *passfile;
	char **env;
};
/* tmp: a private directory; secrets: that of lychgate_db_migrate. */
MUST_CHECK int pgtool_open(struct pgtool *t, const struct pg_cluster *pg,
			   const char *socket_dir, const char *secrets, const char *tmp,
			   struct err *err);
void pgtool_close(struct pgtool *t);
/* args: NULL-terminated, after the connection's. */
MUST_CHECK int pgtool_run(const struct pgtool *t, const char *program,
			  const char *const *args, char **ret_output, struct err *err);
/* One number that a constant statement on `database` answers. */
MUST_CHECK int pgtool_number(const struct pgtool *t, const char *database,
			     const char *sql, uint64_t *ret, struct err *err);

#endif
