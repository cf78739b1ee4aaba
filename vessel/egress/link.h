/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * One end of a socket between vessel and worker, on the loop: whole frames in, bytes out.
 */
#ifndef LYCH_VESSEL_EGRESS_LINK_H
#define LYCH_VESSEL_EGRESS_LINK_H

#include "common/net/loop.h"
#include "vessel/egress/wire.h"

struct egress_link;

struct egress_link_ops {
	/* Valid until it returns. -1 with err: the peer breaks the protocol. May free. */
	int (*on_frame)(const struct egress_frame *f, void *arg, struct err *err);
	/* The end of it, once: end of file (why NULL), a broken protocol or a full buffer. The
	 * link is silent from now on and waits to be freed. */
	void (*on_closed)(const struct err *why, void *arg);
	void *arg;
};

/* fd becomes the link's own. out_max: more than that unsent is a broken peer. */
struct egress_link *egress_link_new(struct loop *l, int fd, size_t out_max,
				    const struct egress_link_ops *ops);
void egress_link_free(struct egress_link *k); /* NULL is fine; from a callback too */
/* Frees the link without closing its descriptor, which is the caller's again; from
 * on_frame only as the last thing. -1: more came already than the frames that were taken. */
MUST_CHECK int egress_link_release(struct egress_link *k);
/* Write frames into it, then egress_link_flush(). */
struct buf *egress_link_out(struct egress_link *k);
void egress_link_flush(struct egress_link *k);

#endif
