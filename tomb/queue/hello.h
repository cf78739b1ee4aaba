/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * Tomb and vessel tell each other what they are, whichever door jobs come through: at
 * the start, and from then on every HELLO_USEC, so that a vessel that was replaced is
 * noticed. A vessel that is away is waited for; one that speaks another version of the
 * protocol ends the tomb.
 */
#ifndef LYCH_TOMB_QUEUE_HELLO_H
#define LYCH_TOMB_QUEUE_HELLO_H

#include "common/attr.h"
#include "common/net/loop.h"
#include "tomb/queue/vessel_peer.h"

#define HELLO_USEC (15 * USEC_PER_SEC)

struct hello;

struct hello_config {
	const struct vessel_peer *peer; /* must outlive it */
	enum queue_door door;
	struct uuid boot;
	unsigned slots;
	void (*on_known)(void *arg); /* the first time that versions agree */
	/* ERRID_RUN_VERSION, _RUN_TOMB or _HTTP_PEER: called once, no more is asked. */
	void (*on_refused)(const struct err *why, void *arg);
	void (*on_away)(const struct err *why, void *arg); /* before on_known only */
	void *arg;
};

MUST_CHECK int hello_new(struct loop *l, const struct hello_config *cfg,
			 struct hello **ret, struct err *err);
void hello_free(struct hello *h);

/* What the vessel says of itself; pure. ERRID_RUN_VERSION when it is not of our version.
 */
MUST_CHECK int hello_parse(const void *body, size_t len, unsigned ours, struct err *err);

#endif
