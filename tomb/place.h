/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The tomb's own directory: one tomb at a time, nothing left of an earlier one.
 */
#ifndef LYCH_TOMB_PLACE_H
#define LYCH_TOMB_PLACE_H

#include "common/attr.h"
#include "common/err.h"
#include <limits.h>
#include <stdbool.h>

struct place {
	char jobs_path[PATH_MAX], spool_path[PATH_MAX];
	char artifacts_path[PATH_MAX], quarantine_path[PATH_MAX];
	int data_fd, lock_fd;
	int jobs_fd;	/* to ask how much room there is */
	bool proved;	/* every earlier tomb is dead, and all that it started */
	bool blameless; /* ... and died for no reason that could lie in its jobs */
};

#define PLACE_INIT {.data_fd = -1, .lock_fd = -1, .jobs_fd = -1}

/* Makes data when it is missing, locks it, removes job folders and copies of an earlier
 * run, once their processes are proved dead. jobs_apart: data/jobs must be a file system of
 * its own, ERRID_START_JOBS. */
MUST_CHECK int place_open(struct place *p, const char *data, bool jobs_apart,
			  struct err *err);
void place_close(struct place *p);

#endif
