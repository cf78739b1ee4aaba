/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A request to Google's Gemini API (v1beta): what it may look like, and what it asks for that
 * costs something.
 *
 * Keys have the one spelling that the API's reference has ("systemInstruction"); its server
 * takes others too ("system_instruction"), and these are refused, since what is looked for
 * under one name must not pass under another. Refused on purpose (ERRID_BROKER_FEATURE) is
 * what makes the provider act elsewhere: fileData (a URL, or a file that is stored there), the
 * tools that it carries out, and what these left in a conversation.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_GEMINI_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_GEMINI_H

#include "common/attr.h"
#include "common/err.h"
#include "common/json/json.h"
#include "vessel/broker/intents/ask_cost.h"

/* Of generateContent and countTokens. ERRID_BROKER_REQUEST, or _FEATURE. */
MUST_CHECK int ask_gemini_shape(const struct json *request, struct err *err);
/* Of generateContent, whatever its shape. ERRID_BROKER_REQUEST; ERRID_BROKER_PRICE: an answer
 * that is not of text. */
MUST_CHECK int ask_gemini_cost(const struct json *request, struct ask_cost *ret,
			       struct err *err);

#endif
