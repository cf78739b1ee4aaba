/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mode, owner, times and attributes in grade floor, from inside (tests/escape/metadata.sh).
 * The working directory is the workspace; OUT is a directory of the same uid that nothing
 * grants, OUT/ro in it is granted by --ro.
 *
 *	try_metadata attack OUT		every call, every way to name a file outside
 *	try_metadata race OUT ROUNDS	a thread swaps links and directories meanwhile
 *	try_metadata brought FD...	the calls on descriptors that it was given for writing;
 *					"sent": one that comes over stdin
 *	try_metadata works		the same calls on one's own files, and their errnos
 *	try_metadata works-but-xattrat	as above, where the kernel (before 6.13) or a
 *					container's filter has no setxattrat: see has-xattrat
 *	try_metadata has-xattrat	exit 0: it is there (for outside the sandbox)
 *	try_metadata affinity		more CPUs, others' threads
 *	try_metadata flood N		N refused calls, as fast as they go
 *
 * "attack" and "race" only say what was answered; whether something happened is judged
 * outside.
 */
#include "common/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_REMOVEXATTRAT 466
#define NR_FILE_SETATTR 469
#define HERE AT_FDCWD

static int failed;
static const struct timespec then[2] = {{1000000000, 5}, {1100000000, 7}};

struct attr_args {
	uint64_t value;
	uint32_t size, flags;
};

static int result(long r)
{
	return r < 0 ? errno : 0;
}

/* ---- all calls ------------------------------------------------------------------- */

#define N_PATH_CALLS 17
static int path_call(int which, int dirfd, const char *path)
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

#define N_FD_CALLS 11
static int fd_call(int which, int fd)
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

/* ---- attack ------------------------------------------------------------------------ */

static void refused(const char *how, int call, int got)
{
	if (got == 0) {
		(void)fprintf(stderr, "ALLOWED %s, call %d\n", how, call);
		failed++;
	}
}

static void attack_path(const char *how, int dirfd, const char *path)
{
	for (int i = 0; i < N_PATH_CALLS; i++) {
		/* Calls without a dirfd, and those that act on a link itself, would only
		 * meet another name. */
		if ((dirfd != HERE && i >= 7 && i != 13) || i >= 14)
			continue;
		refused(how, i, path_call(i, dirfd, path));
	}
}

static void attack_fd(const char *how, int fd)
{
	char path[64];

	if (fd < 0)
		return;
	for (int i = 0; i < N_FD_CALLS; i++)
		refused(how, i, fd_call(i, fd));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	attack_path(how, HERE, path);
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	attack_path(how, HERE, path);
	(void)snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	attack_path(how, HERE, path);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	attack_path(how, HERE, path);
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", getpid(), getpid(),
		       fd);
	attack_path(how, HERE, path);
}

static const char *out_path(const char *out, const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned next;
	char *p = path[next++ % 4];

	(void)snprintf(p, PATH_MAX, "%s/%s", out, name);
	return p;
}

static void relink(const char *target, const char *name)
{
	(void)unlink(name);
	if (symlink(target, name) < 0)
		perror(name);
}

