/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner and the keeper.
 * See mounts.h.
 */
#include "sandbox/walls/mounts.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include "sandbox/contract/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int mount_failed(struct err *err, const char *what, const char *path)
{
	return err_sys_id(err, ERRID_SANDBOX_ROOT, "%s %s", what, path);
}

int mount_clone(int dirfd, const char *path, uint64_t attr, struct err *err)
{
	unsigned flags =
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH;
	struct mount_attr ma = {.attr_set = attr};
	cleanup_close int fd = (int)syscall(SYS_open_tree, dirfd, path, flags);

	if (fd < 0)
		return mount_failed(err, "clone", path);
	if (attr && syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &ma,
			    sizeof(ma)) < 0)
		return mount_failed(err, "seal", path);
	return TAKE_FD(fd);
}

/* A fresh filesystem, attached nowhere. opts: "key", "value", ..., NULL. */
int mount_fresh(const char *type, const char *const *opts, unsigned attr, struct err *err)
{
	cleanup_close int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return mount_failed(err, "fsopen", type);
	for (; *opts; opts += 2)
		if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, opts[0], opts[1], 0) <
		    0)
			return mount_failed(err, type, opts[0]);
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return mount_failed(err, "create", type);
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attr);
	return fd < 0 ? mount_failed(err, "fsmount", type) : fd;
}

int mount_place(int mount_fd, int root_fd, const char *path, struct err *err)
{
	if (syscall(SYS_move_mount, mount_fd, "", root_fd, path,
		    MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return mount_failed(err, "place", path);
	return 0;
}

int mount_make_dir(int root_fd, const char *path, mode_t mode, struct err *err)
{
	return mkdirat(root_fd, path, mode) < 0 ? mount_failed(err, "mkdir", path) : 0;
}

int mount_make_file(int root_fd, const char *path, const char *text, struct err *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	cleanup_close int fd = openat(root_fd, path, flags, 0644);

	if (fd < 0)
		return mount_failed(err, "create", path);
	return fs_write_all(fd, text, strlen(text), err);
}

int mount_fresh_proc(const char *hide, struct err *err)
{
	const char *const full[] = {"hidepid", hide, NULL};
	const char *const pid_only[] = {"hidepid", hide, "subset", "pid", NULL};
	unsigned attr = ATTR_OWN | MOUNT_ATTR_NOEXEC;
	struct err refused = ERR_INIT;
	int fd = mount_fresh("proc", full, attr, &refused);

	if (fd >= 0)
		return fd;
	if (refused.sys != EPERM)
		return err_set_id(err, ERRID_SANDBOX_ROOT, "%s", refused.msg);
	/* "Mount too revealing": the host's own /proc is masked, as in a container. Newer
	 * kernels still give one that shows processes only. */
	fd = mount_fresh("proc", pid_only, attr, err);
	return fd < 0 ? err_wrap(err, "/proc here is masked (Podman: Unmask=/proc/*)")
		      : fd;
}

int mount_tmpfs(int root_fd, const char *path, uint64_t bytes, int *ret_fd,
		struct err *err)
{
	char size[32], inodes[32];
	const char *const opts[] = {"size", size,     "nr_inodes", inodes, "mode",
				    "1777", "source", "tmpfs",	   NULL};
	cleanup_close int fd = -1;

	if (str_fmt(size, sizeof(size), "%" PRIu64, bytes) < 0 ||
	    str_fmt(inodes, sizeof(inodes), "%" PRIu64, bytes / 4096 + 1024) < 0)
		return err_set(err, ERR_INTERNAL, "tmpfs options");
	fd = mount_fresh("tmpfs", opts, ATTR_OWN, err);
	if (fd < 0 || mount_place(fd, root_fd, path, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
