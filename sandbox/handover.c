/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/handover.h"

#include "common/cleanup.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SEALS_NEEDED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

union control {
	char space[CMSG_SPACE(HANDOVER_FDS * sizeof(int))];
	struct cmsghdr align;
};

int handover_send(int sock, const void *msg, size_t size, const int *fds, unsigned n_fds,
		  struct err *err)
{
	union control control = {0};
	struct iovec iov = {(void *)(uintptr_t)msg, size};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

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
	if (sendmsg(sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
		return err_sys(err, "hand over");
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
		for (size_t i = 0; i < count && n < HANDOVER_FDS; i++)
			memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return n;
}

ssize_t handover_recv_any(int sock, void *msg, size_t size, int flags, int *fds,
			  unsigned *n_fds)
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

int handover_recv(int sock, void *msg, size_t size, int *fds, unsigned *n_fds,
		  struct err *err)
{
	ssize_t n;

	do
		n = handover_recv_any(sock, msg, size, 0, fds, n_fds);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "take over");
	if ((size_t)n != size)
		return err_set(err, ERR_SETUP, "%zd bytes instead of %zu", n, size);
	return 0;
}

int handover_read_block(int fd, uint32_t bytes, char **ret, struct err *err)
{
	cleanup_free char *block = NULL;
	size_t len = 0;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS_NEEDED) != SEALS_NEEDED)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "the spec is not sealed");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)bytes ||
	    !bytes || bytes > SPAWN_SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "the spec has the wrong size");
	block = xmalloc(bytes);
	while (len < bytes) {
		ssize_t n = pread(fd, block + len, bytes - len, (off_t)len);

		if (n <= 0)
			return err_sys_id(err, ERRID_SANDBOX_SPAWNER, "read the spec");
		len += (size_t)n;
	}
	*ret = TAKE_PTR(block);
	return 0;
}

int handover_read_spec(int fd, uint32_t bytes, struct sbx_spec *ret, struct err *err)
{
	cleanup_free char *block = NULL;

	if (handover_read_block(fd, bytes, &block, err) < 0)
		return -1;
	return spec_parse_block(block, bytes, ret, err);
}
