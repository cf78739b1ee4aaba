/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Cargo.lock and go.sum, each package as `deps` of a job's spec names it. Pure; the text is the
 * user's own, and what is made of it is judged as if it had been typed (common/proto/deps.h).
 */
#ifndef LYCH_CLI_DEPS_LOCK_LINES_H
#define LYCH_CLI_DEPS_LOCK_LINES_H

#include "common/attr.h"
#include "common/err.h"
#include <stddef.h>

/* Takes one; text lives for the call. */
typedef int lock_put(void *arg, const char *text, struct err *err);

/*
 * Cargo.lock (versions 3 and 4): each crate of crates.io with its version and digest. What has no
 * source is the project's own and passed over; another source (git, another registry) is
 * refused, by its name. ERRID_SPEC_DEPS says the line.
 */
MUST_CHECK int lock_lines_cargo(const char *text, size_t len, lock_put *put, void *arg,
				struct err *err);
/* go.sum: each line. */
MUST_CHECK int lock_lines_go(const char *text, size_t len, lock_put *put, void *arg,
			     struct err *err);

#endif
