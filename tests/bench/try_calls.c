/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a system call costs in here. Runs in the working directory, prints NAME, a tab,
 * nanoseconds a call. A call that a wall refuses is a call too.
 *
 *	denied	mount(2): refused by the filter (bare: by the kernel)
 *	chmod	of an own file by its path: supervised in grade floor
 */
#include "tests/bench/die.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OWN_FILE "try_calls.file"

static int null_fd;

static void do_getpid(void)
{
	(void)syscall(SYS_getpid);
}

static void do_open(void)
{
	int fd = open(OWN_FILE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die_errno(OWN_FILE);
	(void)close(fd);
}

static void do_stat(void)
{
	struct stat st;

	if (stat(OWN_FILE, &st) < 0)
		die_errno(OWN_FILE);
}

static void do_write(void)
{
	if (write(null_fd, "x", 1) != 1)
		die_errno("/dev/null");
}

static void do_denied(void)
{
	if (mount("none", "/nowhere", "tmpfs", 0, NULL) == 0)
		die("mount worked");
}

static void do_chmod(void)
{
	if (chmod(OWN_FILE, 0600) < 0)
		die_errno("chmod");
}

static double ns_a_call(void (*call)(void), unsigned calls)
{
	struct timespec a, b;

	for (unsigned i = 0; i < calls / 10; i++)
		call();
	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	for (unsigned i = 0; i < calls; i++)
		call();
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
	       calls;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*call)(void);
		unsigned calls;
	} list[] = {
		{"getpid", do_getpid, 200000}, {"openat+close", do_open, 50000},
		{"stat", do_stat, 100000},     {"write", do_write, 200000},
		{"denied", do_denied, 50000},  {"chmod", do_chmod, 5000},
	};
	int fd = open(OWN_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || null_fd < 0)
		die_errno("open");
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		printf("%s\t%.1f\n", list[i].name,
		       ns_a_call(list[i].call, list[i].calls));
	return 0;
}
