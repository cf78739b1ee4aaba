/* SPDX-License-Identifier: Apache-2.0 */
/* An archive from anywhere: what is read of it is written again, and that is the same. */
#include "cli/backup/archive.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/str.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MAX ((size_t)8 << 20)

struct copy {
	struct archive_writer w;
	struct buf bytes;
	uint64_t size;
	unsigned seals;
};

static int on_file(const char *name, uint64_t size, void *arg, struct err *err)
{
	struct copy *c = arg;

	(void)err;
	assert(name[0] != '/' && !strstr(name, "..") && !strchr(name, '\n'));
	buf_reset(&c->bytes);
	c->size = size;
	return 0;
}

static int on_data(const void *data, size_t len, void *arg, struct err *err)
{
	(void)err;
	buf_add(&((struct copy *)arg)->bytes, data, len);
	return 0;
}

static int on_file_end(const char *name, void *arg, struct err *err)
{
	struct copy *c = arg;

	assert(c->bytes.len == c->size);
	return archive_add(&c->w, name, c->bytes.data, c->bytes.len, err);
}

static int on_seal(const char *id, const char *seal, const void *data, size_t len,
		   void *arg, struct err *err)
{
	struct copy *c = arg;

	(void)err;
	assert(!id == !seal && data && len > 0);
	assert(!id || (strlen(id) == BACKUP_KEY_ID_SIZE - 1 &&
		       strlen(seal) == SHA256_HEX_SIZE - 1));
	c->seals++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_close int in = memfd_create("in", MFD_CLOEXEC);
	cleanup_close int out = memfd_create("out", MFD_CLOEXEC);
	struct copy c = {0};
	const struct archive_reader r = {.on_file = on_file,
					 .on_data = on_data,
					 .on_file_end = on_file_end,
					 .on_seal = on_seal,
					 .arg = &c};
	struct err err = ERR_INIT;

	assert(write(in, data, size) == (ssize_t)size && lseek(in, 0, SEEK_SET) == 0);
	buf_init(&c.bytes, TEXT_MAX);
	archive_begin(&c.w, out);
	if (archive_read(in, &r, &err) == 0) {
		size_t n = (size_t)lseek(out, 0, SEEK_CUR);
		char *again = mmap(NULL, n, PROT_READ, MAP_PRIVATE, out, 0);

		assert(c.seals == 1 && n < size && again != MAP_FAILED);
		assert(memcmp(again, data, n) == 0);
		(void)munmap(again, n);
	} else {
		assert(err.id == ERRID_BACKUP_DAMAGED && c.seals == 0);
	}
	archive_done(&c.w);
	buf_done(&c.bytes);
	return 0;
}
