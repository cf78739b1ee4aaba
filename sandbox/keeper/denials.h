/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the guard.
 * What was refused to a job: kinds, counted. The keeper writes them into memory that it shares
 * with the guard, which tells them to the parent when the job is over: what a keeper knew is
 * not lost with it.
 */
#ifndef LYCH_SANDBOX_KEEPER_DENIALS_H
#define LYCH_SANDBOX_KEEPER_DENIALS_H

#include "common/proto/spawn_proto.h"

#include <stdatomic.h>

/* Of what is not shown: more, since most of it is not there outside either. */
#define DENIALS_ABSENT_MAX 512
#define DENIALS_DROPPED_BITS 4096

struct denial {
	struct spawn_denied d;
	uint32_t hash;
};

/* All zeros: none. Pages that nothing is written to are not there. */
struct denials {
	_Atomic uint32_t n, n_absent; /* counts what is whole */
	_Atomic uint32_t dropped;     /* kinds that had no room */
	uint8_t dropped_seen[DENIALS_DROPPED_BITS / 8];
	struct denial all[SPAWN_DENIED_MAX];
	struct denial absent[DENIALS_ABSENT_MAX]; /* for the command line to look at */
};

/* The same record again is counted. */
void denials_note(struct denials *l, const struct spawn_denied *d);
/* Each is given to send(), whole. */
void denials_tell(struct denials *l,
		  void (*send)(const struct spawn_denied *d, void *arg), void *arg);

#endif
