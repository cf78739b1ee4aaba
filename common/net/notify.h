/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Readiness: sd_notify(3) by hand (NOTIFY_SOCKET) and, for the embedded starter, which also hears
 * that the loop turns, lines on an inherited descriptor.
 */
#ifndef LYCH_COMMON_NET_NOTIFY_H
#define LYCH_COMMON_NET_NOTIFY_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/loop.h"

struct notify;
/* ready_fd: -1, or a pipe to which "READY=1\n" (or "STATUS=...\n") is written and, from the
 * first turn of the loop on until it stops, WATCH_BEAT_LINE "\n" every WATCH_BEAT_USEC. It becomes the callee's.
 * Opens and connects what it needs at once, so that it works after confinement. */
MUST_CHECK int notify_new(struct loop *l, int ready_fd, struct notify **ret,
			  struct err *err);
void notify_ready(struct notify *n);
void notify_status(struct notify *n, const char *text);
void notify_stopping(struct notify *n);
void notify_free(struct notify *n);

#endif
