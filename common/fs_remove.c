/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Theory of operation. A tree that a job built may be of any depth and its directories of
 * any mode. The walk goes down by descriptors and up by "..", with neither a path nor a
 * call that grow with the depth; where ".." leads is compared with where it came from, so
 * that whoever moves a directory away meanwhile ends the removal instead of leading it
 * out of the tree. Nothing is renamed: a rename from one directory into another takes a
 * lock that a whole file system has but one of, and a job can hold it.
 *
 * The directories nearest to the present one stay open, so that a large one is read on
 * and not anew; of those further up only the inode's number is kept.
 */
#include "common/fs.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Linux 6.6; the headers of Debian 12 are older. One number on every architecture. */
#define SYS_fchmodat2_ 452
#define OPEN_MAX_LEVELS 32

struct open_level {
	DIR *dir; /* NULL: it is opened again when the walk comes back up */
	const struct dirent *at;
};

struct fs_removal {
	int dirfd; /* borrowed */
	char *name;
	dev_t dev;
	ino_t *ino; /* of each level's directory */
	size_t depth, cap;
	struct open_level open[OPEN_MAX_LEVELS]; /* of the last ones: [level % MAX] */
	/* What was entered last, and how much had been removed then: to enter it again
	 * with nothing done in between would go on for ever. */
	ino_t entered;
	uint64_t removed, removed_then;
};

struct fs_removal *fs_removal_new(int dirfd, const char *name)
{
	struct fs_removal *r = xnew(struct fs_removal);

	r->dirfd = dirfd;
	r->name = xstrdup(name);
	return r;
}

static struct open_level *level(struct fs_removal *r, size_t n)
{
	return &r->open[n % OPEN_MAX_LEVELS];
}

static void level_close(struct open_level *l)
{
	if (l->dir)
		(void)closedir(l->dir);
	*l = (struct open_level){NULL, NULL};
}

void fs_removal_free(struct fs_removal *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < OPEN_MAX_LEVELS; i++)
		level_close(&r->open[i]);
	free(r->ino);
	free(r->name);
	free(r);
}

/* A directory of ours, for emptying; modes that a job set do not stop us. */
static int open_for_removal(int parent, const char *name, struct err *err)
{
	struct err first = ERR_INIT;
	int fd = fs_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0, &first);

	if (fd < 0 && first.sys == EACCES) {
		/* O_PATH needs no permission on the directory itself, and a descriptor
		 * cannot be diverted by a rename. fchmodat2 and not the magic link: who
		 * is confined has no /proc. */
		cleanup_close int path_fd =
			fs_open_beneath(parent, name, O_PATH | O_DIRECTORY, 0, err);

		if (path_fd < 0)
			return -1;
		if (syscall(SYS_fchmodat2_, path_fd, "", 0700, AT_EMPTY_PATH) < 0)
			return err_sys(err, "chmod '%.100s'", name);
		return fs_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0, err);
	}
	if (fd < 0) {
		if (err)
			*err = first;
		return -1;
	}
	if (fchmod(fd, 0700) < 0) {
		(void)close(fd);
		return err_sys(err, "chmod '%.100s'", name);
	}
	return fd;
}

/* fd becomes the directory of the deepest level. */
static int level_open(struct fs_removal *r, int fd, struct err *err)
{
	struct open_level *l = level(r, r->depth - 1);

	level_close(l);
	l->dir = fdopendir(fd);
	if (!l->dir) {
		(void)err_sys(err, "list a directory");
		(void)close(fd);
		return -1;
	}
	return 0;
}

static int go_down(struct fs_removal *r, int parent, const char *name, struct err *err)
{
	int fd = open_for_removal(parent, name, err);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || (r->depth > 0 && st.st_dev != r->dev) ||
	    (st.st_ino == r->entered && r->removed == r->removed_then)) {
		(void)close(fd);
		return err_set(err, ERR_CONFLICT, "'%.100s' cannot be emptied", name);
	}
	r->dev = st.st_dev;
	r->entered = st.st_ino;
	r->removed_then = r->removed;
	if (r->depth == r->cap) {
		r->cap = r->cap ? r->cap * 2 : OPEN_MAX_LEVELS;
		r->ino = xreallocarray(r->ino, r->cap, sizeof(*r->ino));
	}
	r->ino[r->depth++] = st.st_ino;
	return level_open(r, fd, err);
}

/* Leaves the deepest level, which is empty. */
static int go_up(struct fs_removal *r, struct err *err)
{
	struct open_level *l = level(r, r->depth - 1);
	cleanup_close int up = -1;
	struct stat st;

	if (r->depth > 1 && !level(r, r->depth - 2)->dir) {
		up = openat(dirfd(l->dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (up < 0 || fstat(up, &st) < 0)
			return err_sys(err, "leave a directory");
		if (st.st_dev != r->dev || st.st_ino != r->ino[r->depth - 2])
			return err_set(err, ERR_CONFLICT,
				       "a directory was moved while it was emptied");
	}
	level_close(l);
	r->depth--;
	return up < 0 ? 0 : level_open(r, TAKE_FD(up), err);
}

/* 0: it is gone; 1: it is a directory that must be emptied first, and is the deepest
 * level now. */
static int take(struct fs_removal *r, int parent, const char *name, struct err *err)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
		r->removed++;
		return 0;
	}
	if (errno != EISDIR && errno != EPERM)
		return err_sys(err, "remove '%.100s'", name);
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0) {
		r->removed++;
		return 0;
	}
	if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
		return err_sys(err, "remove '%.100s'", name);
	return go_down(r, parent, name, err) < 0 ? -1 : 1;
}

/* One entry of the deepest level; -1 with err. */
static int take_next(struct fs_removal *r, struct err *err)
{
	struct open_level *l = level(r, r->depth - 1);

	errno = 0;
	l->at = readdir(l->dir);
	if (!l->at) {
		if (errno)
			return err_sys(err, "list a directory");
		if (go_up(r, err) < 0)
			return -1;
		if (r->depth == 0)
			return take(r, r->dirfd, r->name, err);
		/* What was just emptied; a level that was opened anew finds it again. */
		l = level(r, r->depth - 1);
		return l->at ? take(r, dirfd(l->dir), l->at->d_name, err) : 0;
	}
	if (str_eq(l->at->d_name, ".") || str_eq(l->at->d_name, ".."))
		return 0;
	return take(r, dirfd(l->dir), l->at->d_name, err);
}

int fs_removal_step(struct fs_removal *r, unsigned budget, struct err *err)
{
	int left = r->depth == 0 ? take(r, r->dirfd, r->name, err) : 1;

	while (left >= 0 && r->depth > 0) {
		if (budget-- == 0)
			return 1;
		left = take_next(r, err);
	}
	return left < 0 ? err_wrap(err, "remove '%.200s'", r->name) : 0;
}

int fs_remove_beneath(int dirfd, const char *name, struct err *err)
{
	struct fs_removal *r = fs_removal_new(dirfd, name);
	int left;

	do
		left = fs_removal_step(r, UINT_MAX, err);
	while (left > 0);
	fs_removal_free(r);
	return left;
}
