/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The amounts of the budgets' books, as people read them.
 */
#ifndef LYCH_CLI_JOBS_AMOUNTS_H
#define LYCH_CLI_JOBS_AMOUNTS_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdint.h>

#define AMOUNT_SIZE 32

/* 2500000 -> "2.50" */
void amount_money(char out[AMOUNT_SIZE], uint64_t micro);
/* thing: "requests", "tokens", "money", "bytes", "denials", "packages". */
void amount_text(char out[AMOUNT_SIZE], const char *thing, uint64_t n);
/* Of a book of GET /v1/budget: "12 + 3 of 200", used, reserved by what is under way, the
 * limit. Caller frees. */
MUST_CHECK int amount_of_book(const struct json *book, const char *thing, char **ret,
			      struct err *err);

#endif
