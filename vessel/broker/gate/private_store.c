/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See private_store.h.
 */
#include "vessel/broker/gate/private_store.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "vessel/store/store.h"
#include <fcntl.h>
#include <sys/stat.h>

#define FILE_NAME "private"
#define FILE_MAX_BYTES ((size_t)24 << 20)

struct private_store {
	int data_fd;
	struct gate_client *gate;
	struct gate_private *private;
};

static int load(struct private_store *s, struct err *err)
{
	cleanup_free char *data = NULL;
	struct stat st;
	size_t len;

	if (fstatat(s->data_fd, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		s->private = gate_private_new();
		return 0;
	}
	if (fs_read_file(s->data_fd, FILE_NAME, FILE_MAX_BYTES, &data, &len, err) < 0)
		return -1;
	return gate_private_read(data, len, &s->private, err);
}

int private_store_open(int data_fd, struct gate_client *gate, struct private_store **ret,
		       struct err *err)
{
	struct private_store *s = xnew(struct private_store);

	s->data_fd = data_fd;
	s->gate = gate;
	if (load(s, err) < 0) {
		free(s);
		return -1;
	}
	gate_client_set_private(gate, s->private);
	*ret = s;
	return 0;
}

void private_store_free(struct private_store *s)
{
	if (s)
		gate_private_free(s->private);
	free(s);
}

const struct gate_private *private_store_get(const struct private_store *s)
{
	return s->private;
}

/* What is in memory becomes the file; failing that, the file what is in memory. */
static int save(struct private_store *s, struct err *err)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, FILE_MAX_BYTES);
	gate_private_write(s->private, &out);
	r = buf_ok(&out)
		    ? fs_write_atomic(s->data_fd, FILE_NAME, out.data, out.len, 0600, err)
		    : err_set_id(err, ERRID_GATE_FULL, "%zu bytes", FILE_MAX_BYTES);
	if (r < 0) {
		struct gate_private *old = s->private;

		if (load(s, NULL) < 0)
			s->private = old;
		else
			gate_private_free(old);
		return store_err(err);
	}
	gate_client_set_private(s->gate, s->private);
	return 0;
}

int private_store_add(struct private_store *s, enum private_kind kind, const char *name,
		      const void *data, size_t len, uint64_t *ret_id, struct err *err)
{
	if (gate_private_add(s->private, kind, name, data, len, clock_wall_usec(), ret_id,
			     err) < 0)
		return -1;
	return save(s, err);
}

int private_store_remove(struct private_store *s, uint64_t id, struct err *err)
{
	if (gate_private_remove(s->private, id, err) < 0)
		return -1;
	return save(s, err);
}
