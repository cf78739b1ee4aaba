// SPDX-License-Identifier: Apache-2.0
#include "sandbox/disk.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

void disk_init(struct disk_walk *w)
{
	*w = (struct disk_walk){ 0 };
}

static void close_stack(struct disk_walk *w)
{
	while (w->depth)
		(void)closedir(w->stack[--w->depth]);
}

void disk_done(struct disk_walk *w)
{
	close_stack(w);
	for (unsigned i = 0; i < w->n_roots; i++)
		fd_close(&w->root[i].fd);
	w->n_roots = 0;
	inode_set_done(&w->links);
}

int disk_add(struct disk_walk *w, int fd, bool growth, struct err *err)
{
	cleanup_close int own = fd;
	struct stat st;

	if (w->n_roots == DISK_ROOTS_MAX)
		return err_set_id(err, ERRID_SANDBOX_LIMIT,
				  "disk: more than %d writable trees cannot be supervised",
				  DISK_ROOTS_MAX);
	if (fstat(own, &st) < 0)
		return err_sys(err, "stat a writable tree");
	w->root[w->n_roots++] = (struct disk_root){ .fd = TAKE_FD(own),
						    .dev = st.st_dev,
						    .growth = growth };
	return 0;
}

/*
 * A directory that its owner closed to itself (chmod 000) still counts. With
 * CAP_DAC_READ_SEARCH it just opens; without, the owner bits are lent to it
 * for the moment of opening.
 */
static DIR *open_dir(int parent, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);
	DIR *d;

	if (fd < 0 && errno == EACCES) {
		cleanup_close int path = openat(parent, name, (flags & ~O_RDONLY) | O_PATH);
		struct stat st;

		if (path < 0 || fstat(path, &st) < 0)
			return NULL;
		if (syscall(SYS_fchmodat2, path, "", (st.st_mode & 07777) | 0500,
			    AT_EMPTY_PATH) == 0) {
			fd = openat(path, ".", flags);
			(void)!syscall(SYS_fchmodat2, path, "", st.st_mode & 07777, AT_EMPTY_PATH);
		}
	}
	if (fd < 0)
		return NULL;
	d = fdopendir(fd);
	if (!d)
		fd_close(&fd);
	return d;
}

static void push(struct disk_walk *w, DIR *d)
{
	if (w->depth == DISK_DEPTH_MAX) {
		w->too_deep = true;
		(void)closedir(d);
		return;
	}
	w->stack[w->depth++] = d;
}

static void count_entry(struct disk_walk *w, DIR *d, const char *name)
{
	struct stat st;

	if (fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (st.st_dev != w->root[w->at].dev)
		return;
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1 &&
	    !inode_set_add(&w->links, st.st_dev, st.st_ino))
		return;
	w->root_bytes += (uint64_t)st.st_blocks * 512 + DISK_ENTRY_BYTES;
	if (S_ISDIR(st.st_mode)) {
		DIR *child = open_dir(dirfd(d), name);

		if (child)
			push(w, child);
	}
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
	w->total = w->partial;
	w->partial = 0;
	w->at = 0;
	inode_set_reset(&w->links);
	return true;
}

bool disk_step(struct disk_walk *w, unsigned max_entries)
{
	if (!w->n_roots)
		return true;
	for (unsigned n = 0; n < max_entries; n++) {
		struct dirent *e;
		DIR *d;

		if (!w->depth) {
			d = open_dir(w->root[w->at].fd, ".");
			if (d)
				push(w, d);
			else if (next_root(w))
				return true;
			continue;
		}
		d = w->stack[w->depth - 1];
		e = readdir(d);
		if (!e) {
			(void)closedir(d);
			w->depth--;
			if (!w->depth && next_root(w))
				return true;
			continue;
		}
		if (e->d_name[0] == '.' &&
		    (!e->d_name[1] || (e->d_name[1] == '.' && !e->d_name[2])))
			continue;
		count_entry(w, d, e->d_name);
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
