/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Between job.c and restore.c.
 */
#ifndef LYCH_VESSEL_BROKER_GATE_JOB_PRIV_H
#define LYCH_VESSEL_BROKER_GATE_JOB_PRIV_H

#include "vessel/broker/gate/job.h"

#define GATE_ROW_NAME_SIZE 32

struct gate_row {
	enum gate_family family;
	char name[GATE_ROW_NAME_SIZE]; /* "EMAIL_1" */
	char *text;
	size_t len;
};

struct gate_map {
	struct gate_row *row;
	size_t n, cap, bytes;
};

const struct gate_map *gate_job_map(const struct gate_job *j);

#endif
