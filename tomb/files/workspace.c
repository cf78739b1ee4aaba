/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb and the file worker.
 * See workspace.h.
 */
#include "tomb/files/workspace.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "tomb/files/stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)64 << 20)

int workspace_make(int jobs_fd, int spools_fd, const char *job, struct err *err)
{
	cleanup_close int dir = -1;

	if (mkdirat(jobs_fd, job, 0700) < 0 || mkdirat(spools_fd, job, 0700) < 0)
		return err_sys(err, "make the job's folder");
	dir = fs_open_beneath(jobs_fd, job, O_PATH | O_DIRECTORY, 0, err);
	if (dir < 0)
		return -1;
	return mkdirat(dir, "work", 0700) < 0 ? err_sys(err, "make the job's folder") : 0;
}

int workspace_open(struct workspace *ret, int jobs_fd, int spools_fd, const char *job,
		   struct err *err)
{
	cleanup_close int dir =
		fs_open_beneath(jobs_fd, job, O_PATH | O_DIRECTORY, 0, err);
	cleanup_close int work = -1;
	int spool;

	if (dir < 0)
		return -1;
	work = fs_open_beneath(dir, "work", O_RDONLY | O_DIRECTORY, 0, err);
	spool = work < 0
			? -1
			: fs_open_beneath(spools_fd, job, O_RDONLY | O_DIRECTORY, 0, err);
	if (spool < 0)
		return -1;
	*ret = (struct workspace){.work_fd = TAKE_FD(work), .spool_fd = spool};
	return 0;
}

void workspace_done(struct workspace *w)
{
	fd_close(&w->work_fd);
	fd_close(&w->spool_fd);
}

int workspace_spool(const struct workspace *w, const char *name, struct err *err)
{
	return fs_open_beneath(w->spool_fd, name, O_RDWR | O_CREAT | O_EXCL, 0600, err);
}

/* The directory that holds path, made where missing; *ret_name points into path. */
static int open_parent(int work_fd, const char *path, const char **ret_name,
		       struct err *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : NULL;

	*ret_name = slash ? slash + 1 : path;
	if (dir && fs_mkdir_beneath(work_fd, dir, 0755, err) < 0)
		return -1;
	return fs_open_beneath(work_fd, dir ? dir : ".", O_RDONLY | O_DIRECTORY, 0, err);
}

/* A new file in place of what has its name, which is never written through. */
static int make_file(int dir, const char *name, struct err *err)
{
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "replace '%.100s'", name);
	return fs_open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600,
			       err);
}

static int copy_all(int to, int from, struct err *err)
{
	ssize_t n;

	do
		n = copy_file_range(from, NULL, to, NULL, COPY_BYTES, 0);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? err_sys(err, "copy") : 0;
}

static int fill(const struct workspace *w, int to, const struct files_put *p,
		struct err *err)
{
	cleanup_close int from = -1;

	if (p->where != FILES_FROM_BLOB)
		return fs_write_all(to, p->data, p->data_len, err);
	from = fs_open_beneath(w->spool_fd, p->data, O_RDONLY, 0, err);
	return from < 0 || copy_all(to, from, err) < 0 ? -1 : 0;
}

/* The job's archive was unpacked first: a directory of a file's name, a link in its way. */
static bool is_in_the_way(int sys)
{
	return sys == EISDIR || sys == ENOTDIR || sys == ELOOP || sys == EXDEV;
}

static int put_below_work(const struct workspace *w, const struct files_put *p,
			  struct err *err)
{
	const char *name = "";
	cleanup_close int dir = open_parent(w->work_fd, p->path, &name, err);
	cleanup_close int fd = dir < 0 ? -1 : make_file(dir, name, err);

	if (fd < 0 && is_in_the_way(err->sys))
		return err_set_id(
			err, ERRID_SPEC_PATH,
			"file '%.200s': the input archive has a link or another "
			"kind of file in its place",
			p->path);
	if (fd < 0 || fill(w, fd, p, err) < 0)
		return err_wrap(err, "file '%.200s'", p->path);
	return fchmod(fd, p->mode) < 0 ? err_sys(err, "mode of '%.100s'", name) : 0;
}

int workspace_put(const struct workspace *w, const struct files_put *p, struct err *err)
{
	cleanup_close int fd = -1;

	if (p->where == FILES_NEW_DIR)
		return mkdirat(w->work_fd, p->path, 0700) < 0
			       ? err_sys(err,
					 "make '%.100s', a name that the job's files may "
					 "not have",
					 p->path)
			       : 0;
	if (p->where != FILES_IN_SPOOL)
		return put_below_work(w, p, err);
	fd = workspace_spool(w, p->path, err);
	return fd < 0 ? -1 : fs_write_all(fd, p->data, p->data_len, err);
}

/* "42.1": nothing else is ours to remove. */
static bool is_job(const char *name)
{
	size_t job = strspn(name, "0123456789");
	size_t epoch = name[job] == '.' ? strspn(name + job + 1, "0123456789") : 0;

	return job > 0 && epoch > 0 && name[job + 1 + epoch] == '\0';
}

int workspace_remove_stale(int jobs_fd, const char *jobs_path, unsigned *ret_removed,
			   struct err *err)
{
	cleanup_close int fd = openat(jobs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *dir = NULL;
	const struct dirent *de;

	*ret_removed = 0;
	if (fd < 0 || !(dir = fdopendir(fd)))
		return err_sys(err, "list %s", jobs_path);
	(void)TAKE_FD(fd);
	if (stale_kill_users(jobs_path, err) < 0)
		return -1;
	while ((errno = 0, de = readdir(dir)) != NULL) {
		if (str_eq(de->d_name, ".") || str_eq(de->d_name, "..") ||
		    str_eq(de->d_name, "lost+found"))
			continue;
		if (!is_job(de->d_name))
			return err_set_id(err, ERRID_START_JOBS,
					  "%s holds '%.100s', which is no job's folder",
					  jobs_path, de->d_name);
		if (fs_remove_beneath(jobs_fd, de->d_name, err) < 0)
			return err_wrap(err, "a folder of an earlier run");
		(*ret_removed)++;
	}
	if (errno)
		return err_sys(err, "list %s", jobs_path);
	return 0;
}
