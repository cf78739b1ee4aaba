/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb and the file worker.
 * See stale.h.
 */
#include "tomb/files/stale.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mountinfo.h"
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

static int find_place(int proc_fd, const char *jobs_path, struct stale_place *ret,
		      struct err *err)
{
	cleanup_buf struct buf mounts = {.max = MOUNTINFO_MAX_BYTES};
	struct mount_line m;
	size_t n;

	ret->path = jobs_path;
	if (mountinfo_read(proc_fd, "self", &mounts) < 0)
		return err_sys(err, "read our mount table");
	if (mountinfo_find(jobs_path, buf_str(&mounts), &m, err) < 0)
		return -1;
	n = str_eq(m.point, "/") ? 0 : strlen(m.point);
	if (n > strlen(jobs_path) || strncmp(jobs_path, m.point, n) != 0 ||
	    str_copy(ret->dev, sizeof(ret->dev), m.dev) < 0 ||
	    str_fmt(ret->in_fs, sizeof(ret->in_fs), "%s%s",
		    str_eq(m.root, "/") ? "" : m.root, jobs_path + n) < 0)
		return err_set(err, ERR_SYS, "%s is not in our mount table", jobs_path);
	return 0;
}

static bool stands_in_a_job(int proc_fd, const char *pid, const struct stale_place *place)
{
	cleanup_buf struct buf mounts = {.max = MOUNTINFO_MAX_BYTES};
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
	if (mountinfo_read(proc_fd, pid, &mounts) < 0)
		return false; /* gone meanwhile, or not ours to see */
	for (const char *line = buf_str(&mounts); *line;) {
		line = mountinfo_line(line, &m);
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
