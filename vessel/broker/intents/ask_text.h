/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * How much of a model's text a piece of JSON holds: a floor for what the answer cost,
 * whatever its provider says. Hostile bytes, read once and not parsed; what is no JSON gives
 * a number that means nothing and harms nobody. Fuzzed (fuzz_ask_reply).
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_TEXT_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_TEXT_H

#include <stddef.h>

/* Characters of the strings below the keys in which OpenAI's and Anthropic's dialects have
 * what a model wrote; an escape is one. At most len. */
size_t ask_text_chars(const char *json, size_t len);

#endif
