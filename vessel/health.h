/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * `lych-vessel health --api-dir DIR`, for a container's health check: 0 when the vessel
 * answers the owner on the socket there, else 1.
 */
#ifndef LYCH_VESSEL_HEALTH_H
#define LYCH_VESSEL_HEALTH_H

#include "common/attr.h"

MUST_CHECK int vessel_health_main(int argc, char **argv);

#endif
