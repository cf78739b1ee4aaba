/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Is somebody stuck who ought to give a sign of life every WATCH_BEAT_USEC? Silence is counted
 * in looks of the one who listens, each worth at most WATCH_LOOK_USEC of time that the
 * machine was awake. So what keeps the listener from looking (a suspended machine, a load
 * under which it gets no turn, its own SIGSTOP) is never held against the other.
 */
#ifndef LYCH_COMMON_WATCH_H
#define LYCH_COMMON_WATCH_H

#include "common/attr.h"
#include "common/clock.h"
#include <stdbool.h>

#define WATCH_BEAT_USEC (2 * USEC_PER_SEC)
#define WATCH_BEAT_LINE "WATCHDOG=1" /* where it is told in lines */
#define WATCH_LOOK_USEC USEC_PER_SEC
#define WATCH_SILENCE_USEC (10 * USEC_PER_SEC)

struct watch {
	usec_t looked; /* 0: not watched */
	usec_t silent, patience;
};

/* now: clock_awake_usec(). From now on it is listened to, and stuck after `patience` of
 * silence (WATCH_SILENCE_USEC, where it has promised a sign each WATCH_BEAT_USEC). */
void watch_begin(struct watch *w, usec_t now, usec_t patience);
void watch_end(struct watch *w);
void watch_heard(struct watch *w);
/* It has hung up, so that it is about to end: it is given two looks for that. */
void watch_hung_up(struct watch *w);
/* Look again. excused: it could not have said anything since the last look. true: it has
 * been silent for that long. */
MUST_CHECK bool watch_look(struct watch *w, usec_t now, bool excused);

#endif
