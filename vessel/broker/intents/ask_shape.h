/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the messages and tools of a request to a model may look like.
 *
 * A list of shapes, not of what is forbidden: an object of a message has the keys that the
 * provider's API gives it, each of its kind, or the request is refused. So a URL that the
 * provider would fetch has no place to stand in: under no spelling of its key (a provider
 * that reads "Image_URL" as "image_url" is not asked), in no list, in no kind of content
 * that is not known here. Where bytes are carried they are a data: URL or base64, and what
 * a model and its tools say to each other (arguments, schemas, results) is data and passes.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_SHAPE_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_SHAPE_H

#include "common/attr.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/json/json.h"

/* `messages`, `system` and `prediction` of a request. ERRID_BROKER_REQUEST, or _FEATURE for
 * what would make the provider fetch or open something. */
MUST_CHECK int ask_shape_messages(const struct json *request, enum portal_kind dialect,
				  struct err *err);
/* `tools` and `functions`: only what the job carries out itself. */
MUST_CHECK int ask_shape_tools(const struct json *request, enum portal_kind dialect,
			       struct err *err);

#endif
