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
enum artifacts_how { ARTIFACTS_FORCE = 1, ARTIFACTS_QUIET = 2, ARTIFACTS_TAINTED = 4 };
MUST_CHECK int artifacts_fetch(struct client *c, job_id_t id, const char *dir,
			       unsigned how, struct err *err);

/*
 * One file below a directory that a job may have named (top; full: its name for messages): *ret_fd is
 * a file without a name, in *ret_parent, which is made when missing. No link is followed. What was
 * written gets its name, mode 0644, by artifacts_name(), with force in place of what has it.
 */
MUST_CHECK int artifacts_new(int top, const char *path, int *ret_parent, int *ret_fd,
			     struct err *err);
MUST_CHECK int artifacts_name(int parent, int fd, const char *path, const char *full,
			      bool force, struct err *err);

#endif
