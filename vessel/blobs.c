/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/blobs.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/net/sha256.h"
#include "common/proto.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define HASH_CHUNK_BYTES ((size_t)256 << 10)
#define HASHERS_MAX 64
#define BLOB_PATH_SIZE (3 + SHA256_HEX_SIZE)
#define UPLOAD_NAME_SIZE (UPLOAD_OWNER_SIZE + 1 + UPLOAD_ID_SIZE)

/* A running hash of an upload, so that a commit need not read the file again. Only a
 * shortcut: without one (restart, table full) the commit reads the file. */
struct hasher {
	char name[UPLOAD_NAME_SIZE]; /* "" = free */
	struct sha256 *sum;
	uint64_t hashed;
	uint64_t used_at;
};

struct blobs {
	int blobs, uploads;
	struct store_budget *budget;
	unsigned n_uploads;
	uint64_t tick;
	struct hasher hashers[HASHERS_MAX];
};

static int open_dir(int data_fd, const char *name, struct err *err)
{
	if (fs_mkdir_beneath(data_fd, name, 0700, err) < 0)
		return -1;
	return fs_open_beneath(data_fd, name, O_RDONLY | O_DIRECTORY, 0, err);
}

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

static int count_uploads(struct blobs *b, struct err *err)
{
	cleanup_dir DIR *dir = list(b->uploads, ".", err);
	const struct dirent *e;

	if (!dir)
		return -1;
	while ((e = readdir(dir)))
		b->n_uploads += e->d_name[0] != '.';
	return 0;
}

int blobs_new(int data_fd, struct store_budget *budget, struct blobs **ret,
	      struct err *err)
{
	uint64_t in_blobs, in_uploads;
	struct blobs *b = xnew(struct blobs);

	b->budget = budget;
	b->uploads = -1;
	b->blobs = open_dir(data_fd, "blobs", err);
	if (b->blobs >= 0)
		b->uploads = open_dir(data_fd, "uploads", err);
	if (b->uploads < 0 || store_measure(data_fd, "blobs", &in_blobs, err) < 0 ||
	    store_measure(data_fd, "uploads", &in_uploads, err) < 0 ||
	    count_uploads(b, err) < 0) {
		blobs_free(b);
		return -1;
	}
	budget->used += in_blobs + in_uploads;
	*ret = b;
	return 0;
}

uint64_t blobs_disk_free(const struct blobs *b)
{
	struct statvfs v;

	return fstatvfs(b->blobs, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize : 0;
}

static void hasher_drop(struct hasher *h)
{
	sha256_free(h->sum);
	memset(h, 0, sizeof(*h));
}

void blobs_free(struct blobs *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < HASHERS_MAX; i++)
		hasher_drop(&b->hashers[i]);
	fd_close(&b->blobs);
	fd_close(&b->uploads);
	free(b);
}

static struct hasher *hasher_find(struct blobs *b, const char *name)
{
	for (unsigned i = 0; i < HASHERS_MAX; i++) {
		if (str_eq(b->hashers[i].name, name))
			return &b->hashers[i];
	}
	return NULL;
}

/* A hasher for a new upload; the one unused for longest makes room. */
static struct hasher *hasher_make(struct blobs *b, const char *name)
{
	struct hasher *h = &b->hashers[0];

	for (unsigned i = 0; i < HASHERS_MAX; i++) {
		if (!b->hashers[i].sum) {
			h = &b->hashers[i];
			break;
		}
		if (b->hashers[i].used_at < h->used_at)
			h = &b->hashers[i];
	}
	hasher_drop(h);
	int r = str_copy(h->name, sizeof(h->name), name);
	assert(r == 0);
	h->sum = sha256_new();
	h->used_at = ++b->tick;
	return h;
}

/* Both parts are checked, since they become a file name. */
static int upload_name(char out[UPLOAD_NAME_SIZE], const char *owner, const char *id,
		       struct err *err)
{
	uint8_t raw[(UPLOAD_ID_SIZE - 1) / 2];

	if (strlen(id) != UPLOAD_ID_SIZE - 1 || hex_decode(id, raw, sizeof(raw)) < 0)
		return err_set_id(err, ERRID_STORE_UPLOAD,
				  "an upload's id is 32 hex digits");
	if (strchr(owner, '/') || owner[0] == '.' ||
	    str_fmt(out, UPLOAD_NAME_SIZE, "%s-%s", owner, id) < 0)
		return err_set(err, ERR_INTERNAL, "owner of an upload");
	return 0;
}

