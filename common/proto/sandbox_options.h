/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych, lych-sandbox and keeper.
 * What is said of an option that lych-sandbox does not have.
 */
#ifndef LYCH_COMMON_PROTO_SANDBOX_OPTIONS_H
#define LYCH_COMMON_PROTO_SANDBOX_OPTIONS_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>

/* -1 with this error for a name of len bytes, and with the option that was perhaps meant. */
int sandbox_option_unknown(enum err_id id, const char *name, size_t len, struct err *err);

#endif
