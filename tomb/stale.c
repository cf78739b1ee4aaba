/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/stale.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STALE_WAIT_USEC (5 * USEC_PER_SEC)
#define STALE_PAUSE_USEC 20000
#define MOUNTINFO_MAX ((size_t)1 << 20)

/* Where the jobs directory is, said so that it can be found in any mount table. */
struct stale_place {
	const char *path;     /* as we see it */
	char dev[32];	      /* "8:1" */
	char in_fs[PATH_MAX]; /* its path within its file system */
};

/* "/42.1" or "/42.1/work": a job's folder, as opposed to the jobs directory itself. */
static bool names_a_job(const char *tail)
{
	return tail[0] == '/' && tail[1] >= '0' && tail[1] <= '9';
}

static bool is_below(const char *path, const char *dir)
{
	return str_starts(path, dir) && names_a_job(path + strlen(dir));
}

/* One field of a mountinfo line; blanks in it are written as octal escapes. */
static const char *mount_field(const char *s, char *out, size_t size)
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

struct mount_line {
	char id[16], parent[16], dev[32], root[PATH_MAX], point[PATH_MAX];
};

static const char *mount_parse(const char *line, struct mount_line *m)
{
	const char *s = mount_field(line, m->id, sizeof(m->id));

	s = mount_field(s, m->parent, sizeof(m->parent));
	s = mount_field(s, m->dev, sizeof(m->dev));
	s = mount_field(s, m->root, sizeof(m->root));
	(void)mount_field(s, m->point, sizeof(m->point));
	s = line + strcspn(line, "\n");
	return *s ? s + 1 : s;
}

static int read_mounts(int proc_fd, const char *pid, struct buf *ret)
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

static int find_place(int proc_fd, const char *jobs_path, struct stale_place *ret,
		      struct err *err)
{
	cleanup_buf struct buf mounts = {.max = MOUNTINFO_MAX};
	struct mount_line m;
	struct statx sx;
	char id[24];

	ret->path = jobs_path;
	if (statx(AT_FDCWD, jobs_path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &sx) < 0 ||
	    !(sx.stx_mask & STATX_MNT_ID))
		return err_sys(err, "the mount of %s", jobs_path);
	if (read_mounts(proc_fd, "self", &mounts) < 0)
		return err_sys(err, "read our mount table");
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)sx.stx_mnt_id);
	for (const char *line = buf_str(&mounts); *line;) {
		size_t n;

		line = mount_parse(line, &m);
		if (!str_eq(m.id, id))
			continue;
		n = str_eq(m.point, "/") ? 0 : strlen(m.point);
		if (n > strlen(jobs_path) || strncmp(jobs_path, m.point, n) != 0 ||
		    str_copy(ret->dev, sizeof(ret->dev), m.dev) < 0 ||
		    str_fmt(ret->in_fs, sizeof(ret->in_fs), "%s%s",
			    str_eq(m.root, "/") ? "" : m.root, jobs_path + n) < 0)
			break;
		return 0;
	}
	return err_set(err, ERR_SYS, "%s is not in our mount table", jobs_path);
}

static bool stands_in_a_job(int proc_fd, const char *pid, const struct stale_place *place)
{
	cleanup_buf struct buf mounts = {.max = MOUNTINFO_MAX};
	char path[64], cwd[PATH_MAX];
	struct mount_line m;
	ssize_t n;

	if (str_fmt(path, sizeof(path), "%s/cwd", pid) < 0)
		return false;
	n = readlinkat(proc_fd, path, cwd, sizeof(cwd) - 1);
	if (n > 0) {
		cwd[n] = '\0';
		if (is_below(cwd, place->path))
			return true;
	}
	if (read_mounts(proc_fd, pid, &mounts) < 0)
		return false; /* gone meanwhile, or not ours to see */
	for (const char *line = buf_str(&mounts); *line;) {
		line = mount_parse(line, &m);
		if (str_eq(m.dev, place->dev) && is_below(m.root, place->in_fs))
			return true;
	}
	return false;
}

/* One look at every process of ours; the users of a job's folder are killed. */
static int stale_sweep(int proc_fd, const struct stale_place *place, unsigned *ret_alive,
		       struct err *err)
{
	cleanup_close int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *dir = NULL;
	const struct dirent *de;

	*ret_alive = 0;
	if (fd < 0 || !(dir = fdopendir(fd)))
		return err_sys(err, "list /proc");
	(void)TAKE_FD(fd);
	while ((de = readdir(dir)) != NULL) {
		struct stat st;
		uint64_t pid;
		int pidfd;

		if (parse_u64(de->d_name, 1, INT_MAX, &pid, NULL) < 0 ||
		    pid == (uint64_t)getpid() ||
		    fstatat(proc_fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_uid != getuid())
			continue;
		/* The descriptor first, so that the look and the kill are of one process.
		 */
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
		if (pidfd < 0)
			continue;
		if (stands_in_a_job(proc_fd, de->d_name, place)) {
			(*ret_alive)++;
			(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		}
		(void)close(pidfd);
	}
	return 0;
}

int stale_kill_users(const char *jobs_path, struct err *err)
{
	cleanup_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	usec_t until = clock_boot_usec() + STALE_WAIT_USEC;
	struct stale_place place;
	unsigned alive;

	if (proc_fd < 0)
		return err_sys(err, "open /proc");
	if (find_place(proc_fd, jobs_path, &place, err) < 0)
		return -1;
	for (;;) {
		if (stale_sweep(proc_fd, &place, &alive, err) < 0)
			return -1;
		if (alive == 0)
			return 0;
		if (clock_boot_usec() > until)
			return err_set(err, ERR_CONFLICT,
				       "%u processes of an earlier run still use %s",
				       alive, jobs_path);
		(void)usleep(STALE_PAUSE_USEC);
	}
}
