/* SPDX-License-Identifier: Apache-2.0 */
#include "tomb/harvest.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/net/sha256.h"
#include "common/str.h"
#include "tomb/glob.h"
#include "tomb/harvest_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_ENTRIES 256
#define STEP_BYTES ((size_t)8 << 20)
#define COPY_BYTES ((size_t)256 << 10)
/* A file this large with hardly a block behind it is a trap for whoever copies it. */
#define SPARSE_FLOOR_BYTES ((uint64_t)64 << 20)
#define SPARSE_RATIO 16

const struct harvest_caps harvest_caps_default = {
	.files = ARTIFACTS_MAX,
	.file_bytes = (uint64_t)2 << 30,
	.total_bytes = (uint64_t)4 << 30,
	.walked = 200000,
};

struct harvest_frame {
	DIR *dir;
	size_t path_len; /* of the directory's own path in walk->path */
};

/* One file being copied. */
struct harvest_copy {
	int from, to; /* from -1: none */
	struct sha256 *hash;
	uint64_t left, copied;
	unsigned n;
	const char *hazard;
};

struct harvest_walk {
	int work_fd, kept_fd, held_fd;
	char *const *globs;
	size_t n_globs;
	struct harvest_caps caps;
	struct harvest_frame frame[HARVEST_DEPTH_MAX + 1];
	unsigned depth; /* frames in use */
	char path[HARVEST_PATH_MAX + 256 + 2];
	struct harvest_copy copy;
	unsigned files, walked;
	uint64_t total;
	char *block;
};

static void list_add(struct harvest_list *l, const struct harvest_item *item)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->item = xreallocarray(l->item, l->cap, sizeof(*l->item));
	}
	l->item[l->n] = *item;
	l->item[l->n++].path = xstrdup(item->path);
}

static void refuse(struct harvest *h, const char *why)
{
	struct harvest_item item = {.path = h->walk->path, .why = why};

	h->refused_total++;
	if (h->refused.n < HARVEST_LISTED_MAX)
		list_add(&h->refused, &item);
}

static bool is_wanted(const struct harvest_walk *w)
{
	for (size_t i = 0; i < w->n_globs; i++)
		if (glob_match(w->globs[i], w->path))
			return true;
	return false;
}

static void copy_reset(struct harvest_copy *c)
{
	fd_close(&c->from);
	fd_close(&c->to);
	sha256_free(c->hash);
	c->hash = NULL;
}

