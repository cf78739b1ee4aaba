/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Sizes of event streams, related to each other; bytes.
 */
#ifndef LYCH_COMMON_TEXT_SSE_CAPS_H
#define LYCH_COMMON_TEXT_SSE_CAPS_H

#include "common/clock.h"
#include "common/proto.h"
#include <stddef.h>

/* Raw output in one event. */
#define SSE_CHUNK_BYTES ((size_t)48 << 10)
/* A reader further behind than this is cut off (common/net/httpd.h). */
#define SSE_BACKLOG_MAX_BYTES ((size_t)8 << 20)
/* Output is read from disk only while less than this waits: what a reader that has stopped
 * costs, for as long as it lives. Above it there is room for states, and `end` with its result. */
#define SSE_PUMP_BYTES ((size_t)256 << 10)
/* While nothing else is said. A client gives up on who is silent for three of these. */
#define SSE_IDLE_USEC SSE_ALIVE_USEC

#endif
