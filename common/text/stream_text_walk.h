/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The strings of an event of a stream, each with its place: the keys on the way to it and the
 * numbers of the objects that it lies in (a choice, a block, an item). An event of the
 * Responses API holds the whole response, with the tools and schemas of its request: of a
 * string in there only that object's own key counts. An event of Gemini's API has its text in
 * candidates[].content.parts[].text, in each candidate what was thought apart from the answer;
 * a function's arguments come whole, as an object with keys of the model's choice.
 */
#ifndef LYCH_COMMON_TEXT_STREAM_TEXT_WALK_H
#define LYCH_COMMON_TEXT_STREAM_TEXT_WALK_H

#include "common/text/stream_text_frame.h"
#include <stdint.h>

struct stream_text_place {
	const char *key;
	uint64_t path, where; /* hashes of the keys, and of the numbers */
	uint64_t wide;	      /* of the numbers that count for text alone; 0: none */
	uint64_t group;	      /* at the first number: the choice, the block, the item */
	unsigned depth;
	bool is_delta, is_numbered;
	bool is_arguments; /* of a delta that is a piece of JSON */
	bool is_again; /* what a response says again of its request: any number of keys */
	bool is_gemini; /* in an event of Gemini's API, which has no "delta" */
	bool is_data; /* what a function is called with there: values, no text that goes on */
};

typedef void stream_text_leaf(const struct stream_text_place *p, const char *text,
			      size_t len, void *arg);

/* `json` is the caller's to set; of the string that the leaf is shown: `at` as in struct
 * stream_text_piece, `trail` of members and elements to it. */
struct stream_text_walk {
	const struct json *json;
	size_t at;
	size_t trail[STREAM_TEXT_DEPTH_MAX + 1];
	stream_text_leaf *leaf;
	void *arg;
};

/* Each string below the event, in order. */
void stream_text_walk(struct stream_text_walk *w, stream_text_leaf *leaf, void *arg);

#endif
