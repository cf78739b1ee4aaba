/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that change mode, owner, times or attributes, each by its number. */
#include "tests/escape/metadata/metadata.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

int failed;
const struct timespec then[2] = {{1000000000, 5}, {1100000000, 7}};

int result(long r)
{
	return r < 0 ? errno : 0;
}

int path_call(int which, int dirfd, const char *path)
{
	struct attr_args a = {(uintptr_t)"v", 1, 0};
	struct timeval tv[2] = {{1000000000, 0}, {1100000000, 0}};
	struct utimbuf ut = {1000000000, 1100000000};
	char full[PATH_MAX];

	/* The calls without a dirfd: relative to the working directory only. */
	(void)snprintf(full, sizeof(full), "%s", path);
	switch (which) {
	case 0:
		return result(syscall(SYS_fchmodat, dirfd, path, 0644));
	case 1:
		return result(syscall(NR_FCHMODAT2, dirfd, path, 0644, 0));
	case 2:
		return result(utimensat(dirfd, path, then, 0));
	case 3:
		return result(utimensat(dirfd, path, NULL, 0));
	case 4:
		return result(fchownat(dirfd, path, getuid(), getgid(), 0));
	case 5:
		return result(syscall(NR_SETXATTRAT, dirfd, path, 0, "user.try", &a,
				      sizeof(a)));
	case 6:
		return result(syscall(NR_REMOVEXATTRAT, dirfd, path, 0, "user.mark"));
	case 7:
		return result(chmod(full, 0644));
	case 8:
		return result(utimes(full, tv));
	case 9:
		return result(utime(full, &ut));
	case 10:
		return result(chown(full, getuid(), (gid_t)-1));
	case 11:
		return result(setxattr(full, "user.try", "v", 1, 0));
	case 12:
		return result(removexattr(full, "user.mark"));
#ifdef SYS_futimesat
	case 13:
		return result(syscall(SYS_futimesat, dirfd, path, tv));
#endif
	case 14:
		return result(utimensat(dirfd, path, then, AT_SYMLINK_NOFOLLOW));
	case 15:
		return result(lchown(full, getuid(), getgid()));
	case 16:
		return result(lsetxattr(full, "user.try", "v", 1, 0));
	default:
		return ENOSYS;
	}
}

int fd_call(int which, int fd)
{
	struct attr_args a = {(uintptr_t)"v", 1, 0};
	struct timeval tv[2] = {{1000000000, 0}, {1100000000, 0}};
	unsigned flags = 0x40; /* FS_NODUMP_FL */

	switch (which) {
	case 0:
		return result(fchmod(fd, 0644));
	case 1:
		return result(fchown(fd, getuid(), getgid()));
	case 2:
		return result(futimens(fd, then));
	case 3:
		return result(fsetxattr(fd, "user.try", "v", 1, 0));
	case 4:
		return result(fremovexattr(fd, "user.mark"));
	case 5:
		return result(syscall(NR_FCHMODAT2, fd, "", 0644, AT_EMPTY_PATH));
	case 6:
		return result(fchownat(fd, "", getuid(), getgid(), AT_EMPTY_PATH));
	case 7:
		return result(utimensat(fd, "", then, AT_EMPTY_PATH));
	case 8:
		return result(syscall(NR_SETXATTRAT, fd, "", AT_EMPTY_PATH, "user.try",
				      &a, sizeof(a)));
#ifdef SYS_futimesat
	case 9:
		return result(syscall(SYS_futimesat, fd, NULL, tv));
#endif
	case 10:
		return result(syscall(SYS_ioctl, fd, 0x40086602UL, &flags));
	default:
		return ENOSYS;
	}
}

void relink(const char *target, const char *name)
{
	(void)unlink(name);
	if (symlink(target, name) < 0)
		perror(name);
}

void wants(const char *what, int got, int wanted)
{
	if (got == wanted)
		return;
	(void)printf("FAIL %s: %s, wanted %s\n", what, strerror(got), strerror(wanted));
	failed++;
}
