/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The directory that artifacts of a job are fetched into.
 */
#ifndef LYCH_CLI_JOBS_ARTIFACTS_H
#define LYCH_CLI_JOBS_ARTIFACTS_H

#include "cli/base/client.h"
#include "common/id.h"
#include <stdbool.h>

/* The directory that artifacts go to: made when missing (not those above it), and one that we can
 * write to. Asked for before a job begins, so that nobody waits for an hour to hear it. */
MUST_CHECK int artifacts_open_place(const char *dir, struct err *err);
/* Fetch all of a job's artifacts into a directory (made when missing): 0644, names
 * checked, no symlink followed, nothing overwritten without force, each compared with its
 * sha256. */
MUST_CHECK int artifacts_fetch(struct client *c, job_id_t id, const char *dir, bool force,
			       bool quiet, struct err *err);

#endif
