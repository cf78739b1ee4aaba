/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * The caller's home directory, with every key in it, is shown only when the command line says
 * so with a word of its own: '--rw ~' is written in a hurry, and so is '--workspace .' there.
 */
#ifndef LYCH_SANDBOX_HOME_H
#define LYCH_SANDBOX_HOME_H

#include "common/attr.h"
#include "common/err.h"
#include "sandbox/contract/sandbox.h"
#include <stdbool.h>

/* Of a command line: no path that is shown may be, or hold, the home directory, but with
 * --home. It is that of the user's line of /etc/passwd: the sandbox reads no variable. ERRID_SPEC_PATH. */
MUST_CHECK int home_check(const struct sbx_spec *s, struct err *err);

/* Is the home directory that one, or below it? real: a real path. */
bool home_is_below(const char *real);

#endif
