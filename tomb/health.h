/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * `lych-tomb health --socket PATH`, for a container's health check: 0 when the tomb behind
 * that control socket says that its spawner and its queue are up, else 1.
 */
#ifndef LYCH_TOMB_HEALTH_H
#define LYCH_TOMB_HEALTH_H

#include "common/attr.h"

MUST_CHECK int health_main(int argc, char **argv);

#endif
