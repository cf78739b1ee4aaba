/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See payload.h.
 */
#include "common/proto/payload.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/fs.h"
#include "common/mem.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int payload_make(const char *block, size_t bytes, struct payload *ret, struct err *err)
{
	cleanup_close int fd = -1;

	if (!bytes || bytes > PAYLOAD_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_SIZE, "a payload of %zu bytes", bytes);
	fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_sys(err, "memfd_create");
	if (fs_write_all(fd, block, bytes, err) < 0)
		return -1;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_sys(err, "seal a payload");
	*ret = (struct payload){
		.block = block, .bytes = (uint32_t)bytes, .memfd = TAKE_FD(fd)};
	return 0;
}

int payload_send(int sock, const void *msg, size_t size, const struct payload *p,
		 const int *fds, unsigned n_fds, int flags)
{
	int all[FDPASS_MAX] = {p->memfd};

	assert(p->memfd >= 0 && n_fds < FDPASS_MAX);
	for (unsigned i = 0; i < n_fds; i++)
		all[1 + i] = fds[i];
	return fdpass_send(sock, msg, size, all, 1 + n_fds, flags);
}

static int read_sealed(int fd, uint32_t bytes, char **ret, struct err *err)
{
	cleanup_free char *block = NULL;
	size_t len = 0;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "the payload is not sealed");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)bytes)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "the payload has the wrong size");
	block = xmalloc(bytes);
	while (len < bytes) {
		ssize_t n = pread(fd, block + len, bytes - len, (off_t)len);

		if (n <= 0)
			return err_sys_id(err, ERRID_SANDBOX_SPAWNER, "read the payload");
		len += (size_t)n;
	}
	*ret = TAKE_PTR(block);
	return 0;
}

int payload_take(uint32_t bytes, int *fds, unsigned *n_fds, struct payload *ret,
		 struct err *err)
{
	cleanup_close int fd = -1;
	char *block = NULL;

	if (!*n_fds || !bytes || bytes > PAYLOAD_MAX_BYTES)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "a payload of %u bytes with %u descriptors", bytes,
				  *n_fds);
	fd = fds[0];
	memmove(fds, fds + 1, (FDPASS_MAX - 1) * sizeof(*fds));
	fds[FDPASS_MAX - 1] = -1;
	(*n_fds)--;
	if (read_sealed(fd, bytes, &block, err) < 0)
		return -1;
	*ret = (struct payload){
		.block = block, .bytes = bytes, .memfd = TAKE_FD(fd), .own = block};
	return 0;
}

void payload_done(struct payload *p)
{
	fd_close(&p->memfd);
	free(p->own);
	*p = PAYLOAD_NONE;
}
