/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * The keys of the session that lych-sandbox was started from.
 */
#ifndef LYCH_SANDBOX_WALLS_KEYRING_H
#define LYCH_SANDBOX_WALLS_KEYRING_H

#include "common/attr.h"
#include "common/err.h"

/* In the parent, before any other process of ours: an empty session keyring of our own, which
 * all that we start inherits. A key that lies in the caller's is not possessed any more: by
 * nobody's keyctl (the filter refuses that anyway), and not when the kernel looks for one on
 * a job's behalf (an encrypted directory, a network file system). ERRID_SANDBOX_CAPS. */
MUST_CHECK int keyring_leave_session(struct err *err);

#endif
