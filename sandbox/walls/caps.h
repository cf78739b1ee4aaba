/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper, the guard and the job.
 * The capability sets of this process by the kernel's own two calls. Not by libcap: it
 * allocates for each question, and a process that was just forked copies a page for each
 * that it touches, in every start of a job.
 */
#ifndef LYCH_SANDBOX_WALLS_CAPS_H
#define LYCH_SANDBOX_WALLS_CAPS_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>

/* Effective? */
bool caps_has(int cap);
/* The permitted and effective sets become exactly caps[] (ended by -1; all of them
 * permitted before), the inheritable and with it the ambient set empty. Asks the kernel
 * whether that is so. ERRID_SANDBOX_CAPS. */
MUST_CHECK int caps_keep_only(const int *caps, struct err *err);

#endif