static int attack(const char *out)
{
	const char *victim = out_path(out, "victim");
	char up[2 * PATH_MAX], odd[3 * PATH_MAX], here[PATH_MAX];
	int dir, ro, fd;

	attack_path("absolute path", HERE, victim);
	(void)snprintf(odd, sizeof(odd), "//%s/../%s", out, victim);
	attack_path("odd absolute path", HERE, odd);
	if (!getcwd(here, sizeof(here)))
		return 2;
	(void)snprintf(odd, sizeof(odd), "%s/..%s/victim", here, strrchr(out, '/'));
	attack_path("through the workspace and up", HERE, odd);
	(void)snprintf(up, sizeof(up), "..%s/victim", strrchr(out, '/'));
	attack_path("relative and up", HERE, up);
	(void)mkdir("sub", 0755);
	(void)snprintf(up, sizeof(up), "sub/../..%s/victim", strrchr(out, '/'));
	attack_path("down and up", HERE, up);
	attack_path("a directory outside", HERE, out);
	attack_path("the host's root", HERE, "/");
	attack_path("a symlink to a file", HERE, (relink(victim, "sym"), "sym"));
	attack_path("a symlink to a directory", HERE,
		    (relink(out, "symdir"), "symdir/victim"));
	relink("symdir/victim", "symsym");
	attack_path("a symlink through a symlink", HERE, "symsym");
	(void)snprintf(up, sizeof(up), "..%s", strrchr(out, '/'));
	attack_path("a relative symlink", HERE, (relink(up, "symup"), "symup/victim"));
	attack_path("/proc/self/cwd", HERE, "/proc/self/cwd/symdir/victim");
	(void)snprintf(odd, sizeof(odd), "/proc/self/root%s", victim);
	attack_path("/proc/self/root", HERE, odd);
	(void)snprintf(odd, sizeof(odd), "/proc/%d/root%s", getppid(), victim);
	attack_path("the keeper's root", HERE, odd);
	relink(odd, "symproc");
	attack_path("a symlink into /proc", HERE, "symproc");

	ro = open(out_path(out, "ro/file"), O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		return 2;
	attack_fd("a file shown read-only", ro);
	fd = open(out_path(out, "ro/file"), O_PATH | O_CLOEXEC);
	attack_fd("a file shown read-only, O_PATH", fd);
	attack_path("its path", HERE, out_path(out, "ro/file"));
	/* O_PATH needs no right: a descriptor of the victim itself. */
	fd = open(victim, O_PATH | O_CLOEXEC);
	attack_fd("O_PATH of the victim", fd);
	dir = open(out, O_PATH | O_DIRECTORY | O_CLOEXEC);
	attack_path("O_PATH of its directory", dir, "victim");
	dir = open(out_path(out, "ro"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	attack_fd("a directory shown read-only", dir);
	attack_path("below a directory shown read-only", dir, "file");
	attack_path("above it", dir, "../victim");
	(void)snprintf(odd, sizeof(odd), "/proc/self/fd/%d/../victim", dir);
	attack_path("above its /proc name", HERE, odd);
	if (chdir(out) == 0)
		(void)printf("the directory outside could be entered\n");
	attack_path("from inside the directory", HERE, "victim");
	/* Not even a hard link of it comes into the workspace. */
	if (chdir(here) == 0 &&
	    (link(victim, "hard") == 0 ||
	     linkat(fd, "", HERE, "hard2", AT_EMPTY_PATH) == 0 ||
	     linkat(HERE, out_path(out, "ro/file"), HERE, "hard3", 0) == 0))
		failed++;
	refused("file_setattr", 469,
		result(syscall(NR_FILE_SETATTR, HERE, victim, "", 0, 0)));
	(void)printf("attack: %d allowed\n", failed);
	return failed != 0;
}

static int receive_fd(void)
{
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n = 0;
	char byte;

	return fdpass_recv(0, &byte, 1, fds, &n, 0) == 1 ? fds[0] : -1;
}

static int brought(char **which)
{
	for (; *which; which++) {
		int fd = strcmp(*which, "sent") == 0 ? receive_fd()
						     : (int)strtol(*which, NULL, 10);
		int flags = fcntl(fd, F_GETFL);

		/* It is there and for writing, or this would show nothing. */
		if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
			return 2;
		attack_fd(*which, fd);
	}
	return failed != 0;
}

/* ---- race --------------------------------------------------------------------------- */

static atomic_int over;
static const char *race_out;
static char race_paths[2][PATH_MAX]; /* rewritten while the keeper reads it */
static int race_own, race_ro, race_fd;

/* link: own file, then the victim. dir: own directory, then a link to the one outside.
 * The text of race_paths[1]: own name, then the victim's. The number race_fd: a file shown
 * read-only, then the own one. */
static void *swapper(void *arg)
{
	char victim[PATH_MAX];

	(void)arg;
	(void)snprintf(victim, sizeof(victim), "%s/victim", race_out);
	while (!over) {
		relink("own", "next");
		(void)rename("next", "link");
		relink(victim, "next");
		(void)rename("next", "link");
		(void)syscall(SYS_renameat2, HERE, "dir", HERE, "dirlink", 2);
		memcpy(race_paths[1], victim, sizeof(victim));
		memcpy(race_paths[1], "own", 4);
		(void)dup2(race_ro, race_fd);
		(void)dup2(race_own, race_fd);
	}
	return NULL;
}

static int race(const char *out, long rounds)
{
	long done = 0;
	pthread_t t;

	race_own = open("own", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	race_ro = open(out_path(out, "ro/file"), O_RDONLY | O_CLOEXEC);
	race_fd = dup(race_own);
	if (race_ro < 0 || race_fd < 0)
		return 2;
	race_out = out;
	(void)mkdir("dir", 0700);
	(void)close(open("dir/victim", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	relink(out, "dirlink");
	relink("own", "link");
	memcpy(race_paths[1], "own", 4);
	if (pthread_create(&t, NULL, swapper, NULL) != 0)
		return 2;
	for (long i = 0; i < rounds; i++) {
		done += path_call((int)(i % 13), HERE, "link") == 0;
		done += path_call((int)(i % 13), HERE, "dir/victim") == 0;
		done += path_call((int)(i % 13), HERE, "dirlink/victim") == 0;
		done += path_call((int)(i % 13), HERE, race_paths[1]) == 0;
		done += fd_call((int)(i % N_FD_CALLS), race_fd) == 0;
	}
	over = 1;
	(void)pthread_join(t, NULL);
	(void)printf("race: %ld of %ld were done, to files of its own\n", done,
		     5 * rounds);
	return done == 0;
}

/* ---- works --------------------------------------------------------------------------- */

static void wants(const char *what, int got, int wanted)
{
	if (got == wanted)
		return;
	(void)printf("FAIL %s: %s, wanted %s\n", what, strerror(got), strerror(wanted));
	failed++;
}

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
static bool no_xattrat;

static int has_xattrat(void)
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
		wants(how, got, (i == 5 || i == 6) && no_xattrat ? ENOSYS : 0);
		if ((i < 2 || i == 7) && mode_of("f") != 0644)
			wants("the mode", 1, 0);
		if ((i == 2 || i == 8 || i == 9 || i == 13) &&
		    mtime_of("f") != 1100000000)
			wants("the time", 1, 0);
	}
}

static void errnos(void)
{
	char path[PATH_MAX + 10], *edge;
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("f", O_PATH | O_CLOEXEC), dir = open(".", O_RDONLY | O_CLOEXEC);

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

static int works(void)
{
	char here[PATH_MAX], path[2 * PATH_MAX];
	int fd, dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

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
		wants("by descriptor", fd_call(i, fd), i == 8 && no_xattrat ? ENOSYS : 0);
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
	errnos();
	(void)printf("works: %d failed\n", failed);
	return failed != 0;
}

/* ---- affinity ------------------------------------------------------------------------ */

static void *other_thread(void *arg)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(one), &one) < 0)
		return arg;
	wants("a thread its own",
	      pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
	return NULL;
}

static int affinity(void)
{
	cpu_set_t first, all, now;
	pthread_t t;
	pid_t child;

	if (sched_getaffinity(0, sizeof(first), &first) < 0)
		return 2;
	memset(&all, 0xff, sizeof(all));
	wants("all CPUs", result(sched_setaffinity(0, sizeof(all), &all)), 0);
	wants("read back", result(sched_getaffinity(0, sizeof(now), &now)), 0);
	wants("no more than before", !CPU_EQUAL(&now, &first), 0);
	CPU_XOR(&all, &all, &first);
	wants("only others", result(sched_setaffinity(0, sizeof(all), &all)), EINVAL);
	CPU_ZERO(&all);
	wants("none", result(sched_setaffinity(0, sizeof(all), &all)), EINVAL);
	wants("a wild pointer", result(syscall(SYS_sched_setaffinity, 0, 128, 8)),
	      EFAULT);
	wants("the parent's", result(sched_setaffinity(getppid(), sizeof(first), &first)),
	      EPERM);
	wants("nobody's", result(sched_setaffinity(0x3ffffff, sizeof(first), &first)),
	      ESRCH);
	child = fork();
	if (child == 0) {
		(void)sched_setaffinity(0, sizeof(first), &first);
		(void)sched_getaffinity(0, sizeof(now), &now);
		_exit(!CPU_EQUAL(&now, &first));
	}
	if (child > 0) {
		int status = 1;

		(void)waitpid(child, &status, 0);
		wants("a child", status, 0);
	}
	if (pthread_create(&t, NULL, other_thread, NULL) == 0)
		(void)pthread_join(t, NULL);
	(void)printf("affinity: %d failed\n", failed);
	return failed != 0;
}

static int flood(long n)
{
	for (long i = 0; i < n; i++)
		if (chmod("/", 0700) == 0)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "attack") == 0)
		return attack(argv[2]);
	if (argc > 2 && strcmp(argv[1], "brought") == 0)
		return brought(argv + 2);
	if (argc == 4 && strcmp(argv[1], "race") == 0)
		return race(argv[2], strtol(argv[3], NULL, 10));
	no_xattrat = argc == 2 && strcmp(argv[1], "works-but-xattrat") == 0;
	if (argc == 2 && (no_xattrat || strcmp(argv[1], "works") == 0))
		return works();
	if (argc == 2 && strcmp(argv[1], "has-xattrat") == 0)
		return has_xattrat();
	if (argc == 2 && strcmp(argv[1], "affinity") == 0)
		return affinity();
	if (argc == 3 && strcmp(argv[1], "flood") == 0)
		return flood(strtol(argv[2], NULL, 10));
	return 2;
}
