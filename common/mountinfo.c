/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See mountinfo.h.
 */
#include "common/mountinfo.h"

#include "common/cleanup.h"
#include "common/str.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One field; blanks in it are written as octal escapes. */
static const char *take_field(const char *s, char *out, size_t size)
{
	size_t n = 0;

	while (*s && *s != ' ' && *s != '\n') {
		char c = *s++;

		if (c == '\\' && s[0] >= '0' && s[0] <= '3' && s[1] >= '0' &&
		    s[1] <= '7' && s[2] >= '0' && s[2] <= '7') {
			c = (char)((s[0] - '0') * 64 + (s[1] - '0') * 8 + (s[2] - '0'));
			s += 3;
		}
		if (n + 1 < size)
			out[n++] = c;
	}
	out[n] = '\0';
	return *s == ' ' ? s + 1 : s;
}

const char *mountinfo_line(const char *text, struct mount_line *ret)
{
	const char *s = take_field(text, ret->id, sizeof(ret->id));

	s = take_field(s, ret->parent, sizeof(ret->parent));
	s = take_field(s, ret->dev, sizeof(ret->dev));
	s = take_field(s, ret->root, sizeof(ret->root));
	(void)take_field(s, ret->point, sizeof(ret->point));
	s = text + strcspn(text, "\n");
	return *s ? s + 1 : s;
}

int mountinfo_read(int proc_fd, const char *pid, struct buf *ret)
{
	char path[64];
	cleanup_close int fd = -1;

	buf_reset(ret);
	if (str_fmt(path, sizeof(path), "%s/mountinfo", pid) < 0)
		return -1;
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (;;) {
		char block[8192];
		ssize_t n = read(fd, block, sizeof(block));

		if (n <= 0)
			return n == 0 && buf_ok(ret) ? 0 : -1;
		buf_add(ret, block, (size_t)n);
	}
}

int mountinfo_find(const char *path, const char *text, struct mount_line *ret,
		   struct err *err)
{
	struct statx sx;
	char id[24];

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &sx) < 0 ||
	    !(sx.stx_mask & STATX_MNT_ID))
		return err_sys(err, "the mount of %s", path);
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)sx.stx_mnt_id);
	while (*text) {
		text = mountinfo_line(text, ret);
		if (str_eq(ret->id, id))
			return 0;
	}
	return err_set(err, ERR_SYS, "%s is not in our mount table", path);
}

static const char *not_own(const char *path, const struct mount_line *m, const char *text)
{
	struct mount_line other;

	if (!str_eq(m->point, path))
		return "no mount of its own";
	if (!str_eq(m->root, "/"))
		return "a part of a file system that has more";
	while (*text) {
		text = mountinfo_line(text, &other);
		if (!str_eq(other.id, m->id) && str_eq(other.dev, m->dev))
			return "a file system that is mounted elsewhere too";
	}
	return NULL;
}

int mountinfo_check_own(const char *path, struct err *err)
{
	cleanup_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_buf struct buf text = {.max = MOUNTINFO_MAX_BYTES};
	struct mount_line m;
	const char *why;
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_sys_id(err, ERRID_START_JOBS, "%s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set_id(err, ERRID_START_JOBS,
				  "%s is no directory of yours that only you can write",
				  path);
	if (proc_fd < 0 || mountinfo_read(proc_fd, "self", &text) < 0)
		return err_sys_id(err, ERRID_START_JOBS, "read our mount table");
	if (mountinfo_find(path, buf_str(&text), &m, err) < 0)
		return -1;
	why = not_own(path, &m, buf_str(&text));
	return why ? err_set_id(err, ERRID_START_JOBS, "%s is %s", path, why) : 0;
}
