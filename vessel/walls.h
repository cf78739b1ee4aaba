/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What the vessel leaves itself: its data directory and sockets, no secret, no network.
 */
#ifndef LYCH_VESSEL_WALLS_H
#define LYCH_VESSEL_WALLS_H

#include "common/attr.h"
#include "common/confine/confine.h"
#include "common/err.h"
#include "vessel/options.h"

/* Confines this process for good, then tries what it must not reach. walls: what was tried. */
MUST_CHECK int vessel_confine(const struct options *opt, struct confine_report *walls,
			      struct err *err);

#endif
