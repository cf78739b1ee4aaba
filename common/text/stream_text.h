/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The texts that a stream of events speaks. A model's text comes as a few letters in each
 * of many events, in several channels at once (a choice, a block, a tool's arguments); who
 * looks for something in it has to read on from event to event. This takes the bytes of a
 * reply (common/text/event_stream.h, one JSON object an event: OpenAI's chat completions and
 * Responses, Anthropic's messages, Gemini's contents), gives each channel's text to a filter of its own, and
 * writes the events anew with what the filters let go.
 *
 * What a filter holds back goes out with the next text of its channel, or in one more event
 * of that channel before the first event after which no text of it is expected: one
 * without any text (but a ping), one that ends a choice, one that goes on in another channel
 * of the same choice, the end. A filter that is asked to let go must not forget (a
 * stream may go on all the same). Only text of a "delta" (Gemini: of a part) is ever held back; any other
 * string of an event (a name, an id, a block's first text) goes through a filter and out
 * in the same event.
 *
 * Hostile bytes, bounded by STREAM_TEXT_EVENT_MAX_BYTES and STREAM_TEXT_CHANNELS_MAX. Strict: what is no
 * such event ends the reply, comments and odd lines lose their text. Else it passes as
 * it is, but for a line with a NUL beside an event's data. Fuzzed (fuzz_stream_text).
 */
#ifndef LYCH_COMMON_TEXT_STREAM_TEXT_H
#define LYCH_COMMON_TEXT_STREAM_TEXT_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/text/event_stream.h"
#include <stdbool.h>
#include <stddef.h>

#define STREAM_TEXT_EVENT_MAX_BYTES EVENT_MAX_BYTES
/* A tool call is up to six, so this is some 340 of them in one reply. */
#define STREAM_TEXT_CHANNELS_MAX 2048

enum stream_text_form {
	STREAM_TEXT_PLAIN,
	STREAM_TEXT_JSON, /* pieces of a JSON document: a tool's arguments */
};

/* A filter: `feed` appends what is certain, `release` the rest, which may be followed by
 * more all the same; `held` is how many bytes wait. */
struct stream_text_ops {
	void *(*open)(enum stream_text_form form, void *arg);
	void (*feed)(void *filter, const char *text, size_t len, struct buf *out);
	void (*release)(void *filter, struct buf *out);
	size_t (*held)(const void *filter);
	void (*close)(void *filter);
	bool is_strict;
};

struct stream_text;

/* ops must outlive it; arg is for open. */
struct stream_text *stream_text_new(const struct stream_text_ops *ops, void *arg);
void stream_text_free(struct stream_text *s);
/* Appends what goes on. ERRID_EGRESS_REPLY, only when strict: an event that is too long, no
 * JSON object, or in more channels than there may be. The stream is over then. */
MUST_CHECK int stream_text_feed(struct stream_text *s, const void *data, size_t len,
				struct buf *out, struct err *err);
MUST_CHECK int stream_text_end(struct stream_text *s, struct buf *out, struct err *err);

#endif
