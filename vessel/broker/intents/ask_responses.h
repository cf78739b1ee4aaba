/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the input and the tools of a request to OpenAI's Responses API may look like: a
 * conversation that comes whole with each request, and tools that the job carries out
 * itself. An item that stands for something stored at the provider is refused, and so is
 * each tool that it would carry out, with the items that such tools leave behind.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_RESPONSES_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_RESPONSES_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"

/* ERRID_BROKER_REQUEST, or _FEATURE for what would make the provider act elsewhere. */
MUST_CHECK int ask_responses_input(const struct json *request, struct err *err);
/* `tools` and `tool_choice`. */
MUST_CHECK int ask_responses_tools(const struct json *request, struct err *err);

#endif
