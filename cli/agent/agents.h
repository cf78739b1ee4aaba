/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The profiles of agents that there are, and whether one works here. A file of the user's own is
 * taken before the one of that name that was installed, and believed as a profile of the sandbox is
 * (cli/jobs/profile.h).
 */
#ifndef LYCH_CLI_AGENT_AGENTS_H
#define LYCH_CLI_AGENT_AGENTS_H

#include "cli/base/paths.h"
#include "common/attr.h"
#include "common/conf/agent.h"
#include "common/conf/conf.h"
#include "common/err.h"
#include <stddef.h>

/* NAME.yaml in agents/ beside the configuration, and of what was installed. */
struct agents {
	char *user_dir, *system_dir;
	char **name; /* each once, sorted */
	size_t n;
};

MUST_CHECK int agents_find(const struct paths *p, struct agents *ret, struct err *err);
void agents_done(struct agents *a);
#define cleanup_agents __attribute__((cleanup(agents_done)))

/* ERRID_CORE_NO_FILE, ERRID_SPEC_PROFILE. */
MUST_CHECK int agents_read(const struct agents *a, const char *name,
			   struct conf_agent *ret, struct err *err);

/* What an agent needs, beside a vessel that answers: ERRID_TTY_GRADE, ERRID_SPEC_UNSUPPORTED,
 * ERRID_WARD_EMPTY, ERRID_SPEC_LIMIT. */
enum agent_need { NEED_GRADE, NEED_PACKAGE, NEED_MODEL, NEED_LIMITS, NEED_MAX_ };
MUST_CHECK int agent_has(enum agent_need need, const struct conf_agent *a,
			 const struct conf *c, struct err *err);

#endif
