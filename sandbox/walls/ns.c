/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner and the keeper.
 * Namespaces, identity maps and descriptors of the sandbox's own processes:
 * the keeper and the spawner.
 */
#include "common/cleanup.h"
#include "common/str.h"
#include "sandbox/contract/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SIGNALS 64
#define PAGE_BYTES ((uintptr_t)4096)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static const struct {
	int flag;
	const char *name;
} namespaces[] = {
	{CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"}, {CLONE_NEWNET, "net"},
	{CLONE_NEWIPC, "ipc"},	{CLONE_NEWUTS, "uts"}, {CLONE_NEWCGROUP, "cgroup"},
};

static pid_t raw_clone(int flags, int *pidfd)
{
	return (pid_t)syscall(SYS_clone, (unsigned long)(flags | CLONE_PIDFD | SIGCHLD),
			      NULL, pidfd, NULL, 0UL);
}

/* Can a child with only these be made? */
static bool can_clone(int flags)
{
	cleanup_close int fd = -1;
	int status = 0;
	pid_t pid = raw_clone(flags, &fd);

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, &status, 0) == pid;
}

pid_t ns_fork(int flags, int *ret_pidfd, struct err *err)
{
	int fd = -1, saved;
	pid_t pid = raw_clone(flags, &fd);

	if (pid >= 0) {
		if (pid > 0)
			*ret_pidfd = fd;
		return pid;
	}
	saved = errno;
	if (!(flags & CLONE_NEWUSER)) {
		errno = saved;
		return err_sys(err, "fork");
	}
	if (!can_clone(CLONE_NEWUSER)) {
		errno = saved;
		return err_sys_id(err, ERRID_SANDBOX_USERNS, "make a user namespace");
	}
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if ((flags & namespaces[i].flag) &&
		    !can_clone(CLONE_NEWUSER | namespaces[i].flag)) {
			errno = saved;
			return err_sys_id(err, ERRID_SANDBOX_NS, "make a %s namespace",
					  namespaces[i].name);
		}
	errno = saved;
	return err_sys_id(err, ERRID_SANDBOX_NS, "make the namespaces");
}

static int write_once(const char *path, const char *text, struct err *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (n < 0 || (size_t)n != strlen(text))
		return err_sys_id(err, ERRID_SANDBOX_USERNS,
				  "in a new user namespace: write %s", path);
	return 0;
}

int ns_map_self(uid_t uid, gid_t gid, struct err *err)
{
	char line[64];

	if (write_once("/proc/self/setgroups", "deny", err) < 0)
		return -1;
	(void)snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
	if (write_once("/proc/self/uid_map", line, err) < 0)
		return -1;
	(void)snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
	if (write_once("/proc/self/gid_map", line, err) < 0)
		return -1;
	if (getuid() != uid || geteuid() != uid || getgid() != gid || getegid() != gid)
		return err_set_id(err, ERRID_SANDBOX_USERNS,
				  "the identity map did not take");
	return 0;
}

int ns_close_all_but(const int *keep, size_t n, struct err *err)
{
	unsigned from = 3;

	for (;;) {
		unsigned next = UINT_MAX;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= from &&
			    (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next == UINT_MAX)
			break;
		if (next > from && syscall(SYS_close_range, from, next - 1, 0) < 0)
			return err_sys(err, "close_range");
		from = next + 1;
	}
	if (syscall(SYS_close_range, from, UINT_MAX, 0) < 0)
		return err_sys(err, "close_range");
	return 0;
}

void ns_default_signals(void)
{
	/* The kernel's own structure, all defaults: libc keeps signals 32 and 33 from us,
	 * and whoever started us may ignore them. */
	static const uint64_t defaults[8];

	for (int s = 1; s <= SIGNALS; s++)
		(void)syscall(SYS_rt_sigaction, s, defaults, NULL, SIGNALS / 8);
}

int ns_stdio_null(int null_fd, bool err_too, struct err *err)
{
	for (int i = 0; i < (err_too ? 3 : 2); i++)
		if (dup2(null_fd, i) != i)
			return err_sys(err, "put /dev/null at %d", i);
	return 0;
}

void ns_map_code(void)
{
	extern const char __executable_start[], etext[];
	uintptr_t from = (uintptr_t)__executable_start & ~(PAGE_BYTES - 1);

	(void)madvise((void *)from, (uintptr_t)etext - from, MADV_POPULATE_READ);
}

int ns_die_with(int parent_pidfd, struct err *err)
{
	struct pollfd p = {.fd = parent_pidfd, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(err, "PR_SET_PDEATHSIG");
	if (poll(&p, 1, 0) != 0)
		return err_set(err, ERR_SETUP, "the parent is gone");
	return 0;
}