int blobs_upload_begin(struct blobs *b, const char *owner, const struct random_ops *rng,
		       char ret_id[UPLOAD_ID_SIZE], struct err *err)
{
	cleanup_close int fd = -1;
	char name[UPLOAD_NAME_SIZE], id[UPLOAD_ID_SIZE];
	uint8_t raw[(UPLOAD_ID_SIZE - 1) / 2];

	if (b->n_uploads >= UPLOADS_MAX)
		return err_set_id(err, ERRID_STORE_LIMIT, "%u uploads are open",
				  b->n_uploads);
	rng->bytes(rng->ctx, raw, sizeof(raw));
	hex_encode(raw, sizeof(raw), id);
	if (upload_name(name, owner, id, err) < 0)
		return -1;
	fd = fs_open_beneath(b->uploads, name, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
	if (fd < 0)
		return store_err(err);
	b->n_uploads++;
	(void)hasher_make(b, name);
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

static int upload_open(struct blobs *b, const char *name, int flags, struct err *err)
{
	struct stat st;

	if (fstatat(b->uploads, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_STORE_UPLOAD, "no such upload");
	return fs_open_beneath(b->uploads, name, flags | O_NOFOLLOW, 0, err);
}

int blobs_upload_append(struct blobs *b, const char *owner, const char *id,
			uint64_t offset, const void *data, size_t len, uint64_t *ret_size,
			struct err *err)
{
	cleanup_close int fd = -1;
	char name[UPLOAD_NAME_SIZE];
	uint64_t size;

	if (upload_name(name, owner, id, err) < 0)
		return -1;
	fd = upload_open(b, name, O_WRONLY, err);
	if (fd < 0 || store_size(fd, &size, err) < 0)
		return -1;
	*ret_size = size;
	if (offset > size)
		return err_set_id(err, ERRID_RUN_GAP, "offset %llu, %llu bytes received",
				  (unsigned long long)offset, (unsigned long long)size);
	if (len <= size - offset)
		return 0;
	const char *fresh = (const char *)data + (size - offset);
	size_t n = len - (size_t)(size - offset);

	if (n > BLOB_MAX_BYTES - size)
		return err_set_id(err, ERRID_STORE_LIMIT, "a blob is at most %llu bytes",
				  (unsigned long long)BLOB_MAX_BYTES);
	if (store_reserve(b->budget, n, err) < 0)
		return -1;
	if (store_append(fd, size, fresh, n, err) < 0) {
		store_return(b->budget, n);
		return -1;
	}
	struct hasher *h = hasher_find(b, name);
	if (h && h->hashed == size) {
		sha256_add(h->sum, fresh, n);
		h->hashed += n;
		h->used_at = ++b->tick;
	}
	*ret_size = size + n;
	return 0;
}

/* What the running hash has not seen is read from the file. */
static int hash_file(struct blobs *b, const char *name, int fd, uint64_t size,
		     uint8_t out[SHA256_SIZE], struct err *err)
{
	struct hasher *h = hasher_find(b, name);
	if (!h)
		h = hasher_make(b, name);
	cleanup_free char *chunk = xmalloc(HASH_CHUNK_BYTES);

	while (h->hashed < size) {
		ssize_t n = pread(fd, chunk, HASH_CHUNK_BYTES, (off_t)h->hashed);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read upload");
		if (n == 0)
			return err_set(err, ERR_INTERNAL, "the upload became shorter");
		sha256_add(h->sum, chunk, (size_t)n);
		h->hashed += (uint64_t)n;
	}
	sha256_final(h->sum, out);
	hasher_drop(h);
	return 0;
}

static void upload_drop(struct blobs *b, const char *name, uint64_t size)
{
	struct hasher *h = hasher_find(b, name);

	if (h)
		hasher_drop(h);
	if (unlinkat(b->uploads, name, 0) == 0) {
		store_return(b->budget, size);
		b->n_uploads -= b->n_uploads > 0;
	}
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

static int publish(struct blobs *b, const char *name, int fd, const char *sha256_hex,
		   uint64_t size, struct err *err)
{
	char path[BLOB_PATH_SIZE], fan[3];
	uint64_t have;

	if (fsync(fd) < 0) {
		(void)err_sys(err, "fsync upload");
		return store_err(err);
	}
	if (blobs_touch(b, sha256_hex, &have, NULL) == 0) {
		upload_drop(b, name, size); /* the same bytes are there already */
		return 0;
	}
	int r = str_fmt(fan, sizeof(fan), "%.2s", sha256_hex);
	assert(r == 0);
	if (fs_mkdir_beneath(b->blobs, fan, 0700, err) < 0)
		return store_err(err);
	if (fsync_dir(b->blobs, ".", err) < 0)
		return -1;
	blob_path(path, sha256_hex);
	if (renameat(b->uploads, name, b->blobs, path) < 0) {
		(void)err_sys(err, "rename upload to blob");
		return store_err(err);
	}
	b->n_uploads -= b->n_uploads > 0;
	return fsync_dir(b->blobs, fan, err);
}

int blobs_upload_commit(struct blobs *b, const char *owner, const char *id,
			const char *sha256_hex, uint64_t size, struct err *err)
{
	cleanup_close int fd = -1;
	char name[UPLOAD_NAME_SIZE];
	uint8_t want[SHA256_SIZE], got[SHA256_SIZE];
	uint64_t have;

	if (sha256_hex_parse(sha256_hex, want, err) < 0 ||
	    upload_name(name, owner, id, err) < 0)
		return -1;
	fd = upload_open(b, name, O_RDWR, err);
	if (fd < 0 || store_size(fd, &have, err) < 0)
		return -1;
	if (have != size)
		return err_set_id(err, ERRID_STORE_HASH, "%llu bytes received, not %llu",
				  (unsigned long long)have, (unsigned long long)size);
	if (hash_file(b, name, fd, size, got, err) < 0)
		return -1;
	if (!mem_eq_ct(want, got, sizeof(got))) {
		upload_drop(b, name, size);
		return err_set_id(err, ERRID_STORE_HASH, "the sha256 differs");
	}
	return publish(b, name, fd, sha256_hex, size, err);
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

int blobs_reap_uploads(struct blobs *b, usec_t before_wall_usec, unsigned *ret_n,
		       struct err *err)
{
	cleanup_dir DIR *dir = list(b->uploads, ".", err);
	const struct dirent *e;
	unsigned n = 0;

	if (!dir)
		return -1;
	while ((e = readdir(dir))) {
		struct stat st;

		if (fstatat(b->uploads, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) || last_used_usec(&st) >= before_wall_usec)
			continue;
		upload_drop(b, e->d_name, (uint64_t)st.st_size);
		n++;
	}
	*ret_n = n;
	return 0;
}

static int cmp_hex(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct collection {
	const char **live;
	size_t n;
	usec_t before;
	unsigned removed;
};

static int collect_fan(struct blobs *b, const char *fan, struct collection *c,
		       struct err *err)
{
	cleanup_dir DIR *dir = list(b->blobs, fan, err);
	const struct dirent *e;

	if (!dir)
		return -1;
	while ((e = readdir(dir))) {
		const char *name = e->d_name;
		struct stat st;

		if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) || last_used_usec(&st) >= c->before)
			continue;
		if (c->n > 0 && bsearch(&name, c->live, c->n, sizeof(name), cmp_hex))
			continue;
		if (unlinkat(dirfd(dir), name, 0) < 0)
			return err_sys(err, "unlink blob %s", name);
		store_return(b->budget, (uint64_t)st.st_size);
		c->removed++;
	}
	return 0;
}

int blobs_collect(struct blobs *b, const char *const *live, size_t n,
		  usec_t before_wall_usec, unsigned *ret_n, struct err *err)
{
	cleanup_free const char **sorted = xcalloc(n + 1, sizeof(*sorted));
	cleanup_dir DIR *dir = list(b->blobs, ".", err);
	struct collection c = {sorted, n, before_wall_usec, 0};
	const struct dirent *e;

	if (!dir)
		return -1;
	for (size_t i = 0; i < n; i++)
		sorted[i] = live[i];
	if (n > 0)
		qsort(sorted, n, sizeof(*sorted), cmp_hex);
	while ((e = readdir(dir))) {
		if (e->d_name[0] != '.' && collect_fan(b, e->d_name, &c, err) < 0)
			return -1;
	}
	*ret_n = c.removed;
	return 0;
}
