/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * Gemini's API has the model and what is asked of it in the path, "MODEL:generateContent",
 * and says in the query whether a stream is one of events. Pure.
 */
#ifndef LYCH_TOMB_BROKER_PROXY_GEMINI_H
#define LYCH_TOMB_BROKER_PROXY_GEMINI_H

#include "common/attr.h"
#include "common/err.h"
#include "tomb/broker/proxy_intent.h"
#include <stdbool.h>

struct gemini_call {
	char model[INTENT_MODEL_MAX_BYTES + 1];
	const char *api; /* as the intent has it */
	bool stream;
};

/* below: what stands behind "models/"; alt: of the query, "" when it is not there.
 * ERRID_BROKER_API: another method, or a stream that is none of events; ERRID_BROKER_REQUEST. */
MUST_CHECK int gemini_call_read(const char *below, const char *alt,
				struct gemini_call *ret, struct err *err);

#endif
