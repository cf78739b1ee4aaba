/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside: files, their locks and attributes, what an open one keeps in the kernel. */
#include "tests/escape/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------- */

static void lock_ranges(int command)
{
	char name[32];

	for (int f = 0; f < 64; f++) {
		int fd;

		(void)snprintf(name, sizeof(name), "locked.%d.%d", who, f);
		fd = open(name, O_RDWR | O_CREAT, 0600);
		/* From above: each goes to the head of the list. */
		for (off_t at = 200000; fd >= 0 && at > 0; at--) {
			struct flock l = {.l_type = F_RDLCK,
					  .l_whence = SEEK_SET,
					  .l_start = at * 2,
					  .l_len = 1};

			if (fcntl(fd, command, &l) < 0)
				return;
		}
	}
}

static void make_locks(void)
{
	lock_ranges(F_SETLK);
}

static void make_ofd_locks(void)
{
	lock_ranges(F_OFD_SETLK);
}

static void make_tmpfs_inodes(void)
{
	char name[64];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "/tmp/%d.%d", who, i);
		if (symlink("x", name) < 0)
			return;
	}
}

static void make_tmpfs_xattrs(void)
{
	char name[64], attr[64];

	for (int i = 0; i < MANY; i++) {
		int fd;

		(void)snprintf(name, sizeof(name), "/dev/shm/%d.%d", who, i);
		fd = open(name, O_RDWR | O_CREAT, 0600);
		if (fd < 0)
			return;
		for (int k = 0; k < MANY; k++) {
			(void)snprintf(attr, sizeof(attr), "user.a%d", k);
			if (fsetxattr(fd, attr, block, 32768, 0) < 0)
				break;
		}
		(void)close(fd);
	}
}

static void make_memfds(void)
{
	for (int i = 0; i < MANY; i++) {
		int fd = memfd_create("x", 0);

		if (fd < 0)
			return;
		for (off_t at = 0; fallocate(fd, 0, at, 1 << 30) == 0; at += 1 << 30)
			;
	}
}

static void make_negative(void)
{
	struct stat st;
	char name[64];

	for (int i = 0; i < 20000000; i++) {
		(void)snprintf(name, sizeof(name), "no.such.file.%d.%d", who, i);
		(void)stat(name, &st);
	}
}

/* One lock of each open file. */
static void make_flocks(void)
{
	for (int fd;
	     (fd = open(own_name("flocked", (int)made), O_RDWR | O_CREAT, 0600)) >= 0;
	     made++)
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return;
}

/* ---- attributes ------------------------------------------------------------------------ */

static void set_many(int fd)
{
	char attr[64];

	for (int k = 0; k < MANY; k++, made++) {
		(void)snprintf(attr, sizeof(attr), "user.a%d", k);
		if (fsetxattr(fd, attr, block, 65536, 0) < 0)
			return;
	}
}

static void make_memfd_xattrs(void)
{
	for (int fd; (fd = (int)memfd_create("x", 0)) >= 0;)
		set_many(fd);
}

static void make_work_xattrs(void)
{
	for (int i = 0; i < MANY; i++) {
		int fd = open(own_name("attributed", i), O_RDWR | O_CREAT, 0600);

		if (fd < 0)
			return;
		set_many(fd);
		(void)close(fd);
	}
}

/* An access list as long as there may be: version, owner, many users, group, mask, others. */
static size_t access_list(void *out)
{
	struct entry {
		uint16_t tag, perm;
		uint32_t id;
	} *e = (struct entry *)((char *)out + 4);
	const size_t n = (65536 - 4) / sizeof(*e);

	*(uint32_t *)out = 2;
	for (size_t i = 0; i < n; i++)
		e[i] = (struct entry){0x02, 6, getuid()};
	e[0] = (struct entry){0x01, 6, UINT32_MAX};
	e[n - 3] = (struct entry){0x04, 6, UINT32_MAX};
	e[n - 2] = (struct entry){0x10, 6, UINT32_MAX};
	e[n - 1] = (struct entry){0x20, 0, UINT32_MAX};
	return 4 + n * sizeof(*e);
}

static void make_lists(const char *where)
{
	static uint32_t list[16384];
	size_t size = access_list(list);

	for (int i = 0; i < MANY; i++, made++) {
		const char *name = own_name(where, i);

		if (mkdir(name, 0700) < 0 ||
		    setxattr(name, "system.posix_acl_access", list, size, 0) < 0 ||
		    setxattr(name, "system.posix_acl_default", list, size, 0) < 0)
			return;
	}
}

static void make_tmpfs_lists(void)
{
	make_lists("/tmp/listed");
}

/* A list that what is made below a directory inherits. */
static void make_inherited_lists(void)
{
	static uint32_t list[16384];
	size_t size = access_list(list);
	char name[96];

	(void)snprintf(name, sizeof(name), "/dev/shm/heirs.%d", who);
	if (mkdir(name, 0700) < 0 ||
	    setxattr(name, "system.posix_acl_default", list, size, 0) < 0)
		return;
	for (int i = 0; i < MANY; i++, made++) {
		(void)snprintf(name, sizeof(name), "/dev/shm/heirs.%d/%d", who, i);
		if (mknod(name, S_IFREG | 0600, 0) < 0)
			return;
	}
}

static void make_tmpfs_links(void)
{
	char target[4000];

	memset(target, 'x', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	for (int i = 0; symlink(target, own_name("/dev/shm/link", i)) == 0; i++)
		made++;
}

const struct object_kind objects_of_files[] = {
	{"locks", make_locks, "both", "100,000 for the job, then it is ended (`objects`)",
	 ""},
	{"ofd-locks", make_ofd_locks, "both",
	 "100,000 for the job, then it is ended (`objects`)", ""},
	{"flocks", make_flocks, "both", "one a descriptor", ""},
	{"tmpfs-inodes", make_tmpfs_inodes, "full",
	 "the mount's own bound (one for each 4 KiB of its size, and 1,024), 1 KiB each",
	 ""},
	{"tmpfs-links", make_tmpfs_links, "full",
	 "the mount's own bound of inodes and blocks", ""},
	{"tmpfs-xattrs", make_tmpfs_xattrs, "full",
	 "refused on what is no disk (EOPNOTSUPP)", ""},
	{"tmpfs-lists", make_tmpfs_lists, "full",
	 "refused on what is no disk (EOPNOTSUPP)", ""},
	{"inherited-lists", make_inherited_lists, "full",
	 "refused on what is no disk (EOPNOTSUPP)", ""},
	{"memfd-xattrs", make_memfd_xattrs, "both",
	 "refused (`full`: EOPNOTSUPP; `floor`: EPERM)", ""},
	{"work-xattrs", make_work_xattrs, "both",
	 "on the disk, with the file: the kernel's bound for an inode and the disk limit",
	 ""},
	{"memfds", make_memfds, "both", "through the descriptor: its blocks", "162 MiB"},
	{"negative-dentries", make_negative, "both",
	 "nothing holds them: the kernel takes them back when memory is wanted", ""},
	{0},
};
