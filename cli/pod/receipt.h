/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What lych bind wrote, by name and sha256: the only proof that a unit is its own. A name
 * in it is a name of ours (unit_name_is_ours), so a receipt that somebody made up can not
 * point lych at another file.
 */
#ifndef LYCH_CLI_POD_RECEIPT_H
#define LYCH_CLI_POD_RECEIPT_H

#include "cli/pod/units.h"
#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include <stdbool.h>

#define RECEIPT_KNOWN_MAX 512

struct receipt {
	char profile[32], version[32], time[RFC3339_SIZE];
	struct receipt_file {
		char name[UNIT_NAME_MAX], sha256[SHA256_HEX_SIZE];
	} *file, *known; /* the present rendering; all that was ever written, that too */
	size_t n_files, n_known;
	char *directory; /* where they were installed; NULL: not by lych */
};

/* ERR_NOT_FOUND without one; ERRID_BIND_RECEIPT. */
MUST_CHECK int receipt_load(const char *path, struct receipt *ret, struct err *err);
/* The parser alone, for the fuzzer. */
MUST_CHECK int receipt_parse(const char *text, size_t len, struct receipt *ret,
			     struct err *err);
/* dirfd of the directory, 0600, atomically. */
MUST_CHECK int receipt_save(int dirfd, const char *name, const struct receipt *r,
			    struct err *err);
void receipt_done(struct receipt *r);
#define cleanup_receipt __attribute__((cleanup(receipt_done)))

/* The units become the present rendering, and known. */
void receipt_take_units(struct receipt *r, const char *profile, const struct unit_set *s);
bool receipt_knows_name(const struct receipt *r, const char *name);
bool receipt_knows(const struct receipt *r, const char *name, const char *sha256);

#endif
