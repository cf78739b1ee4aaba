/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Server-sent events (common/text/event_stream.h), the subset that the vessel sends: event, id and
 * data lines, one data line an event, comments. Bytes come in any pieces.
 */
#ifndef LYCH_CLI_BASE_SSE_H
#define LYCH_CLI_BASE_SSE_H

#include "common/attr.h"
#include "common/err.h"
#include "common/text/event_stream.h"

#define SSE_EVENT_MAX_BYTES ((size_t)4 << 20)
#define SSE_ID_SIZE 64

struct sse {
	struct event_stream lines;
	char event[32];
	char next_id[SSE_ID_SIZE];
	char id[SSE_ID_SIZE]; /* of the last event that the callback took; "" for none */
};

void sse_init(struct sse *s);
void sse_done(struct sse *s);
/* The callback's non-zero answer ends the feeding and is returned. */
typedef int sse_fn(const char *event, const char *data, size_t len, void *arg,
		   struct err *err);
MUST_CHECK int sse_feed(struct sse *s, const void *data, size_t len, sse_fn *fn,
			void *arg, struct err *err);

#endif
