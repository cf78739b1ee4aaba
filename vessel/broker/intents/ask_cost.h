/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What a request to a model may cost at most, known before it is sent. Pure.
 *
 * Input: no text has more tokens than bytes. A picture that the request carries is counted
 * by codex.yaml's `picture`, since its bytes say nothing; what has any number of tokens in
 * few bytes (a document, a film) counts as the model's whole `context`, and is refused when
 * that is not known. Output: as much as the cap that is written into the request, for each
 * choice; embeddings have none. To have tokens counted costs nothing. Prices: the model's, or those that codex.yaml has for what the request asks for
 * beyond the ordinary; what costs more and has no price is refused, and so is a beta that
 * nobody knows to cost nothing.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_COST_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_COST_H

#include "common/attr.h"
#include "common/conf/egress.h"
#include "common/err.h"
#include "common/json/json.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASK_CHOICES_MAX 16	  /* n */
#define ASK_OUTPUT_MAX 1000000u	  /* max_tokens */
#define ASK_OUTPUT_DEFAULT 16384u /* for a request that names no cap, nor codex.yaml */
/* A shorter answer is of no use, unless just that was asked for. */
#define ASK_OUTPUT_LEAST 16u
/* A provider's own words around a request: its roles, and what it says of tools. */
#define ASK_FRAME_TOKENS 64u
#define ASK_TOOLS_TOKENS 1024u

/* Tells how many tokens there are, and answers nothing. */
static inline bool ask_only_counts(enum portal_api api)
{
	return api == API_COUNT_TOKENS || api == API_COUNT_CONTENTS;
}

/* What a request says of it. Strings are borrowed from the request. */
struct ask_cost {
	enum portal_api api;
	uint64_t choices;  /* n, candidateCount; >= 1 */
	uint64_t asked;	   /* tokens of an answer, as the job says; 0: it does not */
	uint64_t thinking; /* of these for thinking; 0: it does not say */
	size_t picture_bytes;
	unsigned pictures, own_tools; /* tools that its provider knows by their type */
	bool has_tools, has_documents, has_audio;
	bool writes_cache, writes_cache_long;
	const char *tier, *speed, *geo; /* NULL: not named */
};
/* ERRID_BROKER_REQUEST, ERRID_BROKER_PRICE for what costs more than could be said. */
MUST_CHECK int ask_cost_read(const struct json *request, enum portal_api api,
			     struct ask_cost *ret, struct err *err);

/* Micro-units for CONF_PRICE_PER tokens. */
struct ask_prices {
	uint64_t input, output, cache_read, cache_write;
	uint64_t context; /* tokens of input that there can be; 0: not known */
};
/* betas: the names of anthropic-beta, commas between; NULL: none. ERRID_BROKER_PRICE names
 * what has no price. */
MUST_CHECK int ask_prices_of(const struct ask_cost *c, const char *betas,
			     const struct conf_portal *portal, const struct conf_model *m,
			     struct ask_prices *ret, struct err *err);

/* Tokens that a request of so many bytes can be. */
uint64_t ask_input_most(const struct ask_cost *c, const struct ask_prices *p,
			const struct conf_model *m, size_t bytes);
/* Tokens of one choice's answer: how many shall be written into the request, and with how
 * few it is of use. ERRID_BROKER_REQUEST: codex.yaml allows fewer than that. */
MUST_CHECK int ask_output(const struct ask_cost *c, const struct conf_model *m,
			  uint64_t *ret_least, uint64_t *ret_most, struct err *err);

struct ask_tokens {
	uint64_t input; /* all of it; of that: */
	uint64_t cache_read, cache_write;
	uint64_t output;
};
/* In micro-units, rounded up; saturates at INT64_MAX. */
uint64_t ask_price(const struct ask_prices *p, const struct ask_tokens *t);
/* Before it is known what of the input is of the cache: at its highest price. */
uint64_t ask_price_input(const struct ask_cost *c, const struct ask_prices *p,
			 uint64_t input);

#endif
