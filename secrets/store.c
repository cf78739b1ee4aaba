/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver.
 * See store.h.
 */
#include "secrets/store.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define HEADER_NAME "store.header"
#define SUFFIX ".secret"
#define NAME_SIZE (SEAL_ID_MAX + sizeof(SUFFIX))

/* ---- what is ours ---------------------------------------------------------- */

static int check_owner(int fd, const char *name, mode_t type, mode_t mode,
		       struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys_id(err, ERRID_SECRET_STORE, "%.200s", name);
	if ((st.st_mode & S_IFMT) != type)
		return err_set_id(err, ERRID_SECRET_STORE, "%.200s is not a %s", name,
				  type == S_IFDIR ? "directory" : "regular file");
	if (st.st_uid != geteuid())
		return err_set_id(err, ERRID_SECRET_STORE,
				  "%.200s belongs to uid %u, not to you", name,
				  st.st_uid);
	if (st.st_mode & 07777 & ~mode)
		return err_set_id(err, ERRID_SECRET_STORE,
				  "%.200s has mode %04o, not %04o", name,
				  st.st_mode & 07777, mode);
	if (type == S_IFREG && st.st_nlink != 1)
		return err_set_id(err, ERRID_SECRET_STORE, "%.200s has %lu names", name,
				  (unsigned long)st.st_nlink);
	return 0;
}

/* A whole file of ours of at most max bytes (the caller's buffer has one more). */
static int read_own(int dirfd, const char *name, uint8_t *buf, size_t max,
		    size_t *ret_len, struct err *err)
{
	cleanup_close int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0 && errno == ENOENT)
		return err_set_id(err, ERRID_SECRET_MISSING, "%.200s does not exist",
				  name);
	if (fd < 0)
		return err_sys_id(err, ERRID_SECRET_STORE, "open %.200s", name);
	if (check_owner(fd, name, S_IFREG, 0600, err) < 0)
		return -1;
	for (;;) {
		ssize_t n = read(fd, buf + len, max + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys_id(err, ERRID_SECRET_STORE, "read %.200s", name);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return err_set_id(err, ERRID_SECRET_DAMAGED,
					  "%.200s has more than %zu bytes", name, max);
	}
	*ret_len = len;
	return 0;
}

/* Complete under its name or not there at all, and never over another one. */
static int write_new(int dirfd, const char *name, const void *data, size_t len,
		     struct err *err)
{
	cleanup_close int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char self[64];

	if (fd < 0)
		return err_sys_id(err, ERRID_SECRET_STORE, "a file without a name");
	if (fchmod(fd, 0600) < 0)
		return err_sys(err, "chmod");
	if (fs_write_all(fd, data, len, err) < 0)
		return -1;
	if (fsync(fd) < 0)
		return err_sys(err, "fsync");
	if (str_fmt(self, sizeof(self), "/proc/self/fd/%d", fd) < 0)
		return err_set(err, ERR_INTERNAL, "descriptor %d", fd);
	if (linkat(AT_FDCWD, self, dirfd, name, AT_SYMLINK_FOLLOW) < 0) {
		if (errno == EEXIST)
			return err_set_id(err, ERRID_SECRET_EXISTS, "%.200s", name);
		return err_sys_id(err, ERRID_SECRET_STORE, "%.200s", name);
	}
	if (fsync(dirfd) < 0)
		return err_sys(err, "fsync the store's directory");
	return 0;
}

/* ---- the store ------------------------------------------------------------- */

int store_make(const char *dir, enum seal_kdf kdf, uint8_t log2_n, const char *opener,
	       size_t len, struct err *err)
{
	struct store s = STORE_INIT;
	uint8_t header[SEAL_HEADER_BYTES];
	struct seal_params p;
	int r = -1;

	if (seal_params_new(kdf, log2_n, &random_real, &p, err) < 0)
		return -1;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys_id(err, ERRID_SECRET_STORE, "%.200s", dir);
	s.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s.dirfd < 0)
		return err_sys_id(err, ERRID_SECRET_STORE, "%.200s", dir);
	if (check_owner(s.dirfd, dir, S_IFDIR, 0700, err) == 0 &&
	    seal_derive(&p, opener, len, s.key, err) == 0 &&
	    seal_header_write(&p, s.key, &random_real, header, err) == 0)
		r = write_new(s.dirfd, HEADER_NAME, header, sizeof(header), err);
	store_done(&s);
	return r;
}

