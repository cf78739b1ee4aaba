/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A whole run as one JSON object: the job as it ended, what it exited with, what it wrote.
 */
#ifndef LYCH_CLI_JOBS_RUN_SUMMARY_H
#define LYCH_CLI_JOBS_RUN_SUMMARY_H

#include "cli/follow/follow.h"
#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"

#define RUN_SUMMARY_MAX_BYTES ((size_t)1 << 20) /* of each stream */

/* f: at its end, with what it kept. */
MUST_CHECK int run_summary_put(const struct follow *f, int exit_code, struct err *err);

#endif
