/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A request to a model, as its provider's API has it: read from what the tomb rebuilt,
 * judged by a list of keys with their types, written anew. Pure. The APIs are those of
 * common/conf/egress.h; none is translated into another.
 *
 * The list is what the current `openai`, `anthropic` and `@google/genai` SDKs send, and the
 * further sampling keys of llama.cpp, vLLM and Ollama. A key that is not on it is refused, since
 * nobody here knows what it makes the provider do. Refused too is what would make the
 * provider act for the job outside of this exchange: fetch a URL (images, documents,
 * search and fetch tools, MCP servers), read a file or a conversation that is stored
 * there, or store this one; what messages and tools may look like is ask_shape.h's.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASK_MODEL_MAX_BYTES 200

struct ask {
	enum portal_api api;
	enum portal_kind dialect; /* the api's kind */
	bool stream;
	/* Borrowed from the request; of Gemini's API, where the path has it, from whoever
	 * calls ask_name(): until then it is "". */
	const char *model;
	/* Chat completions: usage comes only when asked for. Did the job ask? If not, we do, and
	 * the chunk is taken out again (ask_reply.h). */
	bool wants_usage;
};

/* ERRID_BROKER_REQUEST, or ERRID_BROKER_FEATURE and _THREAD for what is refused on purpose.
 * `stream`: what the tomb says of it, which must agree (of Gemini's API only the path says it). */
MUST_CHECK int ask_read(const struct json *request, enum portal_api api, bool stream,
			struct ask *ret, struct err *err);

/* Of a request that does not name its model. ERRID_BROKER_REQUEST: it is no name. */
MUST_CHECK int ask_name(struct ask *a, const char *model, struct err *err);

/* Takes out of the request what ask_finish() puts there. */
void ask_strip(const struct ask *a, struct json *request);
/* Turns the written request (a JSON object) into the one that is sent: with the cap on its
 * answer, what makes the provider report usage, and that it stores nothing. */
void ask_finish(const struct ask *a, enum portal_cap field, uint64_t cap,
		struct buf *body);
/* Bytes that ask_finish() adds at most. */
#define ASK_FINISH_BYTES 96u

/* What follows a portal's url whose path is base_path. OpenAI's base has its version in
 * it, those of the others have it or not. */
#define ASK_TARGET_SIZE (ASK_MODEL_MAX_BYTES + 64)
MUST_CHECK int ask_target(const struct ask *a, const char *base_path,
			  char out[ASK_TARGET_SIZE], struct err *err);

#endif
