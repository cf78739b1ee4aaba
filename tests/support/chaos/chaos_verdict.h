/* SPDX-License-Identifier: Apache-2.0 */
/* What is right after a run of chaos_queue. What cannot be asked ends the program. */
#ifndef LYCH_TESTS_SUPPORT_CHAOS_CHAOS_VERDICT_H
#define LYCH_TESTS_SUPPORT_CHAOS_CHAOS_VERDICT_H

#include <libpq-fe.h>

/* The number that a query says. */
long chaos_count(PGconn *conn, const char *sql);
void chaos_command(PGconn *conn, const char *sql);

/* Prints what it found; how many of it may not be. ledger: the path of their ledgers. */
int chaos_verdict(PGconn *conn, const char *ledger);

#endif
