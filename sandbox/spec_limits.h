/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * The limits of a job by name: one table for "--memory 1GiB" and "--limit memory=1GiB".
 */
#ifndef LYCH_SANDBOX_SPEC_LIMITS_H
#define LYCH_SANDBOX_SPEC_LIMITS_H

#include "sandbox/contract/sandbox.h"

enum spec_limit {
#define LIMIT(symbol, name) SPEC_LIMIT_##symbol,
#include "common/proto/sandbox_options.def"
	SPEC_LIMIT_COUNT
};

/* The index of the limit with this name of len bytes; -1: there is none. */
int spec_limit_find(const char *name, size_t len);
const char *spec_limit_name(int i);
MUST_CHECK int spec_limit_set(struct sbx_spec *s, int i, const char *value,
			      struct err *err);
/* Refuses a name that is none, and lists those that are: ERRID_SPEC_KEY. */
int spec_limit_unknown(const char *name, size_t len, struct err *err);

#endif
