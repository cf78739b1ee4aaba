/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The frame of an event: that event with nothing in it but the way to one text and the small values beside
 * it, cut in two where the text goes. So what a filter holds can go out later, as an event of the same kind.
 */
#ifndef LYCH_COMMON_TEXT_STREAM_TEXT_FRAME_H
#define LYCH_COMMON_TEXT_STREAM_TEXT_FRAME_H

#include "common/attr.h"
#include <stdbool.h>
#include <stddef.h>

/* How deep the objects of an event may lie in each other: a request's 24, in an event that
 * says it again (OpenAI's Responses), and some more. */
#define STREAM_TEXT_DEPTH_MAX 28

/* What takes a string's place. */
struct stream_text_piece {
	size_t at; /* counted over keys, strings and numbers */
	char *text;
	size_t len;
};

struct json;
struct stream_text_frame {
	const char *head; /* the lines before the event's data, as they go on */
	const struct json *json;
	const size_t *trail; /* of members and elements, to the text */
	const struct stream_text_piece
		*piece; /* n of them, by `at`: strings as their filters left them */
	size_t n;
};
/* Both are the caller's. -1: it would be larger than 16 KiB. */
MUST_CHECK int stream_text_frame_make(const struct stream_text_frame *f,
				      char **ret_before, char **ret_after);

/* stream_text.c: does the text below this key go on in the next event? */
bool stream_text_is_text(const char *key);

#endif
