/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * See disk.h.
 */
#include "sandbox/keeper/disk.h"

#include "common/cleanup.h"
#include "common/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define OPEN_TRIES 16
#define LENT_BITS 0500

void disk_init(struct disk_walk *w)
{
	*w = (struct disk_walk){0};
}

/* Their free space goes down with the write, not with the writeback: ext4_statfs() takes the
 * dirty clusters off, XFS reserves in the counter it shows, tmpfs has nothing to delay. */
static bool counts_delayed(const struct statfs *f)
{
	return f->f_type == EXT4_SUPER_MAGIC || f->f_type == XFS_SUPER_MAGIC ||
	       f->f_type == TMPFS_MAGIC;
}

/* 0: it does not say. An empty file costs an entry here too. */
static uint64_t used_of(int fd)
{
	struct statfs f;

	if (fstatfs(fd, &f) < 0 || !counts_delayed(&f) || f.f_bfree > f.f_blocks ||
	    f.f_ffree > f.f_files)
		return 0;
	return (uint64_t)(f.f_blocks - f.f_bfree) * (uint64_t)f.f_frsize +
	       (uint64_t)(f.f_files - f.f_ffree) * DISK_ENTRY_BYTES;
}

void disk_see_growth(struct disk_walk *w)
{
	uint64_t used = w->sees_growth ? used_of(w->root[0].fd) : 0;

	if (!used) {
		w->sees_growth = false;
		return;
	}
	/* What somebody frees makes room for what another adds: each rise counts. */
	if (used > w->used)
		w->grown += used - w->used;
	w->used = used;
}

/* A whole round, and what happened since. */
static bool knows(const struct disk_walk *w)
{
	return w->sees_growth && w->whole && !w->too_deep && !w->closed_rounds;
}

uint64_t disk_added(const struct disk_walk *w)
{
	return w->grown - w->grown_whole;
}

bool disk_is_still(const struct disk_walk *w)
{
	return knows(w) && disk_added(w) < DISK_STILL_BYTES;
}

bool disk_is_within(const struct disk_walk *w, uint64_t bytes)
{
	return knows(w) && w->total + w->grown <= bytes;
}

int disk_add(struct disk_walk *w, int fd, bool growth, struct err *err)
{
	cleanup_close int own = fd;
	struct stat st;

	if (w->n_roots == DISK_ROOTS_MAX)
		return err_set_id(
			err, ERRID_SANDBOX_LIMIT,
			"disk: more than %d writable trees cannot be supervised",
			DISK_ROOTS_MAX);
	if (fstat(own, &st) < 0)
		return err_sys(err, "stat a writable tree");
	w->root[w->n_roots++] = (struct disk_root){
		.fd = TAKE_FD(own), .dev = st.st_dev, .growth = growth};
	w->used = w->n_roots == 1 && !growth ? used_of(w->root[0].fd) : 0;
	w->sees_growth = w->used > 0;
	return 0;
}

/*
 * A directory that its owner closed to itself (chmod 000) still counts. With
 * CAP_DAC_READ_SEARCH it just opens; without, the owner bits are lent to it
 * until it has been read. A job may close it again at any moment: one that
 * keeps winning is not supervised any more, and the keeper ends it.
 */
static int open_lending(int parent, const char *name, int *ret_mode)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	cleanup_close int path =
		openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int fd = -1;

	if (path < 0 || fstat(path, &st) < 0)
		return -1;
	for (int i = 0; fd < 0 && i < OPEN_TRIES; i++) {
		if (syscall(SYS_fchmodat2, path, "", (st.st_mode & 07777) | LENT_BITS,
			    AT_EMPTY_PATH) < 0)
			break;
		fd = openat(path, ".", flags);
	}
	*ret_mode = (int)(st.st_mode & 07777);
	return fd;
}

static void give_back(int fd, int mode)
{
	struct stat st;

	/* Unless the job has chosen another mode meanwhile. */
	if (mode >= 0 && fstat(fd, &st) == 0 &&
	    (int)(st.st_mode & 07777) == (mode | LENT_BITS))
		(void)fchmod(fd, (mode_t)mode);
}

static void pop(struct disk_walk *w)
{
	struct disk_level *l = w->level[--w->depth];

	give_back(l->fd, l->lent);
	fd_close(&l->fd);
}

static void push(struct disk_walk *w, int fd, int lent)
{
	struct disk_level **l = &w->level[w->depth++];

	if (!*l)
		*l = xmalloc(sizeof(**l));
	(*l)->fd = fd;
	(*l)->lent = lent;
	(*l)->at = (*l)->len = 0;
}

