/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner, the keeper, the guard and the job.
 * What the files of the keeper's side (limits.c, keeper.c, start.c, report.c, serve.c)
 * share beyond sandbox.h.
 */
#ifndef LYCH_SANDBOX_CONTRACT_KEEPER_H
#define LYCH_SANDBOX_CONTRACT_KEEPER_H

#include "sandbox/contract/sandbox.h"

/* limits.c: one number of a control file of the leaf ("oom_kill" in memory.events; key
 * NULL: the file is the number); 0 without a leaf. */
uint64_t limits_cgroup_value(const struct sbx_limits *l, const char *file,
			     const char *key);

/* report.c */
void report_started(const struct sbx_spec *spec, const struct sbx_limits *limits,
		    int landlock_abi, struct spawn_started *ret);
void report_refused(const char *stage, const struct err *err, struct spawn_refused *ret);
void report_refused_status(const struct job_status *s, struct spawn_refused *ret);

/* ns.c: identity map, close-on-fork of our own processes. */
MUST_CHECK int ns_map_self(uid_t uid, gid_t gid, struct err *err);
/* clone(2) like fork(2), with namespaces; *ret_pidfd is O_CLOEXEC. Names the namespace
 * that the kernel refuses. */
MUST_CHECK pid_t ns_fork(int flags, int *ret_pidfd, struct err *err);
/* Everything but 0-2 and keep[] is closed (-1 entries are skipped). */
MUST_CHECK int ns_close_all_but(const int *keep, size_t n, struct err *err);
/* Every signal at its default, at the start of a program: children inherit that. */
void ns_default_signals(void);
/* 0, 1, 2 become /dev/null (err_too false: 2 stays). */
MUST_CHECK int ns_stdio_null(int null_fd, bool err_too, struct err *err);
/* Maps the program's code in one go. A fork shares it but maps nothing of it, and each
 * first step into a page would be a fault. Only faster: a failure does not matter. */
void ns_map_code(void);
/* Die with the parent; -1 when it is dead already. */
MUST_CHECK int ns_die_with(int parent_pidfd, struct err *err);

#endif
