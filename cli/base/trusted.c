/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See trusted.h.
 */
#include "cli/base/trusted.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int check_owner(const char *path, const struct stat *st, enum err_id id,
		       struct err *err)
{
	/* In a directory like /tmp nobody replaces what is not his. */
	bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);

	if (st->st_uid != getuid() && st->st_uid != 0)
		return err_set_id(err, id,
				  "%s belongs to uid %u, neither to you nor to root",
				  path, st->st_uid);
	if ((st->st_mode & 022) && !sticky)
		return err_set_id(err, id, "%s can be written by others (mode %04o)",
				  path, st->st_mode & 07777);
	return 0;
}

int trusted_above(const char *real, enum err_id id, struct err *err)
{
	cleanup_free char *dir = xstrdup(real);

	for (;;) {
		char *slash = strrchr(dir, '/');
		struct stat st;

		slash[slash == dir] = '\0';
		if (lstat(dir, &st) < 0)
			return err_sys_id(err, id, "%s", dir);
		if (check_owner(dir, &st, id, err) < 0)
			return -1;
		if (slash == dir)
			return 0;
	}
}

int trusted_read(const char *real, size_t max, enum err_id id, char **ret,
		 size_t *ret_len, struct err *err)
{
	cleanup_close int fd =
		open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	cleanup_free char *text = xmalloc(max + 1);
	struct stat st;
	size_t len = 0;

	if (fd < 0)
		return err_sys_id(err, id, "%s", real);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", real);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, id, "%s: not a regular file", real);
	if (check_owner(real, &st, id, err) < 0)
		return -1;
	for (;;) {
		ssize_t n = read(fd, text + len, max + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys_id(err, id, "read %s", real);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return err_set_id(err, id, "%s: above %zu bytes", real, max);
	}
	text[len] = '\0';
	*ret = TAKE_PTR(text);
	*ret_len = len;
	return 0;
}