/* NULL: that was the last one, or it can no longer be read. */
static const struct dirent64 *next_entry(struct disk_level *l)
{
	const struct dirent64 *e;
	ssize_t n;

	if (l->at == l->len) {
		n = getdents64(l->fd, l->batch, sizeof(l->batch));
		l->at = 0;
		l->len = n > 0 ? (size_t)n : 0;
		if (!l->len)
			return NULL;
	}
	e = (const void *)(l->batch + l->at);
	l->at += e->d_reclen;
	return e;
}

/* Open and walk into it. */
static void descend(struct disk_walk *w, int parent, const char *name)
{
	int mode = -1;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = open_lending(parent, name, &mode);
	if (fd < 0) {
		w->closed |= errno != ENOENT;
		return;
	}
	if (w->depth == DISK_DEPTH_MAX) {
		w->too_deep = true;
		give_back(fd, mode);
		fd_close(&fd);
		return;
	}
	push(w, fd, mode);
}

static void count_entry(struct disk_walk *w, int dir_fd, const char *name)
{
	struct stat st;
	uint64_t bytes;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		w->closed |= errno == EACCES;
		return;
	}
	/* A mount, or a subvolume, that was there before. */
	if (S_ISDIR(st.st_mode) && st.st_dev != w->root[w->at].dev) {
		w->foreign = true;
		return;
	}
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1 &&
	    !inode_set_add(&w->links, st.st_dev, st.st_ino))
		return;
	bytes = (uint64_t)st.st_blocks * 512;
	if (w->tell && bytes >= DISK_LARGE_BYTES && S_ISREG(st.st_mode))
		w->tell(w->tell_arg, st.st_dev, st.st_ino, bytes);
	w->root_bytes += bytes + DISK_ENTRY_BYTES;
	if (S_ISDIR(st.st_mode))
		descend(w, dir_fd, name);
}

static uint64_t root_counts(const struct disk_root *r, uint64_t bytes)
{
	if (!r->growth)
		return bytes;
	return r->has_base && bytes > r->base ? bytes - r->base : 0;
}

/* The root being walked is finished; true when it was the last of the round. */
static bool next_root(struct disk_walk *w)
{
	struct disk_root *r = &w->root[w->at];

	if (r->growth && !r->has_base) {
		r->base = w->root_bytes;
		r->has_base = true;
	}
	w->partial += root_counts(r, w->root_bytes);
	w->root_bytes = 0;
	if (++w->at < w->n_roots)
		return false;
	w->closed_rounds = w->closed ? w->closed_rounds + 1 : 0;
	w->closed = false;
	w->whole = true;
	w->grown_whole = w->grown_round;
	w->total = w->partial;
	w->partial = 0;
	w->at = 0;
	inode_set_reset(&w->links);
	return true;
}

void disk_start_over(struct disk_walk *w)
{
	for (unsigned i = 0; i < w->n_roots; i++)
		if (w->root[i].growth && !w->root[i].has_base)
			return;
	while (w->depth)
		pop(w);
	w->at = 0;
	w->root_bytes = w->partial = 0;
	w->closed = false;
	inode_set_reset(&w->links);
}

void disk_done(struct disk_walk *w)
{
	while (w->depth)
		pop(w);
	for (unsigned i = 0; i < w->n_roots; i++)
		fd_close(&w->root[i].fd);
	w->n_roots = 0;
	for (unsigned i = 0; i < DISK_DEPTH_MAX && w->level[i]; i++) {
		free(w->level[i]);
		w->level[i] = NULL;
	}
	inode_set_done(&w->links);
}

bool disk_step(struct disk_walk *w, unsigned max_entries)
{
	if (!w->n_roots)
		return true;
	if (disk_at_start(w))
		w->grown_round = w->grown;
	for (unsigned n = 0; n < max_entries; n++) {
		const struct dirent64 *e;
		struct disk_level *l;

		if (!w->depth) {
			descend(w, w->root[w->at].fd, ".");
			if (!w->depth && next_root(w))
				return true;
			continue;
		}
		l = w->level[w->depth - 1];
		e = next_entry(l);
		if (!e) {
			pop(w);
			if (!w->depth && next_root(w))
				return true;
			continue;
		}
		if (e->d_name[0] == '.' &&
		    (!e->d_name[1] || (e->d_name[1] == '.' && !e->d_name[2])))
			continue;
		count_entry(w, l->fd, e->d_name);
	}
	return false;
}

bool disk_at_start(const struct disk_walk *w)
{
	return !w->depth && !w->at && !w->root_bytes && !w->partial;
}

uint64_t disk_bytes(const struct disk_walk *w)
{
	return w->n_roots ? w->partial + root_counts(&w->root[w->at], w->root_bytes) : 0;
}
