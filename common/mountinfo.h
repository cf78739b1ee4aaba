/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The mount table of a process (proc_pid_mountinfo(5)).
 */
#ifndef LYCH_COMMON_MOUNTINFO_H
#define LYCH_COMMON_MOUNTINFO_H

#include "common/attr.h"
#include "common/buf.h"
#include "common/err.h"
#include <limits.h>

#define MOUNTINFO_MAX_BYTES ((size_t)1 << 20)

struct mount_line {
	char id[16], parent[16];
	char dev[32]; /* "8:1", of the file system: one for all subvolumes of btrfs */
	char root[PATH_MAX];  /* what of the file system is mounted */
	char point[PATH_MAX]; /* where */
};

/* The table's text into ret, whose ceiling is MOUNTINFO_MAX_BYTES. proc_fd: /proc; pid: its
 * directory there. -1: it is gone, or not ours to see. */
MUST_CHECK int mountinfo_read(int proc_fd, const char *pid, struct buf *ret);
/* One line, unescaped; returns where the next one begins, "" at the end. */
const char *mountinfo_line(const char *text, struct mount_line *ret);
/* The line of the mount that `path` lies on, in a table of our own. */
MUST_CHECK int mountinfo_find(const char *path, const char *text, struct mount_line *ret,
			      struct err *err);
/* A directory of ours that nobody else can write, the root of a file system that is mounted
 * there and nowhere else as far as we see: ERRID_START_JOBS with what it is instead. */
MUST_CHECK int mountinfo_check_own(const char *path, struct err *err);

#endif
