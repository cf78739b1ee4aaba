/* SPDX-License-Identifier: Apache-2.0 */
/* What no process owns: each of these acts would hold 4 GiB if nobody stopped it. */
#include "tests/escape/unruly/unruly.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define HIDE_MIB 4096
#define PIECE_MIB 16

/* Mapped, filled, unmapped but for one page. */
int act_remnant(const char *arg)
{
	(void)arg;
	for (int i = 0; i < HIDE_MIB / PIECE_MIB; i++) {
		char *p = map(PIECE_MIB * MIB, MAP_SHARED);

		if (munmap(p + 4096, PIECE_MIB * MIB - 4096) < 0)
			return 39;
	}
	(void)sleep(LONG_SEC);
	return 0;
}

/* Of a descriptor's object one page stays mapped, the descriptor is closed. */
static int leave_page(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)close(fd);
	return p == MAP_FAILED ? -1 : 0;
}

static int unlinked_file(const char *dir)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/hidden", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

int act_memfdpage(const char *arg)
{
	(void)arg;
	for (int i = 0; i < HIDE_MIB / PIECE_MIB; i++) {
		int fd = memfd_create("x", MFD_CLOEXEC);

		if (fd < 0 || fill(fd, PIECE_MIB * MIB) || leave_page(fd) < 0)
			return 40;
	}
	(void)sleep(LONG_SEC);
	return 0;
}

int act_filepage(const char *arg)
{
	for (int i = 0; i < HIDE_MIB / PIECE_MIB; i++) {
		int fd = unlinked_file(arg);

		if (fd < 0 || fill(fd, PIECE_MIB * MIB) || leave_page(fd) < 0)
			return 41;
	}
	(void)sleep(LONG_SEC);
	return 0;
}

static void park(int sock, int fd)
{
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &u,
			   .msg_controllen = sizeof(u)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(sock, &m, MSG_DONTWAIT) < 0)
		_exit(42);
	(void)close(fd);
}

/* arg: memory, or the directory of the files. */
int act_parked(const char *arg)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) < 0)
		return 43;
	for (int i = 0; i < HIDE_MIB / PIECE_MIB; i++) {
		int fd = strcmp(arg, "memory") == 0 ? memfd_create("x", MFD_CLOEXEC)
						    : unlinked_file(arg);

		if (fd < 0 || fill(fd, PIECE_MIB * MIB))
			return 44;
		park(sv[0], fd);
	}
	(void)sleep(LONG_SEC);
	return 0;
}

/* Each socket is parked in the next one: only the last is held, with little in it. */
int act_nested(const char *arg)
{
	int root[2], inner[2];

	(void)arg;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, root) < 0)
		return 45;
	for (int i = 0; i < HIDE_MIB / PIECE_MIB / 8; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, inner) < 0)
			return 46;
		for (int k = 0; k < 8; k++) {
			int fd = memfd_create("x", MFD_CLOEXEC);

			if (fd < 0 || fill(fd, PIECE_MIB * MIB))
				return 47;
			park(inner[0], fd);
		}
		park(root[0], inner[1]);
		(void)close(inner[0]);
	}
	(void)sleep(LONG_SEC);
	return 0;
}

/* Full buffers, by many processes. arg: pipes, sockets */
int act_buffers(const char *arg)
{
	static char block[65536];

	for (int i = 0; i < 120 && fork() != 0; i++)
		;
	for (;;) {
		int p[2], large = 1 << 20;

		if (strcmp(arg, "pipes") == 0) {
			if (pipe2(p, O_NONBLOCK) < 0)
				break;
			(void)fcntl(p[1], F_SETPIPE_SZ, large);
		} else {
			if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) < 0)
				break;
			(void)setsockopt(p[1], SOL_SOCKET, SO_SNDBUF, &large,
					 sizeof(large));
		}
		while (write(p[1], block, sizeof(block)) > 0)
			;
	}
	(void)sleep(LONG_SEC);
	return 0;
}

/* A few of each is what honest programs have. */
int act_honest(const char *arg)
{
	int sv[2], p[2];

	(void)arg;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) < 0 || pipe(p) < 0)
		return 48;
	for (int i = 0; i < 3; i++) {
		int fd = memfd_create("x", MFD_CLOEXEC);

		if (fd < 0 || fill(fd, 4 * MIB))
			return 49;
		park(sv[0], fd);
	}
	for (int i = 0; i < 4; i++)
		(void)map(4 * MIB, MAP_SHARED);
	(void)!write(p[1], "x", 1);
	(void)!write(sv[1], "x", 1);
	(void)sleep(1);
	return 0;
}
