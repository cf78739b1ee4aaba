/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The hint for tombs that cannot LISTEN: a question that the vessel holds until a job
 * changed somewhere, or for DOOR_HINT_SEC. Only a hint: a tomb asks again without one.
 */
#ifndef LYCH_VESSEL_API_HINTS_H
#define LYCH_VESSEL_API_HINTS_H

#include "common/attr.h"
#include "common/net/httpd.h"
#include "common/net/loop.h"
#include "vessel/db/door.h"

struct hints;

struct hints *hints_new(struct loop *l);
void hints_free(struct hints *h);
/* Takes req. Answered at once when something changed since `after` (the number of the
 * last answer, 0 at first), or when the tomb's connections are down: ERRID_RUN_DB. */
void hints_wait(struct hints *h, struct httpd_req *req, const struct door_tomb *t,
		uint64_t after);
/* A job changed: everybody is answered. */
void hints_tell(struct hints *h);
/* This tomb's connections came up or were lost. */
void hints_state(struct hints *h, const struct door_tomb *t);

#endif
