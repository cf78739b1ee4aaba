/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * A portal's reply without the portal's credential: in the bytes as they come (redact.h),
 * and in the texts that its reader puts together from them, where the bytes of the key
 * never stand side by side. Of a stream of events those are the texts of its channels
 * (stream_text.h, strict); of any other reply, which is JSON or is taken for it, all strings
 * of one key ("text", "content") in their order.
 *
 * An end of a string or of a block lets go what may yet become the key, and it is
 * remembered: a beginning of the key is all that can go through, one too short to be a match.
 * Not read: numbers, the names of keys, and texts that a reader joins from different keys.
 */
#ifndef LYCH_VESSEL_EGRESS_REDACT_REPLY_H
#define LYCH_VESSEL_EGRESS_REDACT_REPLY_H

#include "vessel/egress/redact.h"

struct redact_reply;

/* is_stream: text/event-stream. what NULL: there is no credential, all goes through. */
struct redact_reply *redact_reply_new(const struct redact *what, bool is_stream);
/* Before the first byte: a reply that says how long its pieces are, as git's does, has none that is longer or
 * shorter than it was. It is not read as JSON. */
void redact_reply_keep_length(struct redact_reply *r);
void redact_reply_free(struct redact_reply *r); /* NULL is fine */
/* Appends what goes on. ERRID_EGRESS_REPLY: a stream that is none (stream_text_feed()).
 * ERRID_EGRESS_TOO_LARGE: out has not the room. */
MUST_CHECK int redact_reply_feed(struct redact_reply *r, const void *data, size_t len,
				 struct buf *out, struct err *err);
MUST_CHECK int redact_reply_end(struct redact_reply *r, struct buf *out, struct err *err);
unsigned redact_reply_hits(const struct redact_reply *r);

#endif
