/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The leases of an earlier tomb of this data directory that is proved dead, with all that it
 * started (tomb/queue/notes.h): they are given to the queue at once, so that nobody waits until
 * they run out. What a claim brought whose answer it had not read is asked for
 * first. Each is said until there is a definite answer.
 */
#ifndef LYCH_TOMB_HANDBACK_H
#define LYCH_TOMB_HANDBACK_H

#include "common/net/loop.h"
#include "tomb/queue/notes.h"
#include "tomb/queue/queue.h"

struct handback;

/* Borrows queue and notes; nothing is said before handback_start(). died: as in release(). */
struct handback *handback_new(struct loop *l, const struct queue *q, struct notes *n,
			      bool died);
void handback_start(struct handback *h);
/* After the queue: no answer comes any more. */
void handback_free(struct handback *h);

#endif
