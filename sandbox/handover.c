/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/handover.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SEALS_NEEDED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

_Static_assert(HANDOVER_FDS == FDPASS_MAX, "the descriptors of a handover");

int handover_send(int sock, const void *msg, size_t size, const int *fds, unsigned n_fds,
		  struct err *err)
{
	if (fdpass_send(sock, msg, size, fds, n_fds, MSG_DONTWAIT) < 0)
		return err_sys(err, "hand over");
	return 0;
}

int handover_recv(int sock, void *msg, size_t size, int *fds, unsigned *n_fds,
		  struct err *err)
{
	ssize_t n;

	do
		n = fdpass_recv(sock, msg, size, fds, n_fds, 0);
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
