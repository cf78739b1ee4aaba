/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Shared by output.c and output_order.c.
 */
#ifndef LYCH_VESSEL_STORE_OUTPUT_PRIV_H
#define LYCH_VESSEL_STORE_OUTPUT_PRIV_H

#include "vessel/store/output.h"

struct output {
	int dir;
	struct store_budget *budget;
	uint64_t stream_max;
};

#define OUTPUT_NAME_SIZE 80
/* The path of an attempt, or of a file of it, below the directory. */
void output_attempt_name(char out[OUTPUT_NAME_SIZE], job_id_t job, int64_t epoch,
			 const char *file);

#endif
