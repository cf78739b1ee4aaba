/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * What the keeper reads of a thread that waits for its answer. All of it is hostile, and
 * belongs to that thread only if notify_still_waits() says so afterwards. What it writes goes
 * where that thread may write itself.
 */
#include "sandbox/keeper/notify.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PROC_TEXT_MAX 4096
#define STRING_AT_ONCE 256 /* most are shorter */
#define PIDFD_GETFD_FLAGS 0
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

int notify_read(const struct seccomp_notif *req, uint64_t addr, void *out, size_t len)
{
	struct iovec to = {out, len};
	struct iovec from = {(void *)(uintptr_t)addr, len};

	if (len == 0)
		return 0;
	if (process_vm_readv((pid_t)req->pid, &to, 1, &from, 1, 0) == (ssize_t)len)
		return 0;
	/* A process that we may not look into (a program it cannot read itself) is
	 * refused like one whose pointer is wrong. */
	return -EFAULT;
}

int notify_write(const struct notify *n, const struct seccomp_notif *req, uint64_t addr,
		 const void *data, size_t len)
{
	struct iovec from = {(void *)(uintptr_t)data, len};
	struct iovec to = {(void *)(uintptr_t)addr, len};

	if (len == 0)
		return 0;
	if (!notify_still_waits(n, req))
		return -ESRCH;
	if (process_vm_writev((pid_t)req->pid, &from, 1, &to, 1, 0) == (ssize_t)len)
		return 0;
	return -EFAULT;
}

int notify_read_string(const struct seccomp_notif *req, uint64_t addr, char *out,
		       size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 0;

	/* Never across the end of a page: the next one may not be there, and the string
	 * may end before it. */
	while (len < size) {
		size_t n = page - (size_t)((addr + len) % page);
		int r;

		if (n > STRING_AT_ONCE)
			n = STRING_AT_ONCE;
		if (n > size - len)
			n = size - len;
		r = notify_read(req, addr + len, out + len, n);
		if (r < 0)
			return r;
		if (memchr(out + len, '\0', n))
			return 0;
		len += n;
	}
	return -ENAMETOOLONG;
}

static int proc_read(const struct notify *n, const char *path, char *out, size_t size)
{
	cleanup_close int fd = openat(n->proc_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, out, size - 1);

	if (got < 0)
		return -errno;
	out[got] = '\0';
	return 0;
}

int notify_open_fd(const struct notify *n, const struct seccomp_notif *req, int fd,
		   int *ret)
{
	char path[64];
	int got;

	if (fd == AT_FDCWD)
		(void)snprintf(path, sizeof(path), "%u/cwd", req->pid);
	else if (fd < 0)
		return -EBADF;
	else
		(void)snprintf(path, sizeof(path), "%u/fd/%d", req->pid, fd);
	got = openat(n->proc_fd, path, O_PATH | O_CLOEXEC);
	if (got < 0)
		return errno == ENOENT && fd != AT_FDCWD ? -EBADF : -errno;
	*ret = got;
	return 0;
}

/*
 * The asking thread; most ask again. While it waits nobody else has its number, and a
 * pidfd whose thread is gone says ESRCH for ever: one that still answers is the asker's.
 */
static int asker(struct notify *n, const struct seccomp_notif *req, bool anew)
{
	if (n->asker_fd >= 0 && n->asker == req->pid && !anew)
		return n->asker_fd;
	fd_close(&n->asker_fd);
	n->asker = req->pid;
	n->asker_fd = (int)syscall(SYS_pidfd_open, (pid_t)req->pid, PIDFD_THREAD);
	return n->asker_fd;
}

int notify_take_fd(struct notify *n, const struct seccomp_notif *req, int fd, int *ret)
{
	int got = -1;

	if (fd < 0)
		return -EBADF;
	for (int i = 0; i < 2 && got < 0; i++) {
		int pidfd = asker(n, req, i > 0);

		if (pidfd < 0)
			return -errno;
		got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, PIDFD_GETFD_FLAGS);
		if (got < 0 && errno != ESRCH)
			break;
	}
	if (got < 0)
		return -errno;
	*ret = got;
	return 0;
}

/* The same through /proc: is it one of O_PATH? */
static int check_not_path(const struct notify *n, const struct seccomp_notif *req, int fd)
{
	char path[64], text[PROC_TEXT_MAX];
	const char *flags;
	int r;

	(void)snprintf(path, sizeof(path), "%u/fdinfo/%d", req->pid, fd);
	r = fd < 0 ? -ENOENT : proc_read(n, path, text, sizeof(text));
	if (r < 0)
		return r == -ENOENT ? -EBADF : r;
	flags = strstr(text, "flags:");
	if (!flags || (strtoul(flags + strlen("flags:"), NULL, 8) & O_PATH))
		return -EBADF;
	return 0;
}

int notify_open_object(struct notify *n, const struct seccomp_notif *req, int fd,
		       int *ret, bool *ret_opened)
{
	int r = notify_take_fd(n, req, fd, ret);

	*ret_opened = r == 0;
	if (r == 0 || r == -EBADF)
		return r;
	r = check_not_path(n, req, fd); /* an outer filter may forbid to take it */
	return r < 0 ? r : notify_open_fd(n, req, fd, ret);
}

pid_t notify_tgid(const struct notify *n, pid_t tid)
{
	char path[32], text[PROC_TEXT_MAX];
	const char *p;

	(void)snprintf(path, sizeof(path), "%d/status", tid);
	if (proc_read(n, path, text, sizeof(text)) < 0)
		return 0;
	p = strstr(text, "\nTgid:");
	return p ? (pid_t)strtol(p + strlen("\nTgid:"), NULL, 10) : 0;
}
