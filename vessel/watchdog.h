/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Ends database sessions of tombs that sit in a transaction (watch_api.sweep), once a
 * second, over a connection of its own: the role has no other right.
 */
#ifndef LYCH_VESSEL_WATCHDOG_H
#define LYCH_VESSEL_WATCHDOG_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"

struct watchdog;

struct watchdog_config {
	const char *socket_dir; /* PostgreSQL's */
	const char *password;	/* of lych_watchdog; copied */
	/* A tomb's session was ended: worth a log line and an audit event. */
	void (*on_kill)(const char *role, const char *why, void *arg);
	/* A sweep failed; the next one comes all the same. */
	void (*on_error)(const struct err *err, void *arg);
	void *arg;
};

MUST_CHECK int watchdog_new(struct loop *l, const struct watchdog_config *cfg,
			    struct watchdog **ret, struct err *err);
void watchdog_free(struct watchdog *w); /* NULL is fine */

#endif
