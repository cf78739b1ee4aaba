/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The vessel's two sockets: the owner's and the tombs'.
 */
#ifndef LYCH_VESSEL_SOCKETS_H
#define LYCH_VESSEL_SOCKETS_H

#include "common/attr.h"
#include "common/err.h"
#include <limits.h>
#include <stdbool.h>

struct loop_timer;
struct vessel;

struct sockets {
	struct vessel *v;
	char api[PATH_MAX], work[PATH_MAX]; /* their names */
	struct loop_timer *timer;
	bool api_failed, work_failed; /* logged once, until it works again */
};

/* Makes the directories where they are missing, and v->api and v->work, which answer from now on.
 * After a failure too they are closed by sockets_close(). */
MUST_CHECK int sockets_open(struct sockets *s, struct vessel *v, const char *api_dir,
			    const char *work_dir, struct err *err);
/* From now on one that is removed is made anew within 250 ms. */
void sockets_watch(struct sockets *s);
/* Of one that was never opened too, zeroed. */
void sockets_close(struct sockets *s);

#endif
