/* SPDX-License-Identifier: Apache-2.0 */
/* The same calls on one's own files: they work, and their errnos are the kernel's. */
#include "tests/escape/metadata/metadata.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_mode & 07777;
}

static time_t mtime_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_mtim.tv_sec;
}

static void own_file(void)
{
	(void)unlink("f");
	(void)close(open("f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	(void)setxattr("f", "user.mark", "m", 1, 0);
}

/* Before Linux 6.13, and below a filter that does not know it. */
static bool is_without_xattrat;

int has_xattrat(void)
{
	struct attr_args a = {(uintptr_t)"v", 1, 0};

	return result(syscall(NR_SETXATTRAT, HERE, "", 0, "user.try", &a, sizeof(a))) ==
	       ENOSYS;
}

static int xattrs_work(void)
{
	(void)close(open("x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	return setxattr("x", "user.a", "1", 1, 0) == 0;
}

/* The calls whose answer for a file of one's own is success. */
static void every_call(const char *how, int dirfd, const char *path)
{
	for (int i = 0; i < N_PATH_CALLS; i++) {
		int got;

		own_file();
		if ((dirfd != HERE && i >= 7 && i != 13) || i >= 14)
			continue;
		got = path_call(i, dirfd, path);
		if (got)
			(void)printf("call %d, ", i);
		wants(how, got, (i == 5 || i == 6) && is_without_xattrat ? ENOSYS : 0);
		if ((i < 2 || i == 7) && mode_of("f") != 0644)
			wants("the mode", 1, 0);
		if ((i == 2 || i == 8 || i == 9 || i == 13) &&
		    mtime_of("f") != 1100000000)
			wants("the time", 1, 0);
	}
}

static void errnos_of_names(void)
{
	char path[PATH_MAX + 10], *edge;
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("f", O_PATH | O_CLOEXEC);

	wants("a missing file", result(chmod("missing", 0600)), ENOENT);
	wants("an empty path", result(chmod("", 0600)), ENOENT);
	wants("a file as a directory", result(chmod("f/x", 0600)), ENOTDIR);
	wants("a trailing slash", result(chmod("f/", 0600)), ENOTDIR);
	wants("a loop", (relink("loop", "loop"), result(chmod("loop", 0600))), ELOOP);
	if (getcwd(path, PATH_MAX - 10)) {
		memcpy(path + strlen(path), "/aloop", 7);
		relink(path, "aloop");
		wants("an absolute loop", result(chmod("aloop", 0600)), ELOOP);
	}
	wants("no descriptor", result(fchmod(999, 0600)), EBADF);
	wants("no directory", result(fchmodat(999, "f", 0600, 0)), EBADF);
	wants("a file as dirfd", result(fchmodat(open("f", O_RDONLY), "x", 0600, 0)),
	      ENOTDIR);
	wants("fchmod of O_PATH", result(fchmod(fd, 0600)), EBADF);
	wants("a null pointer", result(syscall(SYS_fchmodat, HERE, NULL, 0600)), EFAULT);
	wants("a wild pointer", result(syscall(SYS_fchmodat, HERE, 8, 0600)), EFAULT);
	wants("a flag nobody has", result(syscall(NR_FCHMODAT2, HERE, "f", 0600, 0x4000)),
	      EINVAL);
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	wants("a path that is too long", result(chmod(path, 0600)), ENAMETOOLONG);
	path[300] = '\0';
	wants("a name that is too long", result(chmod(path, 0600)), ENAMETOOLONG);
	edge = map + page - 2;
	memcpy(edge, "f", 2);
	(void)munmap(map + page, (size_t)page);
	wants("a path at the end of a mapping", result(chmod(edge, 0600)), 0);
	edge[1] = 'f';
	wants("a path over the end", result(chmod(edge, 0600)), EFAULT);
}

static void errnos_of_values(void)
{
	int dir = open(".", O_RDONLY | O_CLOEXEC);

	wants("a set-user-ID bit", result(chmod("f", 04755)), EPERM);
	wants("a set-group-ID bit", result(chmod("f", 02755)), EPERM);
	wants("another owner", result(chown("f", 0, (gid_t)-1)), EPERM);
	wants("another group", result(chown("f", (uid_t)-1, 0)), EPERM);
	wants("times that are none",
	      result(utimensat(HERE, "f", (const struct timespec[2]){{0, -5}, {0, 0}},
			       0)),
	      EINVAL);
	wants("an attribute that is not there", result(removexattr("f", "user.no")),
	      ENODATA);
	wants("an attribute of the kernel's",
	      result(setxattr("f", "trusted.a", "1", 1, 0)), EPERM);
	wants("an attribute without a name", result(setxattr("f", "", "1", 1, 0)),
	      ERANGE);
	wants("an attribute that exists",
	      result(setxattr("f", "user.mark", "1", 1, XATTR_CREATE)), EEXIST);
	wants("utimensat of a descriptor", result(futimens(dir, then)), 0);
	wants("the mode of a link",
	      (relink("f", "l"),
	       result(syscall(NR_FCHMODAT2, HERE, "l", 0600, AT_SYMLINK_NOFOLLOW))),
	      EOPNOTSUPP);
	wants("the times of a link",
	      result(utimensat(HERE, "l", then, AT_SYMLINK_NOFOLLOW)), 0);
	wants("... are the link's", mtime_of("l") != 1100000000, 0);
}

/* A thread with descriptors of its own: the same number is another file there. */
static int other_number;
static atomic_int other_result = -1;

static int other_table(void *arg)
{
	(void)arg;
	other_result =
		dup2(open("g", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), other_number) < 0 ||
		syscall(SYS_utimensat, other_number, NULL, then, 0) != 0;
	(void)syscall(SYS_exit, 0); /* of this thread alone */
	return 0;
}

static void another_table(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));

	own_file();
	other_number = open("f", O_WRONLY | O_CLOEXEC);
	wants("the same number here", result(fchmod(other_number, 0600)), 0);
	if (clone(other_table, stack + sizeof(stack),
		  CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		  NULL) < 0)
		other_result = 1;
	while (other_result < 0)
		(void)sched_yield();
	wants("a thread with descriptors of its own", other_result, 0);
	wants("... its file", mtime_of("g") != 1100000000, 0);
	wants("... not ours", mtime_of("f") == 1100000000, 0);
	(void)close(other_number);
}

int works(bool no_xattrat)
{
	char here[PATH_MAX], path[2 * PATH_MAX];
	int fd, dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	is_without_xattrat = no_xattrat;
	if (!getcwd(here, sizeof(here)) || !xattrs_work()) {
		(void)printf("no extended attributes here\n");
		return 2;
	}
	(void)mkdir("sub", 0755);
	every_call("by name", HERE, "f");
	every_call("by a directory", dir, "f");
	every_call("up", HERE, "sub/../f");
	(void)snprintf(path, sizeof(path), "%s/f", here);
	every_call("by absolute path", HERE, path);
	relink(path, "abs");
	every_call("by an absolute link", HERE, "abs");
	relink(here, "absdir");
	every_call("by a linked directory", HERE, "absdir/sub/../f");
	(void)snprintf(path, sizeof(path), "..%s/f", strrchr(here, '/'));
	every_call("out and in again", HERE, path);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/f", dir);
	every_call("by a /proc name of a directory", HERE, path);
	(void)snprintf(path, sizeof(path), "/proc/self/cwd/f");
	every_call("by /proc/self/cwd", HERE, path);
	if (chdir("sub") == 0) {
		wants("from below", path_call(7, HERE, "../f"), 0);
		wants("from above", chdir("/") < 0 ? errno : 0, 0);
		(void)snprintf(path, sizeof(path), "%s/f", here + 1);
		wants("from the root", path_call(7, HERE, path), 0);
	}
	if (fchdir(dir) < 0)
		return 2;
	for (int i = 0; i < 10; i++) {
		own_file();
		fd = open("f", O_RDONLY | O_CLOEXEC);
		wants("by descriptor", fd_call(i, fd),
		      i == 8 && is_without_xattrat ? ENOSYS : 0);
		(void)close(fd);
	}
	another_table();
	fd = open("f", O_PATH | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	wants("a /proc name of O_PATH", result(chmod(path, 0640)), 0);
	wants("... the mode", mode_of("f") != 0640, 0);
	(void)unlink("f");
	wants("a file without a name", result(chmod(path, 0600)), 0);
	own_file();
	errnos_of_names();
	errnos_of_values();
	(void)printf("works: %d failed\n", failed);
	return failed != 0;
}
