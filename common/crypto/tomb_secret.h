/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Each tomb's own secrets, as starter, `lych bind`, migrate and vessel all make them from a
 * master that no tomb ever holds: its database password and its bearer on the work socket.
 * docs/SECRETS.md has the formula and known answers.
 *
 * A generation is a number that only grows; the next one makes the old secrets worthless. It
 * begins at the second in which it was made, so that a tomb whose number was forgotten does
 * not come back to a secret that it had before.
 */
#ifndef LYCH_COMMON_CRYPTO_TOMB_SECRET_H
#define LYCH_COMMON_CRYPTO_TOMB_SECRET_H

#include "common/attr.h"
#include "common/err.h"
#include "common/proto.h"
#include <stdint.h>

enum tomb_secret { TOMB_SECRET_DB, TOMB_SECRET_WORK, TOMB_SECRET_MAX_ };

#define TOMB_SECRET_SIZE 65 /* 64 hex digits */
#define TOMB_SECRET_NAME_SIZE 64
/* Where the secret lies: "lychgate_work_of_" and the tomb's name. */
#define TOMB_SECRET_DB_OF "lychgate_db_of_"
#define TOMB_SECRET_WORK_OF "lychgate_work_of_"
#define TOMB_GENERATION_OF "lychgate_generation_of_"
#define TOMB_GENERATION_SIZE 40

/* The master's name, and that of a tomb's own. */
const char *tomb_secret_master(enum tomb_secret which);
const char *tomb_secret_prefix(enum tomb_secret which);
/* The tomb's name must be usable (tomb_name_is_usable), the generation at least 1. The
 * caller wipes out. */
void tomb_secret_derive(enum tomb_secret which, const char *master, const char *tomb,
			uint64_t generation, char out[TOMB_SECRET_SIZE]);

/* "generation:N". */
void tomb_generation_write(uint64_t generation, char out[TOMB_GENERATION_SIZE]);
MUST_CHECK int tomb_generation_parse(const char *text, uint64_t *ret, struct err *err);
/* What follows it (0: none) at this second. */
uint64_t tomb_generation_next(uint64_t generation, uint64_t now_sec);

#endif
