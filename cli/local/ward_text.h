/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * One more rule at the end of the ward in the text of a codex.yaml; comments, order and layout stay.
 */
#ifndef LYCH_CLI_LOCAL_WARD_TEXT_H
#define LYCH_CLI_LOCAL_WARD_TEXT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"

/* One host is allowed; all strings are from outside. */
struct ward_rule_text {
	const char *host, *method, *path, *reason; /* reason: NULL: none */
};

/* "{host: a.example, method: GET, ...}": ERRID_PROPOSAL_RULE where the file could not say it. */
MUST_CHECK int ward_rule_write(const struct ward_rule_text *r, struct buf *out,
			       struct err *err);
/*
 * The text, which is acceptable, with this rule. What comes out has been compared: but for one entry more at
 * the end of ward nothing means another thing. ERRID_START_LAYOUT where only a person changes it.
 */
MUST_CHECK int ward_text_add(const char *text, const char *rule, struct buf *out,
			     struct err *err);

#endif
