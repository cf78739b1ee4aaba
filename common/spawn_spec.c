/* SPDX-License-Identifier: Apache-2.0 */
#include "common/spawn_spec.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/spawn_proto.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int spawn_spec_make(const char *block, size_t bytes, struct spawn_spec *ret,
		    struct err *err)
{
	cleanup_close int fd = -1;

	if (!bytes || bytes > SPAWN_SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SPEC_SIZE, "a spec of %zu bytes", bytes);
	if (bytes > SPAWN_SPEC_INLINE) {
		fd = memfd_create("spec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0)
			return err_sys(err, "memfd_create");
		if (fs_write_all(fd, block, bytes, err) < 0)
			return -1;
		if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
			return err_sys(err, "seal the spec");
	}
	*ret = (struct spawn_spec){
		.block = block, .bytes = (uint32_t)bytes, .memfd = TAKE_FD(fd)};
	return 0;
}

int spawn_spec_send(int sock, const void *msg, size_t size, const struct spawn_spec *spec,
		    const int *fds, unsigned n_fds, int flags)
{
	bool longer = spec->memfd >= 0;
	int all[FDPASS_MAX];
	unsigned n = 0;

	assert(n_fds + longer <= FDPASS_MAX);
	if (longer)
		all[n++] = spec->memfd;
	memcpy(all + n, fds, n_fds * sizeof(*fds));
	return fdpass_send_with(sock, msg, size, spec->block, longer ? 0 : spec->bytes,
				all, n + n_fds, flags);
}

static int read_sealed(int fd, uint32_t bytes, char **ret, struct err *err)
{
	cleanup_free char *block = NULL;
	size_t len = 0;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "the spec is not sealed");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)bytes)
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

static int take_memfd(size_t tail_bytes, uint32_t bytes, int *fds, unsigned *n_fds,
		      struct spawn_spec *ret, struct err *err)
{
	cleanup_close int fd = -1;
	char *block;

	if (!*n_fds || tail_bytes || bytes > SPAWN_SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "a spec of %u bytes is not in a memfd", bytes);
	fd = fds[0];
	memmove(fds, fds + 1, (FDPASS_MAX - 1) * sizeof(*fds));
	fds[FDPASS_MAX - 1] = -1;
	(*n_fds)--;
	if (read_sealed(fd, bytes, &block, err) < 0)
		return -1;
	*ret = (struct spawn_spec){
		.block = block, .bytes = bytes, .memfd = TAKE_FD(fd), .own = block};
	return 0;
}

int spawn_spec_take(const char *tail, size_t tail_bytes, uint32_t bytes, int *fds,
		    unsigned *n_fds, struct spawn_spec *ret, struct err *err)
{
	if (bytes > SPAWN_SPEC_INLINE)
		return take_memfd(tail_bytes, bytes, fds, n_fds, ret, err);
	if (!bytes || tail_bytes != bytes)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "a spec of %u bytes came as %zu", bytes, tail_bytes);
	*ret = (struct spawn_spec){.block = tail, .bytes = bytes, .memfd = -1};
	return 0;
}

void spawn_spec_done(struct spawn_spec *s)
{
	fd_close(&s->memfd);
	free(s->own);
	*s = SPAWN_SPEC_NONE;
}
