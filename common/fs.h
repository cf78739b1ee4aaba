/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Files. A path that a job, a client or an archive could have touched is opened
 * with fs_open_beneath only (openat2(2): RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
 * RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV). No fallback to openat: a kernel
 * without openat2 is refused.
 */
#ifndef LYCH_COMMON_FS_H
#define LYCH_COMMON_FS_H

#include "common/attr.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* flags: O_* (O_CLOEXEC is added). Returns a descriptor or -1. */
MUST_CHECK int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode,
			       struct err *err);
/* Open a directory O_PATH|O_DIRECTORY|O_NOFOLLOW: a symlink is refused. */
MUST_CHECK int fs_open_dir(const char *path, struct err *err);
/* A real, absolute path as realpath(3) gave it, O_PATH. If it leads to another place by now, somebody has
 * exchanged a component since it was judged: ELOOP. The kernel is asked afterwards (/proc/self/fd),
 * since some containers refuse openat2. An error has the id. */
MUST_CHECK int fs_open_judged(const char *path, int flags, enum err_id id,
			      struct err *err);
/* mkdir -p below dirfd, each component 0700, never through a symlink. */
MUST_CHECK int fs_mkdir_beneath(int dirfd, const char *path, mode_t mode,
				struct err *err);
/* mkdir -p of an absolute path of our own (config, data, runtime directories), 0700. */
MUST_CHECK int fs_mkdir_all(const char *path, mode_t mode, struct err *err);
/* Remove a tree below dirfd without following anything; missing is success.
 * Directories without permissions are made writable first (only those of our uid).
 * ERR_CONFLICT: somebody moves them about meanwhile. (fs_remove.c) */
MUST_CHECK int fs_remove_beneath(int dirfd, const char *name, struct err *err);
/* The same in steps, for who must not be away for long. dirfd is borrowed. */
struct fs_removal;
struct fs_removal *fs_removal_new(int dirfd, const char *name) MUST_CHECK;
/* Looks at `budget` entries at most. 1: call again; 0: gone. */
MUST_CHECK int fs_removal_step(struct fs_removal *r, unsigned budget, struct err *err);
void fs_removal_free(struct fs_removal *r); /* NULL is fine; what is left stays */
/* A file to another directory of the same file system, in place of what has the name there
 * (to: a name in to_dir itself). For a moment it has both names: rename() from one
 * directory into another would have one, and waits for whoever does so on that file system
 * (a job, where it has a workspace there). */
MUST_CHECK int fs_move_file(int from_dir, const char *from, int to_dir, const char *to,
			    struct err *err);
/* Read a whole regular file of at most max bytes; ret is NUL-terminated, caller frees. */
MUST_CHECK int fs_read_file(int dirfd, const char *path, size_t max, char **ret,
			    size_t *ret_len, struct err *err);
/* Write to a temporary name, fsync, rename, fsync the directory. */
MUST_CHECK int fs_write_atomic(int dirfd, const char *name, const void *data, size_t len,
			       mode_t mode, struct err *err);
/* A program that starts with 0, 1 or 2 closed would hand its next file out as stdio:
 * first thing in main, each of them that is closed becomes /dev/null, which stdout cannot write to: such
 * output fails, and is not lost in silence. */
MUST_CHECK int fs_fill_stdio(struct err *err);
/* The soft limit on descriptors up to the hard one. It is also the measure by which the
 * kernel lets a process pass descriptors (SCM_RIGHTS) while others of its uid, a job
 * among them, have many in flight. Children inherit it: a job gets a limit of its own. */
void fs_raise_nofile(void);
MUST_CHECK int fs_write_all(int fd, const void *data, size_t len, struct err *err);
/* A secret file: regular, ours, mode without group/other bits, at most max bytes,
 * one trailing newline stripped. Anything else is ERRID_SECRET_FILE. */
MUST_CHECK int fs_read_secret(int dirfd, const char *name, char *out, size_t size,
			      struct err *err);
/* Exclusive POSIX lock on an open file for the life of the process (see fcntl(2)
 * F_SETLK). ERRID_START_LOCKED with the holder's pid in *ret_holder (may be NULL)
 * when it is taken. */
MUST_CHECK int fs_lock(int fd, pid_t *ret_holder, struct err *err);
/* Exclusive flock(2). One of a process that was killed is free only when its children, which
 * share it, have executed their programs: it is tried for a second. -1 with errno
 * (EWOULDBLOCK: somebody has it). */
MUST_CHECK int fs_flock_soon(int fd);
/* Pid of the process that holds the lock, 0 when nobody does. */
MUST_CHECK int fs_lock_holder(int fd, pid_t *ret, struct err *err);

#endif
