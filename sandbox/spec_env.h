/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * What a job's environment has where the caller did not say otherwise.
 */
#ifndef LYCH_SANDBOX_SPEC_ENV_H
#define LYCH_SANDBOX_SPEC_ENV_H

#include "sandbox/contract/sandbox.h"

/* All but where it is at home; the limits are known. */
void spec_env_defaults(struct sbx_spec *s);
/* HOME, TMPDIR and what goes with them; the workspace is known. */
void spec_env_home(struct sbx_spec *s);

#endif
