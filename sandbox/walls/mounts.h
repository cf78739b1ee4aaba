/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner and the keeper.
 * Mounts by descriptor: what the private root (root.c) and the spawner's template of it
 * (template.c) are built from. Errors: ERRID_SANDBOX_ROOT with the path that failed.
 */
#ifndef LYCH_SANDBOX_WALLS_MOUNTS_H
#define LYCH_SANDBOX_WALLS_MOUNTS_H

#include "common/attr.h"
#include "common/err.h"
#include <stdint.h>
#include <sys/mount.h>
#include <sys/types.h>

#define ATTR_SEALED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define ATTR_OWN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* err_sys_id() with ERRID_SANDBOX_ROOT: "what path". Always -1. */
int mount_failed(struct err *err, const char *what, const char *path);
/* A clone of the tree at path ("": dirfd itself), attached nowhere, with attr added to
 * every mount of it. The mount must be of this mount namespace. */
MUST_CHECK int mount_clone(int dirfd, const char *path, uint64_t attr, struct err *err);
/* A fresh filesystem, attached nowhere. opts: "key", "value", ..., NULL. */
MUST_CHECK int mount_fresh(const char *type, const char *const *opts, unsigned attr,
			   struct err *err);
/* The /proc of this pid namespace, attached nowhere. hide: the value of hidepid. */
MUST_CHECK int mount_fresh_proc(const char *hide, struct err *err);
/* A tmpfs of so many bytes at path, which must be there; *ret_fd is the mount. */
MUST_CHECK int mount_tmpfs(int root_fd, const char *path, uint64_t bytes, int *ret_fd,
			   struct err *err);
/* Attaches a detached mount at path, relative to root_fd. */
MUST_CHECK int mount_place(int mount_fd, int root_fd, const char *path, struct err *err);
MUST_CHECK int mount_make_dir(int root_fd, const char *path, mode_t mode,
			      struct err *err);
MUST_CHECK int mount_make_file(int root_fd, const char *path, const char *text,
			       struct err *err);

#endif
