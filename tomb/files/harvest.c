/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the file worker.
 * See harvest.h.
 */
#include "tomb/files/harvest.h"

#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/text/glob.h"
#include "common/text/hazard.h"

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
	.held_alike = 16,
	.held_bytes = (uint64_t)64 << 20,
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
	const char *hazard, *class;
};

struct harvest_walk {
	int work_fd, kept_fd, held_fd;
	const char *const *globs;
	size_t n_globs;
	struct harvest_caps caps;
	struct harvest_frame frame[HARVEST_DEPTH_MAX + 1];
	unsigned depth; /* frames in use */
	char path[HARVEST_NAMED_MAX];
	struct harvest_copy copy;
	unsigned files, walked, copies;
	uint64_t total, held_bytes;
	char *block;
};

/* A new one, with copies of these; why or class may be NULL. */
static struct harvest_item *list_add(struct harvest_list *l, const char *path,
				     const char *why, const char *class)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->item = xreallocarray(l->item, l->cap, sizeof(*l->item));
	}
	l->item[l->n] = (struct harvest_item){
		.path = xstrdup(path),
		.why = why ? xstrdup(why) : NULL,
		.class = class ? xstrdup(class) : NULL,
	};
	return &l->item[l->n++];
}

static void item_done(struct harvest_item *item)
{
	free(item->path);
	free(item->why);
	free(item->class);
}

static void refuse_as(struct harvest *h, const char *path, const char *why)
{
	h->refused_total++;
	if (h->refused.n < HARVEST_LISTED_MAX)
		(void)list_add(&h->refused, path, why, NULL);
}

static void refuse(struct harvest *h, const char *why)
{
	refuse_as(h, h->walk->path, why);
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

/* What is not an ordinary file of one name and a sane size is not even opened: to open a
 * FIFO or a device is to act on it. NULL, or why it is refused. */
static const char *judge(const struct stat *st, const struct harvest_caps *caps)
{
	if (S_ISLNK(st->st_mode))
		return "symlink";
	if (S_ISFIFO(st->st_mode))
		return "fifo";
	if (S_ISSOCK(st->st_mode))
		return "socket";
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		return "device";
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

/* The one open of a file that the job made; st: what stood there a moment ago. */
static const char *open_file(int dirfd, const char *name, const struct harvest_caps *caps,
			     const struct stat *seen, int *ret_fd, struct stat *st)
{
	struct err err = ERR_INIT;

	/* Not blocked by a FIFO, not diverted by a link, no terminal acquired. */
	*ret_fd = fs_open_beneath(dirfd, name,
				  O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0, &err);
	if (*ret_fd < 0)
		return err.sys == ELOOP	   ? "symlink"
		       : err.sys == EXDEV  ? "mount"
		       : err.sys == EACCES ? "unreadable"
					   : "cannot be opened";
	if (fstat(*ret_fd, st) < 0)
		return "cannot be opened";
	if (st->st_dev != seen->st_dev || st->st_ino != seen->st_ino)
		return "replaced while it was looked at";
	return judge(st, caps);
}

/* How many copies lie in quarantine for this reason: a constant, so the address will do. */
static unsigned held_alike(const struct harvest *h, const char *why)
{
	unsigned n = 0;

	for (size_t i = 0; i < h->held.n; i++)
		n += str_eq(h->held.item[i].why, why);
	return n;
}

/* Room for a copy? NULL, or why not. What is put aside has a room of its own: a .git of
 * ten thousand objects takes no place from what was asked for. */
static const char *no_room(const struct harvest *h, const struct stat *st,
			   const char *hazard)
{
	const struct harvest_walk *w = h->walk;

	if (hazard)
		return (uint64_t)st->st_size > w->caps.held_bytes - w->held_bytes
			       ? "would be quarantined, and is too large for that"
			       : NULL;
	if (w->files >= w->caps.files)
		return "too many artifacts";
	if ((uint64_t)st->st_size > w->caps.total_bytes - w->total)
		return "artifacts too large together";
	return NULL;
}

static int take_file(struct harvest *h, int dirfd, const char *name,
		     const struct stat *seen, struct err *err)
{
	struct harvest_walk *w = h->walk;
	struct harvest_copy *c = &w->copy;
	cleanup_close int fd = -1;
	struct stat st;
	char copy_name[16];
	const char *hazard = hazard_of(w->path);
	const char *why = judge(seen, &w->caps);

	if (!why && hazard &&
	    (h->held.n >= HARVEST_LISTED_MAX ||
	     held_alike(h, hazard) >= w->caps.held_alike)) {
		h->held_total++; /* enough of them are there to look at */
		return 0;
	}
	if (!why)
		why = open_file(dirfd, name, &w->caps, seen, &fd, &st);
	if (!why)
		why = no_room(h, &st, hazard);
	if (why) {
		refuse(h, why);
		return 0;
	}
	if (!hazard)
		w->files++;
	c->n = ++w->copies;
	c->hazard = hazard;
	c->class = "file";
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
	struct harvest_item *item;

	if (!c->hazard) {
		h->walk->total += c->copied;
		item = list_add(&h->kept, h->walk->path, NULL, c->class);
	} else {
		h->walk->held_bytes += c->copied;
		h->held_total++;
		item = list_add(&h->held, h->walk->path, c->hazard, NULL);
	}
	item->size = c->copied;
	item->n = c->n;
	sha256_hex(c->hash, item->sha256);
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
		if (c->copied == 0)
			c->class = hazard_class(h->walk->block, (size_t)n);
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
	return len <= HARVEST_PATH_MAX && path_check_relative(w->path, len, &err) == 0 &&
	       hazard_is_plain(w->path);
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
		r = take_file(h, dirfd(f->dir), de->d_name, &st, err);
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

/* Two names that are one to a file system which does not look at case: which of the two
 * files a reader would get is not for the job to decide. Neither is delivered. */
static void refuse_collisions(struct harvest *h)
{
	size_t n = h->kept.n;
	char **key = xcalloc(n + 1, sizeof(*key));
	bool *twice = xcalloc(n + 1, sizeof(*twice));

	for (size_t i = 0; i < n; i++)
		key[i] = hazard_key(h->kept.item[i].path);
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (str_eq(key[i], key[k]))
				twice[i] = twice[k] = true;
	for (size_t i = n; i-- > 0;)
		if (twice[i])
			harvest_reject(h, i, "the same as another name but for its case");
	for (size_t i = 0; i < n; i++)
		free(key[i]);
	free(key);
	free(twice);
}

static void sort_list(struct harvest_list *l)
{
	if (l->n)
		qsort(l->item, l->n, sizeof(*l->item), compare_items);
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
		  const char *const *globs, size_t n_globs,
		  const struct harvest_caps *caps, struct err *err)
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
	refuse_collisions(h);
	sort_list(&h->kept);
	sort_list(&h->refused);
	sort_list(&h->held);
	return 0;
}

void harvest_reject(struct harvest *h, size_t i, const char *why)
{
	refuse_as(h, h->kept.item[i].path, why);
	item_done(&h->kept.item[i]);
	memmove(&h->kept.item[i], &h->kept.item[i + 1],
		(h->kept.n - i - 1) * sizeof(*h->kept.item));
	h->kept.n--;
}

static void list_free(struct harvest_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		item_done(&l->item[i]);
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