int store_open(const char *dir, struct store *ret, struct err *err)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys_id(err, ERRID_SECRET_STORE, "%.200s", dir);
	if (check_owner(fd, dir, S_IFDIR, 0700, err) < 0)
		return -1;
	*ret = (struct store){.dirfd = TAKE_FD(fd)};
	return 0;
}

int store_unlock(struct store *s, const char *opener, size_t len, struct err *err)
{
	uint8_t header[SEAL_HEADER_BYTES + 1];
	struct seal_params p;
	size_t n = 0;

	if (read_own(s->dirfd, HEADER_NAME, header, SEAL_HEADER_BYTES, &n, err) < 0 ||
	    seal_header_parse(header, n, &p, err) < 0)
		return -1;
	if (seal_derive(&p, opener, len, s->key, err) < 0 ||
	    seal_header_check(header, s->key, err) < 0) {
		explicit_bzero(s->key, sizeof(s->key));
		return -1;
	}
	memcpy(s->salt, p.salt, sizeof(s->salt));
	s->has_key = true;
	return 0;
}

void store_done(struct store *s)
{
	explicit_bzero(s->key, sizeof(s->key));
	s->has_key = false;
	fd_close(&s->dirfd);
}

static int file_name(const char *id, char out[NAME_SIZE], struct err *err)
{
	if (!seal_id_ok(id) || str_fmt(out, NAME_SIZE, "%s" SUFFIX, id) < 0)
		return err_set_id(err, ERRID_SECRET_NAME, "'%.80s' is no secret's id",
				  id);
	return 0;
}

int store_put(struct store *s, const char *id, const void *value, size_t len,
	      struct err *err)
{
	cleanup_free uint8_t *record = NULL;
	char name[NAME_SIZE];

	if (!s->has_key)
		return err_set(err, ERR_INTERNAL, "the store is locked");
	if (file_name(id, name, err) < 0)
		return -1;
	record = xmalloc(SEAL_RECORD_MAX);
	if (seal_record(s->key, s->salt, id, value, len, &random_real, record, err) < 0)
		return -1;
	return write_new(s->dirfd, name, record, len + SEAL_RECORD_OVERHEAD, err);
}

int store_get(struct store *s, const char *id, uint8_t *ret, size_t *ret_len,
	      struct err *err)
{
	cleanup_free uint8_t *record = NULL;
	char name[NAME_SIZE];
	size_t len = 0, n = 0;

	if (!s->has_key)
		return err_set(err, ERR_INTERNAL, "the store is locked");
	if (file_name(id, name, err) < 0)
		return -1;
	record = xmalloc(SEAL_RECORD_MAX + 1);
	if (read_own(s->dirfd, name, record, SEAL_RECORD_MAX, &len, err) < 0 ||
	    seal_record_parse(record, len, &n, err) < 0 ||
	    unseal_record(s->key, s->salt, id, record, len, ret, err) < 0)
		return -1;
	*ret_len = n;
	return 0;
}

int store_delete(struct store *s, const char *id, struct err *err)
{
	char name[NAME_SIZE];

	if (file_name(id, name, err) < 0)
		return -1;
	if (unlinkat(s->dirfd, name, 0) < 0) {
		if (errno == ENOENT)
			return err_set_id(err, ERRID_SECRET_MISSING,
					  "'%.80s' does not exist", id);
		return err_sys_id(err, ERRID_SECRET_STORE, "remove %.200s", name);
	}
	if (fsync(s->dirfd) < 0)
		return err_sys(err, "fsync the store's directory");
	return 0;
}

int store_list(struct store *s, void (*on_id)(const char *id, void *arg), void *arg,
	       struct err *err)
{
	cleanup_close int fd = openat(s->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d)
		return err_sys_id(err, ERRID_SECRET_STORE, "list the store");
	fd = -1; /* the DIR's now */
	while ((errno = 0, e = readdir(d))) {
		size_t n = strlen(e->d_name), suffix = strlen(SUFFIX);

		if (str_eq(e->d_name, ".") || str_eq(e->d_name, "..") ||
		    str_eq(e->d_name, HEADER_NAME))
			continue;
		cleanup_free char *id = xstrndup(e->d_name, n > suffix ? n - suffix : 0);

		if (!str_ends(e->d_name, SUFFIX) || !seal_id_ok(id))
			return err_set_id(err, ERRID_SECRET_STORE,
					  "'%.200s' in the store is not one of its files",
					  e->d_name);
		on_id(id, arg);
	}
	if (errno)
		return err_sys_id(err, ERRID_SECRET_STORE, "list the store");
	return 0;
}
