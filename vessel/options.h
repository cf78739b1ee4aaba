/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * The options of `lych-vessel serve`.
 */
#ifndef LYCH_VESSEL_OPTIONS_H
#define LYCH_VESSEL_OPTIONS_H

#include "common/attr.h"
#include "common/err.h"
#include "common/net/starter_word.h"
#include "vessel/db/door.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the command line; paths are absolute. */
struct options {
	char api_socket[PATH_MAX];
	const char *data, *api_dir, *work_dir, *pg_dir, *audit_dir, *secrets, *config;
	const char *probe_walls;  /* test builds */
	const char *probe_worker; /* NULL: the vessel itself */
	const char *tombs[DOOR_TOMBS_MAX];
	size_t n_tombs;
	struct starter_word starter;
	uint64_t protocol;
	uint64_t sweep_after_sec; /* test builds; 0: as usual */
};

/* What is wrong with them is said on stderr by argp(3), and ends the process with 2. */
MUST_CHECK int options_parse(int argc, char **argv, struct options *ret, struct err *err);

#endif
