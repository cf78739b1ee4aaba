/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych restore, its parts: cmd_restore.c owns the order of steps; restore_archive.c what
 * the archive says and who made it, restore_rows.c the database, restore_place.c what is
 * there already and the exchange; restore_embedded.c and restore_pod.c own the new
 * cluster's server and its migration.
 */
#ifndef LYCH_CLI_BACKUP_RESTORE_H
#define LYCH_CLI_BACKUP_RESTORE_H

#include "cli/backup/backup_key.h"
#include "cli/backup/copy_text.h"
#include "cli/backup/pgtool.h"
#include "cli/local/up.h"
#include "common/attr.h"
#include "common/buf.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stdint.h>

#define RESTORE_MIGRATE_TIMEOUT (300 * USEC_PER_SEC)
#define RESTORE_START_TIMEOUT (60 * USEC_PER_SEC)

struct restore;
struct restore_ops {
	const char *store; /* of the secrets: secret.h */
	/* A new cluster below r->new.data, its server up, r->tool open. */
	int (*start)(struct restore *r, struct err *err);
	/* Roles, passwords and schema as this release wants them. to: the schema of that
	 * version and no more; NULL: all. */
	int (*migrate)(struct restore *r, const char *to, struct err *err);
	/* Cleanly, or it is an error; nothing where nothing runs. */
	int (*stop)(struct restore *r, struct err *err);
};
extern const struct restore_ops restore_embedded, restore_pod;

struct restore_args {
	bool json, force, pod, is_unsealed;
	const char *file, *code_file;
};

struct restore {
	const struct restore_args *a;
	const struct restore_ops *ops;
	struct paths p;	  /* of the user */
	struct paths new; /* the same, with data beside it; borrows */
	struct conf conf; /* of the user; never the archive's */
	int new_fd;	  /* DATA.restore */
	struct pgtool tool;
	/* the archive */
	int out; /* the file of it that is being written */
	struct buf info_text;
	struct json *info;
	bool in_info, in_rows;
	uint64_t schema, jobs, bytes;
	struct copy_text rows;
	/* who made it */
	struct backup_key key;
	bool has_key;	 /* key is the one that it is sealed with, */
	bool key_is_new; /* and this machine has none */
	/* the outcome */
	uint64_t held; /* jobs that may not begin by themselves */
	char *kept;    /* DATA.before-TIME, when something was there */
	/* embedded */
	struct pg_cluster pg;
	pid_t server;
	char *vessel;
	/* pod */
	struct podman podman;
	char *pg_dir, *cluster; /* what its containers mount */
	bool is_started;
};

/* ---- restore_archive.c ------------------------------------------------------ */
/* Reads all of it; nothing is made. ERRID_BACKUP_DAMAGED, _VERSION, and unless it shall
 * not be looked at _SEAL, _UNSEALED, _CODE, _NO_CODE: r->key is what it is sealed with. */
MUST_CHECK int restore_check(struct restore *r, int fd, struct err *err);
/* Below r->new_fd, and all is checked again. */
MUST_CHECK int restore_extract(struct restore *r, int fd, struct err *err);

/* ---- restore_rows.c --------------------------------------------------------- */
/* The new cluster's database, of the rows that were extracted, which are removed. */
MUST_CHECK int restore_rows(struct restore *r, struct err *err);

/* ---- restore_place.c -------------------------------------------------------- */
/* DATA.restore, new, and r->new_fd. One that is there is removed when a restore that was cut
 * off left it, else refused. */
MUST_CHECK int restore_beside_make(struct restore *r, struct err *err);
void restore_beside_remove(const struct restore *r);
/* *ret_empty: no installation, or no directory. One is refused unless forced. */
MUST_CHECK int restore_place_check(const struct restore *r, bool *ret_empty,
				   struct err *err);
/* The lock of a directory, as a descriptor. */
MUST_CHECK int restore_lock(const char *dir, struct err *err);
MUST_CHECK int restore_remove(const char *path, struct err *err);
/* What the gate refuses is this machine's, whatever the archive says. */
MUST_CHECK int restore_own_terms(const struct restore *r, struct err *err);
/* The new directory takes the old one's place; r->kept. */
MUST_CHECK int restore_exchange(struct restore *r, bool was_empty, struct err *err);
/* The configuration, where there is none. What was done, for people. */
const char *restore_config(const struct restore *r);

#endif
