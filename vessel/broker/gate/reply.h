/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A provider's reply to what was anonymised: placeholders become the originals again, in
 * the bytes as they come. In a whole JSON reply they are found wherever they stand. In a
 * stream of events a model says a placeholder in several of them ("<EM", "AIL", "_1>"): the
 * text of each channel is read on from event to event (stream_text.h).
 *
 * Hostile bytes: an event that is no JSON object passes as it is, one that is too long
 * too. The replies of a job without placeholders pass untouched.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_REPLY_H
#define LYCH_VESSEL_BROKER_GATE_REPLY_H

#include "common/buf.h"
#include "vessel/broker/gate/job.h"
#include <stdbool.h>

struct gate_reply;

/* is_stream: text/event-stream. job must outlive it. */
struct gate_reply *gate_reply_new(const struct gate_job *job, bool is_stream);
void gate_reply_free(struct gate_reply *r);
/* Appends what goes on. */
void gate_reply_feed(struct gate_reply *r, const void *data, size_t len, struct buf *out);
void gate_reply_end(struct gate_reply *r, struct buf *out);

#endif
