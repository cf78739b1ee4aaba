/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress parent.
 * Where each key of a host may go, for as long as this process lives: to the place that was told first,
 * or within it. The vessel reads what jobs send; were it taken over, it could ask for a worker that
 * sends a key of its choice anywhere. So a key that was given to one place goes to no other before
 * the next start, which reads codex.yaml before any job has spoken.
 */
#ifndef LYCH_VESSEL_EGRESS_HOSTS_PLACES_H
#define LYCH_VESSEL_EGRESS_HOSTS_PLACES_H

#include "common/attr.h"
#include "common/err.h"
#include "vessel/egress/hosts/portal.h"

struct places;

struct places *places_new(void);
void places_free(struct places *p); /* NULL is fine */
/* ERRID_CREDENTIAL_PLACE: its secret goes elsewhere, or otherwise, already; ERRID_CREDENTIAL_MANY. */
MUST_CHECK int places_take(struct places *p, const struct egress_portal *host,
			   struct err *err);

/* One and the same: to the last byte of what is said of them. */
bool places_are_same(const struct egress_portal *a, const struct egress_portal *b);

#endif
