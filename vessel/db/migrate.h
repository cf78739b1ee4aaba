/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * `lych-vessel migrate`: a oneshot that brings the private cluster to this
 * program's schema and sets the logins' passwords. Run before `serve`, at every
 * start: it changes nothing that is right already.
 */
#ifndef LYCH_VESSEL_DB_MIGRATE_H
#define LYCH_VESSEL_DB_MIGRATE_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

#define MIGRATE_TOMBS_MAX 64

struct migrate_config {
	const char *socket_dir;
	const char *secrets_dir;
	const char *const *tombs; /* role names tomb_... */
	size_t n_tombs;
	bool restart_audit; /* a new numbering of the outbox */
	/* No further than this version, and no logins: a place for rows of that version.
	 * 0: the newest. */
	unsigned to;
};
/* ERRID_START_DB, _START_MIGRATION, _START_SCHEMA, _START_SCHEMA_GONE or _SECRET_*.
 * *ret_applied: how many ran now. */
MUST_CHECK int migrate_run(const struct migrate_config *cfg, int *ret_applied,
			   struct err *err);
/* The cluster's owner has the new password that its secret's file holds beside the old one. */
MUST_CHECK int migrate_rotate_owner(const struct migrate_config *cfg, struct err *err);
/* The schema that this program is built for, and the oldest that it can upgrade. */
unsigned migrate_schema_version(void);
unsigned migrate_schema_first(void);

#endif
