/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb and the file worker.
 * No process of an earlier tomb stands in a folder of a job.
 */
#ifndef LYCH_TOMB_FILES_STALE_H
#define LYCH_TOMB_FILES_STALE_H

#include "common/attr.h"
#include "common/err.h"

/*
 * Prove that no process of an earlier tomb still stands in a job's folder below
 * jobs_path: its mounts (a job's own mount table names the folder it was given) or its
 * working directory. The end of a tomb ends its jobs; what is still on its way is killed
 * here and waited for. ERR_CONFLICT when something stays.
 */
MUST_CHECK int stale_kill_users(const char *jobs_path, struct err *err);

#endif
