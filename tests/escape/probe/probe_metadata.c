/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section A, metadata: what Landlock doesn't judge. Targets are a file of the same uid
 * outside and one that is shown read-only.
 */
#include "tests/escape/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_REMOVEXATTRAT 466
#define NR_FILE_GETATTR 468
#define NR_FILE_SETATTR 469
#define ATTR "user.keep"

static const char *victim(void)
{
	return target("victim");
}
static int shown_fd(void)
{
	return open(target("shown"), O_RDONLY | O_CLOEXEC);
}

/* ---- 5, 6: mode and owner ---- */

static int chmod_to_all(void)
{
	return answer_of(chmod(victim(), 0666));
}
static int chmod_to_me(void)
{
	return answer_of(chmod(victim(), 0400));
}
static int fchmodat_to_me(void)
{
	return answer_of(syscall(SYS_fchmodat, AT_FDCWD, victim(), 0400));
}
static int fchmodat2_to_me(void)
{
	return answer_of(syscall(NR_FCHMODAT2, AT_FDCWD, victim(), 0400, 0));
}
static int fchmodat2_path_fd(void)
{
	int fd = open(victim(), O_PATH | O_CLOEXEC);

	return fd < 0 ? errno
		      : answer_of(syscall(NR_FCHMODAT2, fd, "", 0400, AT_EMPTY_PATH));
}
static int chmod_shown(void)
{
	return answer_of(chmod(target("shown"), 0400));
}
static int fchmod_shown(void)
{
	return answer_of(fchmod(shown_fd(), 0400));
}
static int chmod_by_symlink(void)
{
	(void)unlink("meta");
	if (symlink(victim(), "meta") < 0)
		return NO_ANSWER;
	return answer_of(chmod("meta", 0400));
}
static int chmod_relative(void)
{
	return answer_of(chmod("../outside/victim", 0400));
}
static int chown_it(void)
{
	return answer_of(chown(victim(), getuid(), getgid()));
}
static int lchown_it(void)
{
	return answer_of(lchown(victim(), (uid_t)-1, getgid()));
}
static int fchownat_it(void)
{
	return answer_of(fchownat(AT_FDCWD, victim(), (uid_t)-1, getgid(), 0));
}
static int fchown_shown(void)
{
	return answer_of(fchown(shown_fd(), (uid_t)-1, getgid()));
}

/* ---- 7: times ---- */

static int utime_it(void)
{
	return answer_of(syscall(
#ifdef SYS_utime
		SYS_utime, victim(), NULL
#else
		SYS_utimensat, AT_FDCWD, victim(), NULL, 0
#endif
		));
}
static int utimes_it(void)
{
	const struct timeval t[2] = {{1, 0}, {1, 0}};

	return answer_of(utimes(victim(), t));
}
static int utimensat_it(void)
{
	const struct timespec t[2] = {{1, 0}, {1, 0}};

	return answer_of(utimensat(AT_FDCWD, victim(), t, 0));
}
static int utimensat_link(void)
{
	const struct timespec t[2] = {{1, 0}, {1, 0}};

	return answer_of(utimensat(AT_FDCWD, victim(), t, AT_SYMLINK_NOFOLLOW));
}
static int futimesat_it(void)
{
	const struct timeval t[2] = {{1, 0}, {1, 0}};

	return answer_of(futimesat(AT_FDCWD, victim(), t));
}
static int futimens_shown(void)
{
	return answer_of(futimens(shown_fd(), NULL));
}

/* ---- 8: attributes and flags ---- */

