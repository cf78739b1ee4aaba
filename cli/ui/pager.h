/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Long output on a terminal goes through the person's pager, as git's does: $PAGER, else
 * `less -FRX`, which ends by itself when all of it fits. The program is named by the person's
 * own environment and by nothing else; no file of ours and no job can name one.
 */
#ifndef LYCH_CLI_UI_PAGER_H
#define LYCH_CLI_UI_PAGER_H

#include "common/attr.h"
#include "common/err.h"

/* From here on stdout, and stderr where it is a terminal too, go to the pager. Nothing happens
 * where stdout is no terminal or a dumb one, PAGER is empty or "cat", or there is neither PAGER
 * nor less. Not for what is meant for programs (--json), and not for what goes on (--follow). */
MUST_CHECK int pager_begin(struct err *err);
/* Wait until it was left; code: what lych would exit with. That it was left before the end is no
 * failure. -1: it could not be run. */
MUST_CHECK int pager_end(int code, struct err *err);

#endif
