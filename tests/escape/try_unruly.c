/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that misbehaves in one chosen way. Runs inside; the verdict is made outside.
 *	try_unruly ACT [ARGUMENT] MARKER
 * The last argument is only there to be found in /proc by whoever looks for survivors.
 */
#include "common/attr.h"
#include "tests/escape/unruly/unruly.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CHUNK (4 * MIB)

static void touch(char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 4096)
		p[i] = (char)(i >> 12 | 1);
}

char *map(size_t n, int flags)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		_exit(20);
	}
	touch(p, n);
	return p;
}

static int act_heap(const char *arg)
{
	(void)arg;
	for (;;)
		(void)map(CHUNK, MAP_PRIVATE);
	return 0;
}

static int act_shared(const char *arg)
{
	(void)arg;
	for (;;)
		(void)map(CHUNK, MAP_SHARED);
	return 0;
}

/* Memory that many share counts once: this is within the limit. */
static int act_forkshare(const char *arg)
{
	char *p = map(100 * MIB, MAP_PRIVATE);

	(void)arg;
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			(void)sleep(1);
			_exit(p[4096] ? 0 : 1);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* A file of /dev/shm, mapped by two: counts once. arg: the directory. */
static int act_shmfile(const char *arg)
{
	char path[256];
	int fd;
	char *p;

	(void)snprintf(path, sizeof(path), "%s/object", arg);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 150 * (off_t)MIB) < 0)
		return 21;
	p = mmap(NULL, 150 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 22;
	touch(p, 150 * MIB);
	if (fork() == 0) {
		touch(p, 150 * MIB);
		(void)sleep(1);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

int fill(int fd, size_t total)
{
	static char block[MIB];

	memset(block, 'x', sizeof(block));
	for (size_t done = 0; done < total; done += sizeof(block))
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return errno ? errno : EIO;
	return 0;
}

static int act_memfd(const char *arg)
{
	(void)arg;
	for (;;) {
		int fd = memfd_create("x", MFD_CLOEXEC);

		if (fd < 0 || fill(fd, 16 * MIB))
			return 23;
	}
}

/* The leader is gone, its /proc entry says nothing; a thread fills the memory. */
static void *leaderless(void *arg)
{
	(void)arg;
	(void)usleep(100000);
	for (;;)
		(void)map(CHUNK, MAP_PRIVATE);
	return NULL;
}

static int act_leaderless(const char *arg)
{
	pthread_t t;

	(void)arg;
	if (pthread_create(&t, NULL, leaderless, NULL))
		return 24;
	pthread_exit(NULL);
}

static int act_files(const char *arg) /* arg: a directory */
{
	for (unsigned n = 0;; n++) {
		char path[256];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/f%u", arg, n);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return 25;
		if (fill(fd, MIB))
			return 26;
		(void)close(fd);
	}
}

static int act_tiny(const char *arg) /* very many, all empty */
{
	for (unsigned n = 0;; n++) {
		char path[256];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/t%u", arg, n);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return 25;
		(void)close(fd);
	}
}

static int act_unlinked(const char *arg)
{
	for (unsigned n = 0;; n++) {
		char path[256];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/u%u", arg, n);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || unlink(path) < 0 || fill(fd, MIB))
			return 27;
	}
}

static int act_onefile(const char *arg)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/one", arg);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? 28 : fill(fd, (size_t)1 << 40);
}

/* The directory is closed to its owner while it is filled. */
static int act_closed(const char *arg)
{
	char path[256];
	int dir, n = 0;

	(void)snprintf(path, sizeof(path), "%s/closed", arg);
	if (mkdir(path, 0700) < 0)
		return 29;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 30;
	for (;; n++) {
		char name[32];
		int fd;

		(void)snprintf(name, sizeof(name), "c%d", n);
		(void)fchmod(dir, 0700);
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		(void)fchmod(dir, 0);
		if (fd < 0)
			continue; /* the keeper restored the mode in between */
		if (fill(fd, MIB))
			return 31;
		(void)close(fd);
	}
}

/* One file under a thousand names is one file: 1000 MiB that are 1. */
static int act_links(const char *arg)
{
	char path[256], name[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/l", arg);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fill(fd, MIB))
		return 32;
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "%s/l%d", arg, i);
		if (link(path, name) < 0)
			return 33;
	}
	(void)sleep(1);
	return 0;
}

static int act_deep(const char *arg)
{
	if (chdir(arg) < 0)
		return 34;
	for (int i = 0; i < 2000; i++)
		if (mkdir("d", 0700) < 0 || chdir("d") < 0)
			return 35;
	(void)sleep(LONG_SEC);
	return 0;
}

static int act_bomb(const char *arg)
{
	(void)arg;
	for (;;)
		if (fork() < 0)
			(void)usleep(100);
	return 0;
}

static void *sleeper(void *arg)
{
	(void)arg;
	(void)sleep(LONG_SEC);
	return NULL;
}

static int act_threads(const char *arg)
{
	(void)arg;
	for (;;) {
		pthread_attr_t a;
		pthread_t t;

		(void)pthread_attr_init(&a);
		(void)pthread_attr_setstacksize(&a, 65536);
		if (pthread_create(&t, &a, sleeper, NULL))
			(void)usleep(1000);
	}
	return 0;
}

