/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LYCH_CLI_ARTIFACTS_H
#define LYCH_CLI_ARTIFACTS_H

#include "cli/client.h"
#include "common/id.h"
#include <stdbool.h>

/* Fetch all of a job's artifacts into a directory (made when missing): 0644, names
 * checked, no symlink followed, nothing overwritten without force, each compared with its
 * sha256. */
MUST_CHECK int artifacts_fetch(struct client *c, job_id_t id, const char *dir, bool force,
			       bool quiet, struct err *err);

#endif
