/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * Descriptors. A descriptor is a right that no path check sees again: a directory of the
 * host, a socket with a route, another job's pipe. So the job starts with three, each
 * looked at, and what the stages themselves need is O_CLOEXEC and counted.
 */
#include "sandbox/contract/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS_FIRST 3

/* It was made in another network namespace, where the job could give it a name that somebody
 * there wants (an abstract one). A socket has only one name: here is one that nobody wants. */
static int name_socket(int fd, int number, struct err *err)
{
	const struct sockaddr_un any = {.sun_family = AF_UNIX};
	struct sockaddr_un name;
	socklen_t len = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &len) < 0)
		return err_sys(err, "descriptor %d: its name", number);
	if (len > sizeof(any.sun_family))
		return 0;
	/* EPERM: a filter (in floor it may be ours by now), which the job has too. */
	if (bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) < 0 &&
	    errno != EPERM)
		return err_sys(err, "descriptor %d: give it a name", number);
	return 0;
}

/* A connected AF_UNIX stream or seqpacket leads to one known peer; anything else could be
 * told an address by the job. */
static int check_socket(int fd, int number, struct err *err)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(int), peer_len = sizeof(peer);
	int domain = 0, type = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return err_sys(err, "descriptor %d: SO_DOMAIN", number);
	len = sizeof(int);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return err_sys(err, "descriptor %d: SO_TYPE", number);
	if (domain != AF_UNIX || (type != SOCK_STREAM && type != SOCK_SEQPACKET))
		return err_set(err, ERR_SETUP,
			       "descriptor %d is a socket that could reach others",
			       number);
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0)
		return err_set(err, ERR_SETUP, "descriptor %d is a socket without a peer",
			       number);
	return name_socket(fd, number, err);
}

static int check_stdio(int fd, int number, struct err *err)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "descriptor %d", number);
	if (flags & O_PATH)
		return err_set(err, ERR_SETUP, "descriptor %d is a path only", number);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_SETUP, "descriptor %d is a directory", number);
	if (S_ISBLK(st.st_mode))
		return err_set(err, ERR_SETUP, "descriptor %d is a block device", number);
	return S_ISSOCK(st.st_mode) ? check_socket(fd, number, err) : 0;
}

bool fds_bring_no_files(const int stdio[3])
{
	for (int i = 0; i < 3; i++) {
		struct stat st;

		if (fstat(stdio[i], &st) < 0 ||
		    !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
			return false;
	}
	return true;
}

int fds_arrange(const int stdio[3], int *keep, size_t n_keep, struct err *err)
{
	int high[3 + FDS_KEEP_MAX];
	size_t n = 3 + n_keep;
	int above = FDS_FIRST + (int)n_keep;
	unsigned next = 0;

	assert(n_keep <= FDS_KEEP_MAX);
	/* First out of the way of every final number, then down to it. */
	for (size_t i = 0; i < n; i++) {
		int fd = i < 3 ? stdio[i] : keep[i - 3];

		high[i] = -1;
		if (i < 3 && check_stdio(fd, (int)i, err) < 0)
			return -1;
		if (fd < 0)
			continue;
		high[i] = fd >= above ? fd : fcntl(fd, F_DUPFD_CLOEXEC, above);
		if (high[i] < 0)
			return err_sys(err, "move descriptor %d", fd);
	}
	for (size_t i = 0; i < n; i++) {
		int to = (int)i;

		if (high[i] >= 0 && dup3(high[i], to, i < 3 ? 0 : O_CLOEXEC) < 0)
			return err_sys(err, "place descriptor %d", to);
		if (i >= 3 && high[i] >= 0)
			keep[i - 3] = to;
	}
	for (size_t i = 3; i < n; i++) {
		if (keep[i - 3] >= 0)
			continue;
		if (syscall(SYS_close_range, (unsigned)i, (unsigned)i, 0) < 0)
			return err_sys(err, "close_range");
	}
	next = (unsigned)n;
	if (syscall(SYS_close_range, next, UINT_MAX, 0) < 0)
		return err_sys(err, "close_range");
	return 0;
}

int fds_replace_stdio(const int stdio[3], struct err *err)
{
	for (int i = 0; i < 3; i++) {
		if (check_stdio(stdio[i], i, err) < 0)
			return -1;
		if (dup3(stdio[i], i, 0) < 0)
			return err_sys(err, "place descriptor %d", i);
	}
	return 0;
}
