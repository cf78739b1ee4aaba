/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Who made an archive. A recovery code is 160 random bits, shown to a person once; a key
 * is made from it, kept in the configuration directory (backup.key, 0600), and seals what
 * `lych backup` writes. Whoever has the code can make the key again, on any machine; the
 * key does not give the code. docs/OPERATIONS.md has the formulas.
 */
#ifndef LYCH_CLI_BACKUP_BACKUP_KEY_H
#define LYCH_CLI_BACKUP_BACKUP_KEY_H

#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACKUP_CODE_BYTES 20
#define BACKUP_CODE_SIZE 40 /* "8KQ2-...": 32 letters and digits, 7 dashes, NUL */
#define BACKUP_KEY_ID_SIZE 17
#define BACKUP_KEY_FILE "backup.key" /* beside codex.yaml */

struct backup_code {
	uint8_t raw[BACKUP_CODE_BYTES];
};
void backup_code_new(struct backup_code *ret);
/* Eight groups of four, of Crockford's base 32. */
void backup_code_write(const struct backup_code *code, char out[BACKUP_CODE_SIZE]);
/* As a person may have copied it: either case, dashes and blanks anywhere or nowhere, O
 * for 0, I and L for 1. ERRID_BACKUP_CODE, which does not repeat it. */
MUST_CHECK int backup_code_parse(const char *text, size_t len, struct backup_code *ret,
				 struct err *err);

struct backup_key {
	uint8_t key[SHA256_SIZE];
	char id[BACKUP_KEY_ID_SIZE]; /* which key: says nothing of it */
};
void backup_key_of(const struct backup_code *code, struct backup_key *ret);
/* The seal of these bytes, in hex. */
void backup_key_seal(const struct backup_key *key, const void *data, size_t len,
		     char out[SHA256_HEX_SIZE]);
void backup_key_wipe(struct backup_key *key);

/* *ret_has: this machine has one. ERRID_SECRET_FILE: others could read or replace it. */
MUST_CHECK int backup_key_load(const struct paths *p, struct backup_key *ret,
			       bool *ret_has, struct err *err);
/* Who makes the machine's first key waits here for whoever else does: closing *ret_fd lets the next one in. */
MUST_CHECK int backup_key_lock(const struct paths *p, int *ret_fd, struct err *err);
/* On the disk, and never in the place of another: ERRID_STORE_EXISTS. */
MUST_CHECK int backup_key_keep(const struct paths *p, const struct backup_key *key,
			       struct err *err);

#endif
