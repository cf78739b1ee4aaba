/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * What one job may have waiting at its broker: the same bound in the tomb, where it is reached
 * first, and in the vessel, which believes no tomb.
 */
#ifndef LYCH_COMMON_PROTO_BROKER_LIMITS_H
#define LYCH_COMMON_PROTO_BROKER_LIMITS_H

#include "common/proto.h"

/* Requests that wait for their turn; more are refused. in_flight: those that may be under way,
 * BROKER_INFLIGHT_JOB or fewer. */
static inline unsigned broker_waiting_max(unsigned in_flight)
{
	return 4 * in_flight;
}
/* When one that is refused for their number may try again. */
#define BROKER_RETRY_SEC 1u

#endif
