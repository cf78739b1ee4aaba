/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See fdpass.h.
 */
#include "common/fdpass.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define NAP_NSEC 10000000

union control {
	char space[CMSG_SPACE(FDPASS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int fdpass_send(int sock, const void *msg, size_t size, const int *fds, unsigned n_fds,
		int flags)
{
	union control control = {0};
	struct iovec iov = {(void *)(uintptr_t)msg, size};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	assert(n_fds <= FDPASS_MAX);
	if (n_fds > 0) {
		struct cmsghdr *c;

		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL | flags) == (ssize_t)size ? 0 : -1;
}

int fdpass_send_patiently(int sock, const void *msg, size_t size, const int *fds,
			  unsigned n_fds, usec_t patience)
{
	static const struct timespec nap = {.tv_nsec = NAP_NSEC};
	const usec_t until = clock_boot_usec() + patience;

	while (fdpass_send(sock, msg, size, fds, n_fds, 0) < 0) {
		if (errno != ETOOMANYREFS || clock_boot_usec() >= until)
			return -1;
		(void)nanosleep(&nap, NULL);
	}
	return 0;
}

static unsigned take_fds(struct msghdr *h, int *fds)
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count && n < FDPASS_MAX; i++)
			memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return n;
}

ssize_t fdpass_recv(int sock, void *msg, size_t size, int *fds, unsigned *n_fds,
		    int flags)
{
	union control control;
	struct iovec iov = {msg, size};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC | flags);

	*n_fds = 0;
	if (n < 0)
		return n;
	*n_fds = take_fds(&h, fds);
	if (!(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	errno = EPROTO;
	return -1;
}
