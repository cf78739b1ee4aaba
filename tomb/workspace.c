/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/workspace.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "tomb/stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directory entries removed in one turn of the loop: some milliseconds. */
#define REMOVE_STEP 512

void workspace_init(struct workspace *w)
{
	*w = (struct workspace){.jobs_fd = -1, .work_fd = -1, .spool_fd = -1};
}

void workspace_done(struct workspace *w)
{
	fd_close(&w->work_fd);
	fd_close(&w->spool_fd);
	fs_removal_free(TAKE_PTR(w->removal));
}

int workspace_make(struct workspace *w, int jobs_fd, const struct lease_key *key,
		   struct err *err)
{
	cleanup_close int dir = -1;

	w->jobs_fd = jobs_fd;
	if (str_fmt(w->name, sizeof(w->name), "%" PRId64 ".%" PRId64, key->job,
		    key->epoch) < 0 ||
	    str_fmt(w->work_name, sizeof(w->work_name), "%s/work", w->name) < 0)
		return err_set(err, ERR_INTERNAL, "the job's id is too long");
	/* A folder that is there is not of this attempt: an epoch is given once. */
	if (mkdirat(jobs_fd, w->name, 0700) < 0)
		return err_sys(err, "make the job's folder");
	dir = fs_open_beneath(jobs_fd, w->name, O_PATH | O_DIRECTORY, 0, err);
	if (dir < 0)
		return -1;
	if (mkdirat(dir, "work", 0700) < 0 || mkdirat(dir, "spool", 0700) < 0)
		return err_sys(err, "make the job's folder");
	w->work_fd = fs_open_beneath(dir, "work", O_RDONLY | O_DIRECTORY, 0, err);
	w->spool_fd = w->work_fd < 0 ? -1
				     : fs_open_beneath(dir, "spool",
						       O_RDONLY | O_DIRECTORY, 0, err);
	return w->spool_fd < 0 ? -1 : 0;
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

static int place_data(int dir, const char *name, const void *data, size_t len,
		      unsigned mode, struct err *err)
{
	cleanup_close int fd = -1;

	/* What the archive brought under this name gives way; never written through. */
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "replace '%.100s'", name);
	fd = fs_open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600,
			     err);
	if (fd < 0 || fs_write_all(fd, data, len, err) < 0)
		return -1;
	if (fchmod(fd, mode) < 0)
		return err_sys(err, "mode of '%.100s'", name);
	return 0;
}

static int place_blob(const struct workspace *w, size_t i, int dir, const char *name,
		      unsigned mode, struct err *err)
{
	cleanup_close int fd = -1;
	char from[32];

	if (str_fmt(from, sizeof(from), "file-%zu", i) < 0)
		return err_set(err, ERR_INTERNAL, "too many files");
	fd = fs_open_beneath(w->spool_fd, from, O_RDONLY, 0, err);
	if (fd < 0)
		return -1;
	if (fchmod(fd, mode) < 0)
		return err_sys(err, "mode of '%.100s'", name);
	return fs_move_file(w->spool_fd, from, dir, name, err);
}

int workspace_place(const struct workspace *w, const struct tomb_spec *s, struct err *err)
{
	for (size_t i = 0; i < s->n_files; i++) {
		const struct tomb_file *f = &s->files[i];
		const char *name;
		cleanup_close int dir = open_parent(w->work_fd, f->path, &name, err);

		if (dir < 0)
			return err_wrap(err, "file '%.200s'", f->path);
		if (f->data ? place_data(dir, name, f->data, f->len, f->mode, err) < 0
			    : place_blob(w, i, dir, name, f->mode, err) < 0)
			return -1;
	}
	if (s->script && place_data(w->work_fd, SPEC_SCRIPT_NAME, s->script,
				    strlen(s->script), 0644, err) < 0)
		return err_wrap(err, "script");
	return 0;
}

int workspace_put(const struct workspace *w, const char *path, const void *data,
		  size_t len, struct err *err)
{
	const char *name;
	cleanup_close int dir = open_parent(w->work_fd, path, &name, err);

	return dir < 0 || place_data(dir, name, data, len, 0644, err) < 0 ? -1 : 0;
}

int workspace_remove(struct workspace *w, struct err *err)
{
	fd_close(&w->work_fd);
	fd_close(&w->spool_fd);
	if (!w->name[0])
		return 0;
	if (!w->removal)
		w->removal = fs_removal_new(w->jobs_fd, w->name);
	return fs_removal_step(w->removal, REMOVE_STEP, err);
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
		if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
			continue;
		if (fs_remove_beneath(jobs_fd, de->d_name, err) < 0)
			return err_wrap(err, "a folder of an earlier run");
		(*ret_removed)++;
	}
	if (errno)
		return err_sys(err, "list %s", jobs_path);
	return 0;
}
