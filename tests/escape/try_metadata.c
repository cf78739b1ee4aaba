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
#include "tests/escape/metadata/metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

/* here: the workspace */
static void attack_by_name(const char *out, const char *victim, const char *here)
{
	char up[2 * PATH_MAX], odd[4 * PATH_MAX];

	attack_path("absolute path", HERE, victim);
	(void)snprintf(odd, sizeof(odd), "//%s/../%s", out, victim);
	attack_path("odd absolute path", HERE, odd);
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
}

static int attack(const char *out)
{
	char victim[2 * PATH_MAX], odd[2 * PATH_MAX], here[PATH_MAX];
	int dir, ro, fd;

	(void)snprintf(victim, sizeof(victim), "%s/victim", out);
	if (!getcwd(here, sizeof(here)))
		return 2;
	attack_by_name(out, victim, here);
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
	bool no_xattrat = argc == 2 && strcmp(argv[1], "works-but-xattrat") == 0;
	if (argc == 2 && (no_xattrat || strcmp(argv[1], "works") == 0))
		return works(no_xattrat);
	if (argc == 2 && strcmp(argv[1], "has-xattrat") == 0)
		return has_xattrat();
	if (argc == 2 && strcmp(argv[1], "affinity") == 0)
		return affinity();
	if (argc == 3 && strcmp(argv[1], "flood") == 0)
		return flood(strtol(argv[2], NULL, 10));
	return 2;
}