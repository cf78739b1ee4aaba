/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-secret-driver.
 * See opener.h.
 */
#include "secrets/opener.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>

static int read_credential(const char *name, char *out, size_t size, struct err *err)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	cleanup_close int dirfd = -1;

	if (!dir || dir[0] != '/')
		return err_set_id(err, ERRID_SECRET_KEY,
				  "CREDENTIALS_DIRECTORY is not set: no systemd unit "
				  "with LoadCredential= started this");
	if (!name[0] || strchr(name, '/') || str_eq(name, ".") || str_eq(name, ".."))
		return err_set_id(err, ERRID_CORE_USAGE,
				  "'%.80s' is no credential's name", name);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_sys_id(err, ERRID_SECRET_KEY, "%.200s", dir);
	return fs_read_secret(dirfd, name, out, size, err);
}

static int read_fd(int fd, char *out, size_t size, struct err *err)
{
	size_t len = 0;

	for (;;) {
		ssize_t n = read(fd, out + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys_id(err, ERRID_SECRET_KEY, "read descriptor %d",
					  fd);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len == size)
			return err_set_id(err, ERRID_SECRET_KEY,
					  "descriptor %d has more than %zu bytes", fd,
					  size - 1);
	}
	if (len && out[len - 1] == '\n')
		len--;
	if (!len || memchr(out, '\0', len))
		return err_set_id(err, ERRID_SECRET_KEY,
				  "what descriptor %d has is empty or holds a NUL", fd);
	out[len] = '\0';
	return 0;
}

int opener_read(const struct opener_source *from, char *out, size_t size, size_t *ret_len,
		struct err *err)
{
	int r;

	if (from->credential)
		r = read_credential(from->credential, out, size, err);
	else if (from->file)
		r = fs_read_secret(AT_FDCWD, from->file, out, size, err);
	else
		r = read_fd(from->fd, out, size, err);
	if (r < 0) {
		explicit_bzero(out, size);
		return err_wrap(err, "what opens the store");
	}
	*ret_len = strlen(out);
	return 0;
}
