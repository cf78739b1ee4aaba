/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych agent --list.
 */
#ifndef LYCH_CLI_AGENT_AGENT_LIST_H
#define LYCH_CLI_AGENT_AGENT_LIST_H

#include "cli/agent/agents.h"
#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include <stdbool.h>

/* On stdout: each, and whether it works here. One whose profile is refused does not, and is in the
 * list. */
MUST_CHECK int agent_list(const struct paths *p, const struct agents *a,
			  const struct conf *c, bool json, struct err *err);

#endif
