/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of the processes of a test. */
#ifndef LYCH_TESTS_SUPPORT_PROC_STAT_H
#define LYCH_TESTS_SUPPORT_PROC_STAT_H

#include <sys/types.h>

/* Parent of pid, and its name in parentheses; 0: it is gone. */
pid_t proc_parent(pid_t pid, char name[64]);

/* The child of one of our children that has this name in parentheses; -1: none has. */
pid_t grandchild_named(const char *name);

/* Resident memory in KiB. */
long proc_rss_kib(pid_t pid);

#endif
