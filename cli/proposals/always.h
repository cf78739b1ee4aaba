/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A proposal made a rule of codex.yaml, for all jobs.
 */
#ifndef LYCH_CLI_PROPOSALS_ALWAYS_H
#define LYCH_CLI_PROPOSALS_ALWAYS_H

#include "cli/base/client.h"
#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"

/*
 * one: as the vessel shows it. The person is shown the rule and asked for the passphrase; then the file at
 * `codex` has the rule, and the vessel its ward. What fails leaves both as they were. is_quiet: the
 * rule is not shown on stdout.
 */
MUST_CHECK int proposal_always(struct client *c, const char *codex,
			       const struct json *one, const char *reason, bool is_quiet,
			       struct json **ret, struct err *err);

#endif
