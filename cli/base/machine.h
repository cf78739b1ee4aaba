/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What this machine's npm and pip are told to install from.
 */
#ifndef LYCH_CLI_BASE_MACHINE_H
#define LYCH_CLI_BASE_MACHINE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/conf/conf.h"

/* The value of `key` in the text of an .npmrc (section NULL) or of a pip.conf (in
 * `section`); NULL: it has none. Caller frees. */
char *machine_ini_value(const char *text, const char *section, const char *key);

/* The registries of codex.yaml, as this machine's settings have them; what is not taken
 * stands in a comment, with the reason. resolves: look also where their names lead, and
 * show addresses that are not public. */
void machine_write_registries(const char *home, bool resolves, struct buf *out);

#endif
