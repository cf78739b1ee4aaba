/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See watch.h.
 */
#include "common/watch.h"

void watch_begin(struct watch *w, usec_t now, usec_t patience)
{
	*w = (struct watch){.looked = now, .patience = patience};
}

void watch_end(struct watch *w)
{
	*w = (struct watch){.looked = 0};
}

void watch_heard(struct watch *w)
{
	w->silent = 0;
}

void watch_hung_up(struct watch *w)
{
	w->silent =
		w->patience > 2 * WATCH_LOOK_USEC ? w->patience - 2 * WATCH_LOOK_USEC : 0;
}

bool watch_look(struct watch *w, usec_t now, bool excused)
{
	usec_t passed;

	if (!w->looked || now <= w->looked)
		return false;
	passed = now - w->looked;
	w->looked = now;
	if (!excused)
		w->silent += passed < WATCH_LOOK_USEC ? passed : WATCH_LOOK_USEC;
	return w->silent >= w->patience;
}
