/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The starter's dialer: connects for daemons that have no private root, and so may not
 * connect themselves (docs/adr/0047). Which daemon may have which of the fixed names is
 * decided here, and where a name leads.
 */
#ifndef LYCH_CLI_LOCAL_UP_DIAL_H
#define LYCH_CLI_LOCAL_UP_DIAL_H

#include "cli/base/paths.h"
#include "common/attr.h"

/* Answers one question that waits at sock (a part's end; it never blocks). may: DIAL_BIT of each
 * name that this part has business with. -1: hang up, since it ended or asked for anything else. */
MUST_CHECK int up_dial_answer(int sock, unsigned may, const struct paths *p);

#endif
