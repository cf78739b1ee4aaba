/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych config set, lych config edit and a rule that is always allowed: a codex.yaml that is acceptable takes the place of one that was.
 */
#ifndef LYCH_CLI_LOCAL_CONFIG_CHANGE_H
#define LYCH_CLI_LOCAL_CONFIG_CHANGE_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <stdbool.h>

/* path: codex.yaml. What was done is told on stdout. value NULL: the key is taken out of it. */
MUST_CHECK int config_set(const char *path, const char *key, const char *value, bool json,
			  struct err *err);
/* Would config_add_rule() take it, as far as the file goes? ERRID_PROPOSAL_RULE: it is acceptable, but not with
 * the rule. */
MUST_CHECK int config_check_rule(const char *path, const char *rule, struct err *err);
/*
 * One more rule of the ward, as ward_rule_write() wrote it. then: with the new text, when the file has it; where
 * that fails the file is as it was. Nothing is told.
 */
typedef int config_then(const struct buf *text, void *arg, struct err *err);
MUST_CHECK int config_add_rule(const char *path, const char *rule, config_then *then,
			       void *arg, struct err *err);
MUST_CHECK int config_edit(const char *path, bool json, struct err *err);

#endif
