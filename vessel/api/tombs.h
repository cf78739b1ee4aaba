/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Who was seen on the work socket: for status and doctor, never for a decision. What a
 * tomb says about itself is repeated here, bounded.
 */
#ifndef LYCH_VESSEL_API_TOMBS_H
#define LYCH_VESSEL_API_TOMBS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/jsonw.h"
#include "vessel/db/door_wire.h"

#define TOMBS_SEEN_MAX 64 /* then the one that was silent longest is forgotten */

struct tombs;

struct tombs *tombs_new(const struct clock_ops *clock);
void tombs_free(struct tombs *t);
/* Any request of that name. */
void tombs_seen(struct tombs *t, const char *name);
void tombs_hello(struct tombs *t, const char *name, const struct door_hello *h);
/* It speaks another version of the protocol and was turned away. */
void tombs_refused(struct tombs *t, const char *name, unsigned protocol);
/* An array, one object a tomb. */
void tombs_write(const struct tombs *t, struct jsonw *w);

#endif
