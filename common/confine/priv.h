/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Between the files of confine: not for anybody else.
 */
#ifndef LYCH_COMMON_CONFINE_PRIV_H
#define LYCH_COMMON_CONFINE_PRIV_H

#include "common/confine/confine.h"
#include <linux/audit.h>
#include <stddef.h>

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U
#elif defined(__aarch64__)
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#else
#error "the daemons' filter is reviewed for x86_64 and aarch64 only"
#endif

/* root.c: new user and mount namespaces, pivot to a root of policy->paths. */
MUST_CHECK int confine_private_root(const struct confine_policy *policy, struct err *err);
/* sockets.c, of an unrooted one. Before Landlock: no descriptor that is open is a socket that
 * could be told another address. */
MUST_CHECK int confine_check_sockets(const struct confine_policy *policy,
				     struct err *err);
/* After the filter: every way to a socket of somebody else's, tried. Returns what is wrong with
 * the first that is not refused by the filter's own answer, and NULL when all are. what: what was
 * tried. */
const char *confine_try_sockets(const struct confine_policy *policy, const char *path,
				char *what, size_t size) MUST_CHECK;
/* What the filter answers to connect() of an unrooted one of that policy. */
int confine_connect_errno(const struct confine_policy *policy);
/* Test builds: LYCH_TEST_LEAVE_OUT=NAME:WALL leaves a wall of that unrooted daemon out, so that a
 * test sees its start end. */
bool confine_leaves_out(const struct confine_policy *policy, const char *wall);
/* filter_calls.c: allowed, and known and refused, whatever the arguments. */
#define FCHMODAT2 452
extern const int confine_allowed[], confine_refused[];
extern const size_t confine_allowed_len, confine_refused_len;
/* filter.c: the seccomp filter; no_new_privs must be set. */
MUST_CHECK int confine_filter(const struct confine_policy *policy, struct err *err);

#endif
