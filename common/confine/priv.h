/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Between the files of confine: not for anybody else.
 */
#ifndef LYCH_COMMON_CONFINE_PRIV_H
#define LYCH_COMMON_CONFINE_PRIV_H

#include "common/confine/confine.h"

/* root.c: new user and mount namespaces, pivot to a root of policy->paths. */
MUST_CHECK int confine_private_root(const struct confine_policy *policy, struct err *err);
/* filter.c: the seccomp filter; no_new_privs must be set. */
MUST_CHECK int confine_filter(const struct confine_policy *policy, struct err *err);

#endif
