/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See store.h.
 */
#include "vessel/store/store.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MEASURE_DEPTH_MAX 3

int store_reserve(struct store_budget *b, enum store_who who, uint64_t n, struct err *err)
{
	uint64_t max = who == STORE_TOMB ? b->max - b->max / 4 : b->max;

	if (n > max || b->used > max - n)
		return err_set_id(err, ERRID_STORE_LIMIT, "%llu of %llu bytes are in use",
				  (unsigned long long)b->used, (unsigned long long)max);
	b->used += n;
	return 0;
}

void store_return(struct store_budget *b, uint64_t n)
{
	b->used = n < b->used ? b->used - n : 0;
}

int store_err(struct err *err)
{
	if (err && (err->sys == ENOSPC || err->sys == EDQUOT || err->sys == EFBIG)) {
		errno = err->sys;
		return err_sys_id(err, ERRID_CORE_DISK_FULL,
				  "write below the data directory");
	}
	return -1;
}

int store_append(int fd, uint64_t size, const void *data, size_t len, struct err *err)
{
	const char *p = data;
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, p + done, len - done, (off_t)(size + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n == 0)
				errno = ENOSPC;
			(void)err_sys(err, "write");
			/* a shorter file is always possible, also on a full disk */
			if (ftruncate(fd, (off_t)size) < 0)
				return err_sys(err, "cut back after a failed write");
			return store_err(err);
		}
		done += (size_t)n;
	}
	return 0;
}

int store_size(int fd, uint64_t *ret, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "fstat");
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INTERNAL, "not a regular file");
	*ret = (uint64_t)st.st_size;
	return 0;
}

static int measure(int dirfd, const char *path, unsigned depth, uint64_t *sum,
		   struct err *err)
{
	cleanup_dir DIR *dir = NULL;
	const struct dirent *e;
	cleanup_close int fd = -1;

	fd = fs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return -1;
	dir = fdopendir(fd);
	if (!dir)
		return err_sys(err, "read directory %s", path);
	int here = TAKE_FD(fd);

	while ((e = readdir(dir))) {
		struct stat st;

		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (fstatat(here, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			return err_sys(err, "stat %s/%s", path, e->d_name);
		}
		if (S_ISREG(st.st_mode))
			*sum += (uint64_t)st.st_size;
		else if (S_ISDIR(st.st_mode) && depth < MEASURE_DEPTH_MAX &&
			 measure(here, e->d_name, depth + 1, sum, err) < 0)
			return -1;
	}
	return 0;
}

int store_measure(int dirfd, const char *path, uint64_t *ret, struct err *err)
{
	uint64_t sum = 0;

	if (measure(dirfd, path, 1, &sum, err) < 0)
		return -1;
	*ret = sum;
	return 0;
}