/* arg: how many orphans that die at once, for the keeper to reap. */
static int act_zombies(const char *arg)
{
	long n = strtol(arg, NULL, 10);

	for (long i = 0; i < n;) {
		pid_t p = fork();

		if (p == 0) {
			for (int k = 0; k < 10; k++)
				if (fork() == 0)
					_exit(0);
			_exit(0);
		}
		if (p > 0)
			(void)waitpid(p, NULL, 0);
		else
			(void)usleep(1000);
		i += 10;
	}
	return 0;
}

static int act_orphan(const char *arg)
{
	(void)arg;
	if (fork() == 0) {
		(void)setsid();
		if (fork() == 0) {
			(void)signal(SIGTERM, SIG_IGN);
			(void)signal(SIGHUP, SIG_IGN);
			(void)sleep(LONG_SEC);
		}
		_exit(0);
	}
	(void)usleep(200000);
	return 0;
}

static int act_stop(const char *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			(void)raise(SIGSTOP);
			(void)sleep(LONG_SEC);
			_exit(0);
		}
	(void)usleep(50000);
	(void)raise(SIGSTOP);
	(void)sleep(LONG_SEC);
	return 0;
}

/* Comes and goes without an end, below every limit. */
static int act_churn(const char *arg)
{
	(void)arg;
	for (unsigned alive = 0;;) {
		pid_t p = fork();

		if (p == 0) {
			(void)usleep(10000);
			_exit(0);
		}
		alive += p > 0;
		while (alive > 30 && wait(NULL) > 0)
			alive--;
	}
	return 0;
}

static int act_hold(const char *arg) /* arg: so many MiB, for ever */
{
	(void)map((size_t)strtoul(arg, NULL, 10) * MIB, MAP_PRIVATE);
	(void)sleep(LONG_SEC);
	return 0;
}

/* 10 GiB of output. arg: line (one without an end), both (streams, in turn). */
static int act_flood(const char *arg)
{
	static char block[65536];
	bool both = strcmp(arg, "both") == 0;

	memset(block, 'x', sizeof(block));
	if (both)
		block[sizeof(block) - 1] = '\n';
	for (size_t done = 0, n = 0; done < 10240 * MIB; n++) {
		ssize_t w = write(both && n % 2 ? 2 : 1, block, sizeof(block));

		if (w < 0)
			return 36;
		done += (size_t)w;
	}
	return 0;
}

static int act_million(const char *arg)
{
	for (unsigned n = 0; n < 1000000; n++) {
		char path[256];

		(void)snprintf(path, sizeof(path), "%s/d%u", arg, n / 10000);
		if (n % 10000 == 0 && mkdir(path, 0700) < 0)
			return 37;
		(void)snprintf(path, sizeof(path), "%s/d%u/%u", arg, n / 10000, n);
		if (mknod(path, S_IFREG | 0600, 0) < 0)
			return 38;
	}
	return 0;
}

static int act_deaf(const char *arg)
{
	(void)arg;
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_IGN);
	(void)sleep(LONG_SEC);
	return 0;
}

/* Whoever keeps us: by number, by group, by everything. */
static int act_regicide(const char *arg)
{
	(void)arg;
	(void)kill(getppid(), SIGKILL);
	(void)kill(getppid(), SIGSTOP);
	(void)kill(1, SIGKILL);
	(void)kill(1, SIGTERM);
	(void)kill(1, SIGSTOP);
	(void)usleep(300000);
	(void)sleep(LONG_SEC);
	return 0;
}

/* What it holds cannot be looked at without a capability. */
static int act_hide(const char *arg)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return act_memfd(arg);
}

static int act_burn(const char *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		if (fork() == 0)
			for (volatile unsigned n = 0;; n++)
				;
	(void)sleep(LONG_SEC);
	return 0;
}

/* Not a child of the shell that is waited for, but a sibling of the main process. */
static int act_sleep(const char *arg)
{
	(void)arg;
	(void)sleep(LONG_SEC);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const char *arg);
} acts[] = {
	{"heap", act_heap},	      {"shared", act_shared},
	{"forkshare", act_forkshare}, {"shmfile", act_shmfile},
	{"memfd", act_memfd},	      {"leaderless", act_leaderless},
	{"files", act_files},	      {"tiny", act_tiny},
	{"unlinked", act_unlinked},   {"onefile", act_onefile},
	{"closed", act_closed},	      {"links", act_links},
	{"deep", act_deep},	      {"bomb", act_bomb},
	{"threads", act_threads},     {"zombies", act_zombies},
	{"orphan", act_orphan},	      {"stop", act_stop},
	{"deaf", act_deaf},	      {"regicide", act_regicide},
	{"churn", act_churn},	      {"hold", act_hold},
	{"remnant", act_remnant},     {"memfdpage", act_memfdpage},
	{"filepage", act_filepage},   {"parked", act_parked},
	{"nested", act_nested},	      {"buffers", act_buffers},
	{"honest", act_honest},	      {"flood", act_flood},
	{"million", act_million},     {"hide", act_hide},
	{"burn", act_burn},	      {"sleep", act_sleep},
	{"sysv", act_sysv},	      {"sysvshare", act_sysvshare},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < ARRAY_SIZE(acts); i++)
		if (strcmp(argv[1], acts[i].name) == 0)
			return acts[i].run(argv[2]);
	(void)fprintf(stderr, "usage: try_unruly ACT [ARGUMENT] MARKER\n");
	return 2;
}