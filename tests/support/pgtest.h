/* SPDX-License-Identifier: Apache-2.0 */
/* A throwaway PostgreSQL for one test program, and plain libpq to judge from the outside.
 */
#ifndef LYCH_TESTS_SUPPORT_PGTEST_H
#define LYCH_TESTS_SUPPORT_PGTEST_H

#include "common/attr.h"
#include <libpq-fe.h>
#include <stddef.h>
#include <stdint.h>

/* Make the directory and start the cluster (tests/support/pg start); the path comes back.
 */
const char *pgtest_start(void);
/* Stop the cluster and remove the directory. */
void pgtest_stop(void);
/* tests/support/pg VERB DIR */
void pgtest_pg(const char *verb);
/* One test at a time on the shared cluster: held until the process ends. */
void pgtest_lock(void);
const char *pgtest_path(const char *name); /* DIR/name, static */
/* A secret's value, static. */
const char *pgtest_secret(const char *name);
/* Connect as a role; aborts when it cannot. */
PGconn *pgtest_connect(const char *role);
/* First value of the answer, "" for none or NULL, "ERROR <sqlstate>" for an error. Owned
 * by the helper, good for the next 16 calls. */
const char *pgtest_ask(PGconn *c, const char *sql);
/* The same with text parameters, ended by NULL. */
const char *pgtest_askp(PGconn *c, const char *sql, ...) __attribute__((sentinel));
/* How many rows the answer has, in the place of its first value. */
const char *pgtest_rowsp(PGconn *c, const char *sql, ...) __attribute__((sentinel));
/* A fresh one: a tomb's login has no function that makes it. Kept as the answers are. */
const char *pgtest_uuid(void);

#endif
