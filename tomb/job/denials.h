/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * What the walls refused one job, as the spawner tells it: bounded, for its result.
 */
#ifndef LYCH_TOMB_JOB_DENIALS_H
#define LYCH_TOMB_JOB_DENIALS_H

#include "common/attr.h"
#include "common/jsonw.h"
#include "common/proto/spawn_proto.h"
#include <stddef.h>
#include <stdint.h>

struct denials {
	struct spawn_denied *rec;
	size_t n;
	uint32_t dropped; /* kinds that were not recorded */
};

/* -1: the spawner has broken its protocol (more than SPAWN_DENIED_MAX of them). */
MUST_CHECK int denials_add(struct denials *d, const struct spawn_denied *m);
/* The keys "denials" and "denials_dropped". */
void denials_write(const struct denials *d, struct jsonw *w);
void denials_done(struct denials *d);

#endif
