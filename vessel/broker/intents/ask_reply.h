/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A provider's reply on its way back, in the bytes as they come: what it says of usage is
 * read, and a usage chunk that the job did not ask for is taken out. Hostile bytes: what
 * is no event or no JSON passes as it is and tells nothing. Fuzzed (fuzz_ask_reply).
 *
 * A stream is handled event by event (common/text/event_stream.h: what its data lines say
 * together), at most ASK_EVENT_MAX_BYTES each; a whole reply is kept until its end only for
 * its usage (at most ASK_REPLY_MAX_BYTES). What is larger passes unread: its usage is not
 * known, and each of its bytes counts as a character of text. What is no text at all
 * (embeddings, a count of tokens) counts as none.
 */
#ifndef LYCH_VESSEL_BROKER_INTENTS_ASK_REPLY_H
#define LYCH_VESSEL_BROKER_INTENTS_ASK_REPLY_H

#include "common/buf.h"
#include "common/conf/egress.h"
#include "common/text/event_stream.h"
#include "vessel/broker/intents/ask.h"
#include "vessel/broker/intents/ask_cost.h"
#include <stdbool.h>
#include <stdint.h>

#define ASK_EVENT_MAX_BYTES EVENT_MAX_BYTES
#define ASK_REPLY_MAX_BYTES ((size_t)16 << 20)

struct ask_reply;

struct ask_usage {
	bool is_known; /* of the input and of the whole output */
	struct ask_tokens tokens;
};

/* is_stream: the reply's Content-Type is text/event-stream. */
struct ask_reply *ask_reply_new(const struct ask *a, bool is_stream);
void ask_reply_free(struct ask_reply *r);
/* Appends what goes on. */
void ask_reply_feed(struct ask_reply *r, const void *data, size_t len, struct buf *out);
void ask_reply_end(struct ask_reply *r, struct buf *out);
/* So far: after a broken stream is_known is false and the numbers are what was told. So
 * they are when more came than what was told can be: then the output is what came at
 * least. Whether it was all is the caller's to know. */
struct ask_usage ask_reply_usage(const struct ask_reply *r);
/* Tokens that came at the very least, as far as a stream is read: fewer than that no
 * provider has made. */
uint64_t ask_reply_least(const struct ask_reply *r);

#endif
