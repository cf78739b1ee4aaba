/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of event streams, related to each other; bytes. */
#ifndef LYCH_VESSEL_SSE_CAPS_H
#define LYCH_VESSEL_SSE_CAPS_H

#include "common/proto.h"
#include <stddef.h>

/* Raw output in one event. */
#define SSE_CHUNK_BYTES ((size_t)48 << 10)
/* A reader further behind than this is cut off (common/net/httpd.h). */
#define SSE_BACKLOG_MAX_BYTES ((size_t)8 << 20)
/* Output is read from disk only while less than this waits: more than half of the cap,
 * so that the drain callback comes; with room left for `end` and its result. */
#define SSE_PUMP_BYTES (SSE_BACKLOG_MAX_BYTES / 2)

#endif
