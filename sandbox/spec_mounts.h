/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * The paths that a job is shown, all of them known: what they mean together.
 */
#ifndef LYCH_SANDBOX_SPEC_MOUNTS_H
#define LYCH_SANDBOX_SPEC_MOUNTS_H

#include "sandbox/contract/sandbox.h"

/* Sorts them, and leaves out those that add nothing. ERRID_SPEC_PATH. */
MUST_CHECK int spec_mounts_judge(struct sbx_spec *s, struct err *err);

#endif