/* The one open of a file that the job made. NULL, or why it is refused. */
static const char *open_file(int dirfd, const char *name, const struct harvest_caps *caps,
			     int *ret_fd, struct stat *st)
{
	struct err err = ERR_INIT;

	/* Not blocked by a FIFO, not diverted by a link, no terminal acquired. */
	*ret_fd = fs_open_beneath(dirfd, name,
				  O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0, &err);
	if (*ret_fd < 0)
		return err.sys == ELOOP	   ? "symlink"
		       : err.sys == EXDEV  ? "mount"
		       : err.sys == EACCES ? "unreadable"
		       : err.sys == ENXIO  ? "socket"
					   : "cannot be opened";
	if (fstat(*ret_fd, st) < 0)
		return "cannot be opened";
	if (S_ISFIFO(st->st_mode))
		return "fifo";
	if (!S_ISREG(st->st_mode))
		return "not a regular file";
	if (st->st_nlink != 1)
		return "hard link";
	if ((uint64_t)st->st_size > caps->file_bytes)
		return "too large";
	if ((uint64_t)st->st_size >= SPARSE_FLOOR_BYTES &&
	    (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size / SPARSE_RATIO)
		return "sparse";
	return NULL;
}

static int take_file(struct harvest *h, int dirfd, const char *name, struct err *err)
{
	struct harvest_walk *w = h->walk;
	struct harvest_copy *c = &w->copy;
	cleanup_close int fd = -1;
	struct stat st;
	char copy_name[16];
	const char *why = open_file(dirfd, name, &w->caps, &fd, &st);

	if (!why && w->files >= w->caps.files)
		why = "too many artifacts";
	if (!why && (uint64_t)st.st_size > w->caps.total_bytes - w->total)
		why = "artifacts too large together";
	if (why) {
		refuse(h, why);
		return 0;
	}
	c->n = ++w->files;
	c->hazard = harvest_name_hazard(w->path);
	(void)snprintf(copy_name, sizeof(copy_name), "%u", c->n);
	c->to = fs_open_beneath(c->hazard ? w->held_fd : w->kept_fd, copy_name,
				O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (c->to < 0)
		return err_wrap(err, "copy an artifact");
	c->from = TAKE_FD(fd);
	c->hash = sha256_new();
	c->left = (uint64_t)st.st_size;
	c->copied = 0;
	return 0;
}

static void copy_finish(struct harvest *h)
{
	struct harvest_copy *c = &h->walk->copy;
	struct harvest_item item = {.path = h->walk->path, .size = c->copied, .n = c->n};

	sha256_hex(c->hash, item.sha256);
	h->walk->total += c->copied;
	if (!c->hazard) {
		list_add(&h->kept, &item);
	} else {
		item.why = c->hazard;
		h->held_total++;
		if (h->held.n < HARVEST_LISTED_MAX)
			list_add(&h->held, &item);
	}
	copy_reset(c);
	h->walk->path[h->walk->frame[h->walk->depth - 1].path_len] = '\0';
}

/* Some more of the file; nobody writes to it any more, but its size is not believed. */
static int copy_step(struct harvest *h, struct err *err)
{
	struct harvest_copy *c = &h->walk->copy;

	for (size_t done = 0; done < STEP_BYTES;) {
		size_t want = c->left < COPY_BYTES ? (size_t)c->left : COPY_BYTES;
		ssize_t n = want ? read(c->from, h->walk->block, want) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read an artifact");
		if (n == 0) {
			copy_finish(h);
			return 0;
		}
		if (fs_write_all(c->to, h->walk->block, (size_t)n, err) < 0)
			return err_wrap(err, "copy an artifact");
		sha256_add(c->hash, h->walk->block, (size_t)n);
		c->left -= (uint64_t)n;
		c->copied += (uint64_t)n;
		done += (size_t)n;
	}
	return 0;
}

static int enter(struct harvest *h, int dirfd, const char *name, size_t path_len)
{
	struct harvest_walk *w = h->walk;
	struct err err = ERR_INIT;
	cleanup_close int fd = fs_open_beneath(
		dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &err);
	DIR *dir;

	if (fd < 0 || !(dir = fdopendir(fd))) {
		refuse(h, err.sys == EXDEV ? "mount" : "unreadable directory");
		return 0;
	}
	(void)TAKE_FD(fd);
	w->frame[w->depth].dir = dir;
	w->frame[w->depth++].path_len = path_len;
	return 1;
}

/* Append "/name" to the directory's path; false (with the path restored) when the name
 * or the whole is not one that may be used outside. */
static bool path_push(struct harvest *h, size_t at, const char *name, size_t *ret_len)
{
	struct harvest_walk *w = h->walk;
	size_t n = strlen(name), len = at;
	struct err err = ERR_INIT;

	if (len)
		w->path[len++] = '/';
	/* A component has at most 255 bytes: the buffer has room for one beyond the cap.
	 */
	if (n > 255)
		n = 255;
	memcpy(w->path + len, name, n);
	len += n;
	w->path[len] = '\0';
	*ret_len = len;
	return len <= HARVEST_PATH_MAX && path_check_relative(w->path, len, &err) == 0;
}

static int take_entry(struct harvest *h, const struct dirent *de, struct err *err)
{
	struct harvest_walk *w = h->walk;
	struct harvest_frame *f = &w->frame[w->depth - 1];
	size_t at = f->path_len, len;
	bool usable = path_push(h, at, de->d_name, &len);
	struct stat st;
	int r = 0;

	if (fstatat(dirfd(f->dir), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		refuse(h, "cannot be opened");
	} else if (!usable) {
		refuse(h, len > HARVEST_PATH_MAX ? "path too long" : "name");
	} else if (S_ISDIR(st.st_mode)) {
		if (w->depth > HARVEST_DEPTH_MAX)
			refuse(h, "too deep");
		else if (enter(h, dirfd(f->dir), de->d_name, len))
			return 0; /* the path stays: it is the directory's now */
	} else if (is_wanted(w)) {
		r = take_file(h, dirfd(f->dir), de->d_name, err);
		if (r == 0 && w->copy.from >= 0)
			return 0; /* the path stays until it is copied */
	}
	w->path[at] = '\0';
	return r;
}

static int compare_items(const void *a, const void *b)
{
	const struct harvest_item *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void walk_free(struct harvest *h)
{
	struct harvest_walk *w = h->walk;

	if (!w)
		return;
	copy_reset(&w->copy);
	while (w->depth)
		(void)closedir(w->frame[--w->depth].dir);
	free(w->block);
	free(w);
	h->walk = NULL;
}

int harvest_begin(struct harvest *h, int work_fd, int kept_fd, int held_fd,
		  char *const *globs, size_t n_globs, const struct harvest_caps *caps,
		  struct err *err)
{
	struct harvest_walk *w = xnew(struct harvest_walk);

	*h = (struct harvest){.walk = w};
	w->work_fd = work_fd;
	w->kept_fd = kept_fd;
	w->held_fd = held_fd;
	w->globs = globs;
	w->n_globs = n_globs;
	w->caps = *caps;
	w->copy.from = w->copy.to = -1;
	w->block = xmalloc(COPY_BYTES);
	if (n_globs && !enter(h, work_fd, ".", 0)) {
		harvest_done(h);
		return err_set(err, ERR_SYS, "the workspace cannot be listed");
	}
	return 0;
}

int harvest_step(struct harvest *h, struct err *err)
{
	struct harvest_walk *w = h->walk;

	if (!w)
		return 0;
	for (unsigned i = 0; i < STEP_ENTRIES && w->depth; i++) {
		struct harvest_frame *f = &w->frame[w->depth - 1];
		const struct dirent *de;

		if (w->copy.from >= 0) {
			if (copy_step(h, err) < 0)
				return -1;
			return 1;
		}
		errno = 0;
		de = readdir(f->dir);
		if (!de) {
			(void)closedir(f->dir);
			w->depth--;
			if (w->depth)
				w->path[w->frame[w->depth - 1].path_len] = '\0';
			continue;
		}
		if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
			continue;
		if (++w->walked > w->caps.walked) {
			refuse(h, "too many entries: the rest was not looked at");
			break;
		}
		if (take_entry(h, de, err) < 0)
			return -1;
	}
	if (w->copy.from >= 0 || (w->depth && w->walked <= w->caps.walked))
		return 1;
	walk_free(h);
	if (h->kept.n)
		qsort(h->kept.item, h->kept.n, sizeof(*h->kept.item), compare_items);
	if (h->refused.n)
		qsort(h->refused.item, h->refused.n, sizeof(*h->refused.item),
		      compare_items);
	if (h->held.n)
		qsort(h->held.item, h->held.n, sizeof(*h->held.item), compare_items);
	return 0;
}

void harvest_reject(struct harvest *h, size_t i, const char *why)
{
	struct harvest_item item = h->kept.item[i];

	item.why = why;
	h->refused_total++;
	if (h->refused.n < HARVEST_LISTED_MAX)
		list_add(&h->refused, &item);
	free(item.path);
	memmove(&h->kept.item[i], &h->kept.item[i + 1],
		(h->kept.n - i - 1) * sizeof(*h->kept.item));
	h->kept.n--;
}

static void list_free(struct harvest_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->item[i].path);
	free(l->item);
	*l = (struct harvest_list){.n = 0};
}

void harvest_done(struct harvest *h)
{
	walk_free(h);
	list_free(&h->kept);
	list_free(&h->refused);
	list_free(&h->held);
}
