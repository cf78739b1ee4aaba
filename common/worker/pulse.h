/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel, the egress worker and the gate worker.
 * Signs of life of the egress workers and of their parent, without a message: a number in a
 * page that one shows and another watches (common/watch.h). Each has a page of its own, and
 * a worker that lies in it only hides that itself is stuck. The same page has the note of what
 * it reads (reading.h), for the vessel to find after its death.
 */
#ifndef LYCH_COMMON_WORKER_PULSE_H
#define LYCH_COMMON_WORKER_PULSE_H

#include "common/attr.h"
#include "common/err.h"
#include "common/watch.h"
#include "common/worker/reading.h"
#include <stdint.h>

struct egress_pulse; /* shared with the processes that are forked later */

MUST_CHECK int egress_pulse_new(struct egress_pulse **ret, struct err *err);
/* NULL is fine. In each process by itself. */
void egress_pulse_free(struct egress_pulse *p);
/* At least every WATCH_BEAT_USEC. NULL is fine. */
void egress_pulse_beat(struct egress_pulse *p);

/* Its note; NULL for NULL. */
struct reading *egress_pulse_reading(struct egress_pulse *p);

/* Until fd has something to read, or its end; it beats meanwhile. */
void egress_pulse_wait(struct egress_pulse *p, int fd);

struct egress_heard {
	struct watch watch;
	uint32_t beats;
	bool began;
};

/* Anew: of a process that begins now, and gives its first sign within that time. */
void egress_heard_begin(struct egress_heard *h, const struct egress_pulse *p,
			usec_t first_usec);
/* Every WATCH_LOOK_USEC. true: it did not begin in time, or has not moved for
 * WATCH_SILENCE_USEC. */
MUST_CHECK bool egress_heard_look(struct egress_heard *h, const struct egress_pulse *p);

#endif
