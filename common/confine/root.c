/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A root of one's own: user and mount namespaces in which only the policy's paths
 * exist. Every source is cloned by descriptor (open_tree) before anything is
 * mounted, so a source may lie below the directory that the new root covers.
 */
#include "common/cleanup.h"
#include "common/confine/priv.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif

/* ENOSPC is user.max_user_namespaces; EPERM and EACCES are a container, a sysctl or an LSM, of
 * which Ubuntu's AppArmor lets the namespaces be made, and gives no right in them. */
static enum err_id why_refused(void)
{
	return errno == EPERM || errno == EACCES || errno == ENOSPC ? ERRID_START_USERNS
								    : ERRID_START_CONFINE;
}

static int write_proc(const char *path, const char *text, struct err *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return err_sys_id(err, why_refused(), "in a new user namespace: write %s",
				  path);
	return 0;
}

/* The same uid and gid inside and out: identity is not changed, only the view. */
static int enter_namespaces(struct err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return err_sys_id(err, why_refused(),
				  "unshare the user and mount namespaces");
	if (write_proc("/proc/self/setgroups", "deny", err) < 0)
		return -1;
	if (str_fmt(map, sizeof(map), "%u %u 1", uid, uid) < 0 ||
	    write_proc("/proc/self/uid_map", map, err) < 0)
		return err_wrap(err, "map uid %u", uid);
	if (str_fmt(map, sizeof(map), "%u %u 1", gid, gid) < 0 ||
	    write_proc("/proc/self/gid_map", map, err) < 0)
		return err_wrap(err, "map gid %u", gid);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys_id(err, why_refused(),
				  "in a new user namespace: make the mounts private");
	return 0;
}

/* mkdir -p of the parents of path below root_fd, then a directory or an empty file.
 * The tree is our own fresh tmpfs, or one of our own directories already bound in it. */
static int make_target(int root_fd, const char *path, bool is_dir, struct err *err)
{
	char rel[PATH_MAX];
	cleanup_close int fd = -1;

	if (path[0] != '/' || str_copy(rel, sizeof(rel), path + 1) < 0 || rel[0] == '\0')
		return err_set_id(err, ERRID_START_CONFINE,
				  "'%s' is not an absolute path", path);
	for (char *slash = strchr(rel, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(root_fd, rel, 0755) < 0 && errno != EEXIST &&
		    errno != EROFS && errno != EACCES)
			return err_sys_id(err, ERRID_START_CONFINE,
					  "make /%s in the private root", rel);
		*slash = '/';
	}
	if (is_dir) {
		if (mkdirat(root_fd, rel, 0755) < 0 && errno != EEXIST)
			return err_sys_id(err, ERRID_START_CONFINE,
					  "make %s in the private root", path);
		return 0;
	}
	fd = openat(root_fd, rel, O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0 && errno != EACCES && errno != ENXIO)
		return err_sys_id(err, ERRID_START_CONFINE, "make %s in the private root",
				  path);
	return 0;
}

static int place(int tree, int root_fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(tree, &st) < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "stat %s", path);
	if (make_target(root_fd, path, S_ISDIR(st.st_mode), err) < 0)
		return -1;
	if (syscall(SYS_move_mount, tree, "", root_fd, path + 1,
		    MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys_id(err, ERRID_START_CONFINE,
				  "place %s in the private root", path);
	return 0;
}

static int pivot(int root_fd, struct err *err)
{
	if (fchdir(root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "pivot to the private root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys_id(err, ERRID_START_CONFINE, "leave the old root");
	if (mount(NULL, "/", NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0)
		return err_sys_id(err, ERRID_START_CONFINE,
				  "make the private root read-only");
	return 0;
}

/* Any directory will do to hang the new root on: it is left behind at once. */
static int mount_new_root(int *ret_fd, struct err *err)
{
	static const char *const holders[] = {"/tmp", "/run", "/var", "/dev", "/usr"};

	for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
		if (mount("tmpfs", holders[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  "mode=0755,size=64k") < 0)
			continue;
		*ret_fd = open(holders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (*ret_fd >= 0)
			return 0;
	}
	return err_sys_id(err, ERRID_START_CONFINE, "mount the private root");
}

int confine_private_root(const struct confine_policy *policy, struct err *err)
{
	cleanup_free int *trees = xcalloc(policy->n_paths + 1, sizeof(*trees));
	cleanup_close int root_fd = -1;
	int r = 0;

	if (enter_namespaces(err) < 0)
		return -1;
	for (size_t i = 0; i < policy->n_paths; i++) {
		trees[i] =
			(int)syscall(SYS_open_tree, AT_FDCWD, policy->paths[i].path,
				     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (trees[i] < 0)
			return err_sys_id(err, ERRID_START_CONFINE, "clone %s",
					  policy->paths[i].path);
	}
	/* Recursively: a container mounts each of its secrets by itself. */
	if (policy->held_dir) {
		*policy->held_fd =
			(int)syscall(SYS_open_tree, AT_FDCWD, policy->held_dir,
				     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
					     AT_SYMLINK_NOFOLLOW);
		if (*policy->held_fd < 0)
			return err_sys_id(err, ERRID_START_CONFINE, "clone %s",
					  policy->held_dir);
	}
	if (mount_new_root(&root_fd, err) < 0)
		return -1;
	for (size_t i = 0; i < policy->n_paths && r == 0; i++)
		r = place(trees[i], root_fd, policy->paths[i].path, err);
	for (size_t i = 0; i < policy->n_paths; i++)
		fd_close(&trees[i]);
	return r < 0 ? -1 : pivot(root_fd, err);
}
