/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See kernel_files.h.
 */
#include "common/kernel_files.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mountinfo.h"
#include "common/str.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Not in linux/magic.h: fs/configfs/mount.c, ipc/mqueue.c, fs/fuse/control.c. */
#define CONFIGFS_NR 0x62656570ul
#define MQUEUE_NR 0x19800202ul
#define FUSECTL_NR 0x65735543ul

/* By f_type of statfs(2). */
static bool is_kernels(unsigned long type)
{
	static const unsigned long types[] = {
		PROC_SUPER_MAGIC,     SYSFS_MAGIC,
		CGROUP_SUPER_MAGIC,   CGROUP2_SUPER_MAGIC,
		DEBUGFS_MAGIC,	      TRACEFS_MAGIC,
		SECURITYFS_MAGIC,     SELINUX_MAGIC,
		SMACK_MAGIC,	      AAFS_MAGIC,
		BPF_FS_MAGIC,	      DEVPTS_SUPER_MAGIC,
		EFIVARFS_MAGIC,	      PSTOREFS_MAGIC,
		BINFMTFS_MAGIC,	      NSFS_MAGIC,
		RDTGROUP_SUPER_MAGIC, USBDEVICE_SUPER_MAGIC,
		CONFIGFS_NR,	      MQUEUE_NR,
		FUSECTL_NR,
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (type == types[i])
			return true;
	return false;
}

int kernel_files_refuse(int fd, const char *path, enum err_id id, struct err *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return err_sys_id(err, id, "statfs %s", path);
	if (!is_kernels((unsigned long)fs.f_type))
		return 0;
	return err_set_id(err, id, "%s is in a file system of the kernel's own", path);
}

static bool is_below(const char *point, const char *path)
{
	size_t n = strlen(path);

	return strncmp(point, path, n) == 0 && point[n] == '/';
}

int kernel_files_refuse_below(const char *path, enum err_id id, struct err *err)
{
	cleanup_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_buf struct buf text = {.max = MOUNTINFO_MAX_BYTES};
	struct mount_line m;
	const char *next;

	if (proc_fd < 0 || mountinfo_read(proc_fd, "self", &text) < 0)
		return err_sys_id(err, id, "read our mount table");
	for (next = buf_str(&text); *next;) {
		cleanup_close int fd = -1;

		next = mountinfo_line(next, &m);
		if (!is_below(m.point, path))
			continue;
		fd = open(m.point, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return err_sys_id(err, id, "look at the mount %s", m.point);
		if (kernel_files_refuse(fd, m.point, id, err) < 0)
			return -1;
	}
	return 0;
}

int kernel_files_refuse_tree(const char *path, enum err_id id, struct err *err)
{
	cleanup_close int fd = fs_open_judged(path, 0, id, err);

	if (fd < 0 || kernel_files_refuse(fd, path, id, err) < 0)
		return -1;
	return kernel_files_refuse_below(path, id, err);
}
