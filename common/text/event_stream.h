/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Any process. Splits a stream of events (text/event-stream, WHATWG's Server-Sent Events) into its
 * lines and events, as every reader of such streams here reads them.
 *
 * A line ends with LF, CR or CR LF, also where these two come apart; so a line that ends with CR is
 * told of when the next byte is there. A blank line ends an event. Each line is FIELD, a colon, at
 * most one blank, VALUE; without a colon all of it is the field, with one in front it is a
 * comment. The values of an event's `data` lines are joined by LF. A byte order mark in front of
 * the stream is none of its text.
 *
 * Hostile bytes, bounded by what an event may have, whatever pieces they come in. Fuzzed
 * (fuzz_event_stream).
 */
#ifndef LYCH_COMMON_TEXT_EVENT_STREAM_H
#define LYCH_COMMON_TEXT_EVENT_STREAM_H

#include "common/attr.h"
#include "common/buf.h"
#include <stdbool.h>
#include <stddef.h>

/* What a provider's event may have: every reader of one gives up on the same. */
#define EVENT_MAX_BYTES ((size_t)1 << 20)

enum event_got {
	EVENT_NONE,	/* all is taken; more bytes are needed */
	EVENT_LINE,	/* a line that is not blank */
	EVENT_END,	/* the blank line behind an event, or behind nothing */
	EVENT_TOO_LONG, /* the event is; what is not taken stays, and nothing more can be */
};

/* Within struct event_stream, until the next call. */
struct event_line {
	const char *text; /* the whole line */
	size_t len;
	const char *value; /* behind the colon; "" without one */
	size_t value_len;
	size_t field_len; /* of text; 0: a comment */
};

struct event_stream {
	struct buf event; /* all bytes of the present event as they came */
	struct buf data;  /* its data so far */
	size_t n_data;	  /* lines of it: 0: it has no data */
	/* private */
	size_t line; /* where in event the present line begins */
	bool has_begun, is_cr, is_over;
};

void event_stream_init(struct event_stream *s, size_t event_max_bytes);
void event_stream_done(struct event_stream *s);
/* Takes bytes from the front up to the end of a line. After EVENT_END the event is there until the
 * next call. */
MUST_CHECK enum event_got event_stream_take(struct event_stream *s, const char **data,
					    size_t *len, struct event_line *ret);
/* No more will come: EVENT_LINE or EVENT_END for a last line without its end. What event then has
 * was not ended by a blank line. */
enum event_got event_stream_end(struct event_stream *s, struct event_line *ret);
bool event_line_is(const struct event_line *l, const char *field);

#endif
