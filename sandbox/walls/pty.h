/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * The two sides of a job's own terminal.
 */
#ifndef LYCH_SANDBOX_WALLS_PTY_H
#define LYCH_SANDBOX_WALLS_PTY_H

#include "common/attr.h"
#include "common/err.h"
#include "sandbox/contract/terminal.h"

/* In the private root. ret: the caller's to close; O_CLOEXEC, nobody's controlling terminal, the
 * master does not block. ERRID_TTY_JOB. */
MUST_CHECK int pty_make(const struct sbx_terminal *like, int ret[TERMINAL_FDS],
			struct err *err);

#endif
