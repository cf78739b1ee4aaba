/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See blobs.h.
 */
#include "vessel/store/blobs.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define BLOB_PATH_SIZE (3 + SHA256_HEX_SIZE)

struct blobs {
	int blobs;
	struct store_budget *budget;
};

static DIR *list(int dirfd, const char *path, struct err *err)
{
	cleanup_close int fd =
		fs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return NULL;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		(void)err_sys(err, "list %s", path);
		return NULL;
	}
	(void)TAKE_FD(fd);
	return dir;
}

int blobs_new(int data_fd, struct store_budget *budget, struct blobs **ret,
	      struct err *err)
{
	uint64_t in_blobs;
	struct blobs *b = xnew(struct blobs);

	b->budget = budget;
	b->blobs = -1;
	if (fs_mkdir_beneath(data_fd, "blobs", 0700, err) == 0)
		b->blobs =
			fs_open_beneath(data_fd, "blobs", O_RDONLY | O_DIRECTORY, 0, err);
	if (b->blobs < 0 || store_measure(data_fd, "blobs", &in_blobs, err) < 0) {
		blobs_free(b);
		return -1;
	}
	budget->used += in_blobs;
	*ret = b;
	return 0;
}

uint64_t blobs_disk_free(const struct blobs *b)
{
	struct statvfs v;

	return fstatvfs(b->blobs, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize : 0;
}

void blobs_free(struct blobs *b)
{
	if (!b)
		return;
	fd_close(&b->blobs);
	free(b);
}

/* sha256_hex was checked by sha256_hex_parse. */
static void blob_path(char out[BLOB_PATH_SIZE], const char *sha256_hex)
{
	int r = str_fmt(out, BLOB_PATH_SIZE, "%.2s/%s", sha256_hex, sha256_hex);
	assert(r == 0);
}

static int fsync_dir(int dirfd, const char *path, struct err *err)
{
	cleanup_close int fd =
		fs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return -1;
	if (fsync(fd) < 0)
		return err_sys(err, "fsync directory");
	return 0;
}

/* What a name had; 0: nothing. */
static uint64_t size_of(const struct blobs *b, const char *path)
{
	struct stat st;

	return fstatat(b->blobs, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			       S_ISREG(st.st_mode)
		       ? (uint64_t)st.st_size
		       : 0;
}

int blobs_take(struct blobs *b, int from_fd, const char *name, int fd,
	       const char *sha256_hex, struct err *err)
{
	cleanup_close int fan_fd = -1;
	char path[BLOB_PATH_SIZE], fan[3];
	uint64_t before;

	if (fsync(fd) < 0) {
		(void)err_sys(err, "fsync upload");
		return store_err(err);
	}
	int r = str_fmt(fan, sizeof(fan), "%.2s", sha256_hex);
	assert(r == 0);
	if (fs_mkdir_beneath(b->blobs, fan, 0700, err) < 0)
		return store_err(err);
	if (fsync_dir(b->blobs, ".", err) < 0)
		return -1;
	fan_fd = fs_open_beneath(b->blobs, fan, O_RDONLY | O_DIRECTORY, 0, err);
	blob_path(path, sha256_hex);
	before = size_of(b, path);
	/* Also in the place of one that is there: these bytes were hashed just now, those
	 * whenever they came, and the disk may have changed them since. */
	if (fan_fd < 0 || fs_move_file(from_fd, name, fan_fd, sha256_hex, err) < 0)
		return store_err(err);
	store_return(b->budget, before);
	return fsync(fan_fd) < 0 ? err_sys(err, "fsync directory") : 0;
}

int blobs_touch(struct blobs *b, const char *sha256_hex, uint64_t *ret_size,
		struct err *err)
{
	cleanup_close int fd = blobs_open(b, sha256_hex, ret_size, err);
	if (fd < 0)
		return -1;
	/* moves ctime; a daemon has no right to set times */
	if (fchmod(fd, 0600) < 0)
		return err_sys(err, "touch blob");
	return 0;
}

int blobs_open(const struct blobs *b, const char *sha256_hex, uint64_t *ret_size,
	       struct err *err)
{
	cleanup_close int fd = -1;
	char path[BLOB_PATH_SIZE];
	uint8_t raw[SHA256_SIZE];
	struct stat st;

	if (sha256_hex_parse(sha256_hex, raw, err) < 0)
		return -1;
	blob_path(path, sha256_hex);
	if (fstatat(b->blobs, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_STORE_BLOB, "%s", sha256_hex);
	fd = fs_open_beneath(b->blobs, path, O_RDONLY | O_NOFOLLOW, 0, err);
	if (fd < 0 || store_size(fd, ret_size, err) < 0)
		return -1;
	return TAKE_FD(fd);
}

/* Moved by every write, by the rename that made a blob and by blobs_touch(). */
static usec_t last_used_usec(const struct stat *st)
{
	if (st->st_ctim.tv_sec < 0)
		return 0;
	return (usec_t)st->st_ctim.tv_sec * USEC_PER_SEC +
	       (usec_t)st->st_ctim.tv_nsec / 1000;
}

static int cmp_hex(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int blobs_collect(struct blobs *b, const char *fan, const char *const *live, size_t n,
		  usec_t before_wall_usec, unsigned *ret_n, struct err *err)
{
	cleanup_free const char **sorted = xcalloc(n + 1, sizeof(*sorted));
	cleanup_dir DIR *dir = NULL;
	const struct dirent *e;
	struct stat st;

	*ret_n = 0;
	if (fstatat(b->blobs, fan, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	dir = list(b->blobs, fan, err);
	if (!dir)
		return -1;
	for (size_t i = 0; i < n; i++)
		sorted[i] = live[i];
	if (n > 0)
		qsort(sorted, n, sizeof(*sorted), cmp_hex);
	while ((e = readdir(dir))) {
		const char *name = e->d_name;

		if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) || last_used_usec(&st) >= before_wall_usec)
			continue;
		if (n > 0 && bsearch(&name, sorted, n, sizeof(name), cmp_hex))
			continue;
		if (unlinkat(dirfd(dir), name, 0) < 0)
			return err_sys(err, "unlink blob %s", name);
		store_return(b->budget, (uint64_t)st.st_size);
		(*ret_n)++;
	}
	return 0;
}