static int setxattr_it(void)
{
	return answer_of(setxattr(victim(), "user.probe", "1", 1, 0));
}
static int lsetxattr_it(void)
{
	return answer_of(lsetxattr(victim(), "user.probe", "1", 1, 0));
}
static int fsetxattr_shown(void)
{
	return answer_of(fsetxattr(shown_fd(), "user.probe", "1", 1, 0));
}
/* What lies in memory has none: nothing would count them. */
static int fsetxattr_memfd(void)
{
	int fd = (int)memfd_create("x", MFD_CLOEXEC);

	return answer_of(fsetxattr(fd, "user.probe", "1", 1, 0));
}
static int list_in_tmp(void)
{
	/* version 2; the owner, the group, others */
	static const uint32_t list[] = {2,	    0x60001, UINT32_MAX, 0x40004,
					UINT32_MAX, 0x20,    UINT32_MAX};

	if (mkdir("/tmp/listed", 0700) < 0)
		return errno;
	return answer_of(setxattr("/tmp/listed", "system.posix_acl_default", list,
				  sizeof(list), 0));
}
static int setxattr_own(void)
{
	(void)close(open("attributed", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	return allowed_or_errno(setxattr("attributed", "user.probe", "1", 1, 0));
}
static int setxattrat_it(void)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} args = {(uint64_t)(uintptr_t)"1", 1, 0};

	return answer_of(syscall(NR_SETXATTRAT, AT_FDCWD, victim(), 0, "user.probe",
				 &args, sizeof(args)));
}
static int removexattr_it(void)
{
	return answer_of(removexattr(victim(), ATTR));
}
static int fremovexattr_shown(void)
{
	return answer_of(fremovexattr(shown_fd(), ATTR));
}
static int removexattrat_it(void)
{
	return answer_of(syscall(NR_REMOVEXATTRAT, AT_FDCWD, victim(), 0, ATTR));
}
static int file_setattr_it(void)
{
	uint64_t attr[3] = {0};

	return answer_of(
		syscall(NR_FILE_SETATTR, AT_FDCWD, victim(), attr, sizeof(attr), 0));
}
static int set_flags_shown(void)
{
	unsigned long flags = 0x40; /* no dump */

	return answer_of(ioctl(shown_fd(), FS_IOC_SETFLAGS, &flags));
}
static int set_fsxattr_shown(void)
{
	struct fsxattr x = {.fsx_xflags = 0x80}; /* no dump */

	return answer_of(ioctl(shown_fd(), FS_IOC_FSSETXATTR, &x));
}
static int set_version_shown(void)
{
	int version = 7;

	return answer_of(ioctl(shown_fd(), _IOW('v', 2, long), &version));
}
static int enable_verity_shown(void)
{
	char args[128] = {1, 0, 0, 0, 1, 0, 0, 0, 0, 16};

	return answer_of(ioctl(shown_fd(), _IOW('f', 133, char[128]), args));
}
static int encryption_shown(void)
{
	int fd = open(target("shown_dir"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char policy[12] = {0};

	return answer_of(ioctl(fd, _IOR('f', 19, char[12]), policy));
}
static int lease_shown(void)
{
	/* whoever opens it for write would wait for us */
	return answer_of(fcntl(shown_fd(), F_SETLEASE, F_RDLCK));
}

/* ---- 9: what can be seen ---- */

static int stat_it(void)
{
	struct stat st;

	return allowed_or_errno(stat(victim(), &st));
}
static int access_it(void)
{
	return allowed_or_errno(access(victim(), R_OK));
}
static int readlink_it(void)
{
	char text[64];
	int r = (int)readlink(victim(), text, sizeof(text));

	return r < 0 && errno == EINVAL ? ALLOWED : allowed_or_errno(r);
}
static int statfs_it(void)
{
	struct statfs s;

	return allowed_or_errno(statfs(victim(), &s));
}
static int open_path_it(void)
{
	return allowed_or_errno(open(victim(), O_PATH | O_CLOEXEC));
}
static int chdir_it(void)
{
	return allowed_or_errno(chdir(target("outside")));
}
static int listxattr_it(void)
{
	char names[256];

	return allowed_or_errno(listxattr(victim(), names, sizeof(names)));
}
static int file_getattr_it(void)
{
	uint64_t attr[3];
	long r = syscall(NR_FILE_GETATTR, AT_FDCWD, victim(), attr, sizeof(attr), 0);

	/* before Linux 6.17, or of a filesystem that has none: nothing was seen */
	if (r < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
		return in_floor() ? ALLOWED : ENOENT;
	return allowed_or_errno(r);
}
/* By any descriptor on the file system. */
static int remove_key(void)
{
	unsigned arg[16] = {2};

	return answer_of(ioctl(open(".", O_RDONLY | O_CLOEXEC), 0xc0406618UL, arg));
}
static int watch_it(void)
{
	return answer_of(inotify_add_watch(inotify_init1(IN_CLOEXEC), target("outside"),
					   IN_ALL_EVENTS));
}

/* clang-format off */
#define OUT {ENOENT}, {EPERM}
#define SHOWN {EROFS}, {EPERM}
#define NO_ATTRIBUTE {EOPNOTSUPP}, {EPERM}
#define SEEN {ENOENT}, {ALLOWED}
#define SEEN_NOTE "floor: what exists outside can be seen, not read"

static const struct probe probes[] = {
	{"5", "chmod 0666 outside", chmod_to_all, OUT},
	{"5b", "chmod without any bit for others", chmod_to_me, OUT},
	{"5c", "fchmodat", fchmodat_to_me, OUT},
	{"5d", "fchmodat2", fchmodat2_to_me, OUT},
	{"5e", "fchmodat2 AT_EMPTY_PATH of an O_PATH descriptor", fchmodat2_path_fd, OUT},
	{"5f", "chmod of a file shown read-only", chmod_shown, SHOWN},
	{"5g", "fchmod of its descriptor", fchmod_shown, SHOWN},
	{"5h", "chmod through a symlink of the workspace", chmod_by_symlink, OUT},
	{"5i", "chmod of `../outside/victim`", chmod_relative, OUT},
	{"6", "chown", chown_it, OUT},
	{"6b", "lchown", lchown_it, OUT},
	{"6c", "fchownat", fchownat_it, OUT},
	{"6d", "fchown of a descriptor shown read-only", fchown_shown, SHOWN},
	{"7", "utime", utime_it, OUT},
	{"7b", "utimes", utimes_it, OUT},
	{"7c", "utimensat", utimensat_it, OUT},
	{"7d", "utimensat, no symlink followed", utimensat_link, OUT},
	{"7e", "futimesat", futimesat_it, OUT},
	{"7f", "futimens of a descriptor shown read-only", futimens_shown, SHOWN},
	{"8", "setxattr", setxattr_it, NO_ATTRIBUTE},
	{"8b", "lsetxattr", lsetxattr_it, NO_ATTRIBUTE},
	{"8c", "setxattrat", setxattrat_it, {EOPNOTSUPP, ENOSYS}, {EPERM}},
	{"8d", "removexattr", removexattr_it, OUT},
	{"8e", "removexattrat", removexattrat_it, {ENOENT, ENOSYS}, {EPERM}},
	{"8f", "fsetxattr of a descriptor shown read-only", fsetxattr_shown,
	 NO_ATTRIBUTE},
	{"8g", "fremovexattr of it", fremovexattr_shown, SHOWN},
	{"8h", "file_setattr", file_setattr_it, {EPERM}, {EPERM}},
	{"8i", "FS_IOC_SETFLAGS of it", set_flags_shown, SHOWN},
	{"8j", "FS_IOC_FSSETXATTR of it", set_fsxattr_shown, SHOWN},
	{"8k", "FS_IOC_SETVERSION of it", set_version_shown, {EPERM}, {EPERM}},
	{"8l", "FS_IOC_ENABLE_VERITY of it", enable_verity_shown, {EPERM}, {EPERM}},
	{"8m", "FS_IOC_SET_ENCRYPTION_POLICY of a directory shown read-only",
	 encryption_shown, {EPERM}, {EPERM}},
	{"8n", "a lease on a file shown read-only", lease_shown, {EPERM}, {EPERM}},
	{"8o", "FS_IOC_REMOVE_ENCRYPTION_KEY: lock the owner's encrypted directories",
	 remove_key, {EPERM}, {EPERM}},
	{"8p", "an attribute of a memfd", fsetxattr_memfd, NO_ATTRIBUTE},
	{"8q", "an access list in /tmp that files inherit", list_in_tmp, {EOPNOTSUPP},
	 {EACCES}},
	{"8r", "an attribute of a file of its own", setxattr_own, {ALLOWED, EOPNOTSUPP},
	 {ALLOWED, EOPNOTSUPP}, "where the workspace's file system has them"},
	{"9", "stat", stat_it, SEEN, SEEN_NOTE},
	{"9b", "access", access_it, SEEN, SEEN_NOTE},
	{"9c", "readlink", readlink_it, SEEN, SEEN_NOTE},
	{"9d", "statfs", statfs_it, SEEN, SEEN_NOTE},
	{"9e", "open O_PATH", open_path_it, SEEN, SEEN_NOTE},
	{"9f", "chdir", chdir_it, SEEN, SEEN_NOTE},
	{"9g", "listxattr", listxattr_it, SEEN, SEEN_NOTE},
	{"9h", "file_getattr", file_getattr_it, SEEN, SEEN_NOTE},
	{"9i", "inotify watch of a directory", watch_it, {ENOENT}, {EPERM}},
};
/* clang-format on */

const struct section section_metadata = {'A', "Files", probes,
					 sizeof(probes) / sizeof(probes[0])};
