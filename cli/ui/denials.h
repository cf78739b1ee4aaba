/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The denials in a job's result, back as what the sandbox told.
 */
#ifndef LYCH_CLI_UI_DENIALS_H
#define LYCH_CLI_UI_DENIALS_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include "common/proto/spawn_proto.h"

/* ERRID_HTTP_ANSWER when it is none. A text that was not UTF-8 may be longer than the
 * record has room for: it is cut, and a grant that was cut is offered by nobody. */
MUST_CHECK int denials_read_one(const struct json *o, struct spawn_denied *ret,
				struct err *err);

#endif
