/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A provider's reply. What it issues in it is noted (issued.h), as the provider said it; a
 * reply that is too long for that goes on all the same.
 *
 * Of what was anonymised placeholders become the originals again, in the bytes as they come. In a whole JSON reply they are found wherever they stand. In a
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

/* What is no stream is noted only up to here; of a stream each event that is no longer than
 * any may be. */
#define GATE_REPLY_NOTED_MAX_BYTES ((size_t)4 << 20)

/* portal: the destination that answers, as it is asked for a verdict. is_stream:
 * text/event-stream. job must outlive it. */
struct gate_reply *gate_reply_new(struct gate_job *job, const char *portal,
				  bool is_stream);
void gate_reply_free(struct gate_reply *r);
/* Appends what goes on. */
void gate_reply_feed(struct gate_reply *r, const void *data, size_t len, struct buf *out);
void gate_reply_end(struct gate_reply *r, struct buf *out);

#endif
