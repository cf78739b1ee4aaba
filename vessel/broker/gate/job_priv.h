/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Between job.c and restore.c.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_JOB_PRIV_H
#define LYCH_VESSEL_BROKER_GATE_JOB_PRIV_H

#include "vessel/broker/gate/job.h"
#include "vessel/broker/gate/map.h"

const struct gate_map *gate_job_map(const struct gate_job *j);

#endif
