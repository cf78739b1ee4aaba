/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See tar.h.
 */
#include "cli/base/tar.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define BLOCK 512
#define DEPTH_MAX 64
#define ENTRIES_MAX 1000000
/* what may wait at once: the headers of all directories above a file, with long names */
#define HEADERS_MAX ((DEPTH_MAX + 2) * 8192)

/* One directory that is being walked: its names, sorted. */
struct level {
	char *path; /* "" for the top */
	char **names;
	size_t n, next;
	bool owed; /* its header waits for something below it */
	int64_t mtime;
};

struct tree {
	int top;
	char *dir, *dest;
};

struct tar {
	struct tree *tree;
	size_t n_trees, at; /* the next one to be begun */
	int top;	    /* of the one that is being walked, borrowed */
	const char *dest;
	tar_want_fn *want;
	tar_skip_fn *skip;
	void *arg;
	struct level level[DEPTH_MAX + 1];
	unsigned depth;	 /* levels in use */
	struct buf head; /* headers not yet handed out */
	int file;	 /* the file whose bytes are being handed out, -1 */
	char *file_path;
	uint64_t left, pad;
	uint64_t entries;
	bool ended;
	struct tar_stats stats;
};

bool tar_link_is_inside(const char *path, const char *target)
{
	int depth = 0;

	if (!target[0] || target[0] == '/')
		return false;
	for (const char *s = path; *s; s++)
		depth += *s == '/';
	for (const char *s = target; *s;) {
		size_t n = strcspn(s, "/");

		if (n == 2 && s[0] == '.' && s[1] == '.')
			depth--;
		else if (n > 0 && !(n == 1 && s[0] == '.'))
			depth++;
		if (depth < 0)
			return false;
		s += n + (s[n] == '/');
	}
	return true;
}

/* ---- headers ---------------------------------------------------------------- */

static void octal(char *field, size_t size, uint64_t v)
{
	for (size_t i = size - 1; i-- > 0; v >>= 3)
		field[i] = (char)('0' + (v & 7));
}

/* Fields of struct posix_header, by offset. */
static void raw_header(struct buf *out, const char *name, char type, const char *link,
		       unsigned mode, uint64_t size, int64_t mtime)
{
	char h[BLOCK] = {0};
	unsigned sum = 0;
	size_t n = strnlen(name, 100), l = strnlen(link, 100);

	memcpy(h, name, n);
	octal(h + 100, 8, mode);
	octal(h + 108, 8, 0);
	octal(h + 116, 8, 0);
	octal(h + 124, 12, size);
	octal(h + 136, 12, mtime > 0 ? (uint64_t)mtime & 077777777777u : 0);
	memset(h + 148, ' ', 8);
	h[156] = type;
	memcpy(h + 157, link, l);
	memcpy(h + 257, "ustar\00000", 8);
	octal(h + 329, 8, 0);
	octal(h + 337, 8, 0);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)h[i];
	octal(h + 148, 7, sum);
	h[155] = ' ';
	buf_add(out, h, BLOCK);
}

static void pad_block(struct buf *out, size_t len)
{
	static const char zeros[BLOCK];

	if (len % BLOCK)
		buf_add(out, zeros, BLOCK - len % BLOCK);
}

/* "LEN key=value\n", where LEN counts itself. */
static void pax_record(struct buf *out, const char *key, const char *value)
{
	size_t body = strlen(key) + strlen(value) + 3, digits = 1;

	for (;;) {
		int n = snprintf(NULL, 0, "%zu", body + digits);

		if ((size_t)n == digits)
			break;
		digits = (size_t)n;
	}
	buf_addf(out, "%zu %s=%s\n", body + digits, key, value);
}

static bool needs_pax(const char *s)
{
	if (strlen(s) > 100)
		return true;
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return true;
	return false;
}

static void header(struct tar *t, const char *name, char type, const char *link,
		   unsigned mode, uint64_t size, int64_t mtime)
{
	if (needs_pax(name) || needs_pax(link)) {
		struct buf pax;

		buf_init(&pax, 2 * PATH_MAX + 64);
		if (needs_pax(name))
			pax_record(&pax, "path", name);
		if (needs_pax(link))
			pax_record(&pax, "linkpath", link);
		raw_header(&t->head, "././@PaxHeader", 'x', "", 0644, pax.len, mtime);
		buf_add(&t->head, pax.data, pax.len);
		pad_block(&t->head, pax.len);
		buf_done(&pax);
	}
	raw_header(&t->head, name, type, link, mode, size, mtime);
}

/* ---- walking ---------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void level_done(struct level *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l->names);
	free(l->path);
	*l = (struct level){0};
}

/* What could not be opened: an answer of the file system is no defect of ours. */
static int unreadable(const char *path, struct err *err)
{
	struct err why = *err;

	return err_set_id(err, ERRID_SPEC_TREE, "%s: %s", path, why.msg);
}

static int push(struct tar *t, const char *path, struct err *err)
{
	struct level *l = &t->level[t->depth];
	const struct dirent *e;
	int fd;

	if (t->depth > DEPTH_MAX)
		return err_set_id(err, ERRID_SPEC_PATH, "%s: deeper than %d", path,
				  DEPTH_MAX);
	fd = path[0] ? fs_open_beneath(t->top, path, O_RDONLY | O_DIRECTORY, 0, err)
		     : openat(t->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return path[0] ? unreadable(path, err)
			       : err_sys_id(err, ERRID_SPEC_TREE, "open it");
	cleanup_dir DIR *d = fdopendir(fd);

	if (!d) {
		(void)close(fd);
		return err_sys(err, "fdopendir");
	}
	t->depth++;
	*l = (struct level){.path = xstrdup(path)};
	while ((errno = 0, e = readdir(d))) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (++t->entries > ENTRIES_MAX)
			return err_set_id(err, ERRID_SPEC_SIZE, "more than %d entries",
					  ENTRIES_MAX);
		l->names = xreallocarray(l->names, l->n + 1, sizeof(*l->names));
		l->names[l->n++] = xstrdup(e->d_name);
	}
	if (errno)
		return err_sys(err, "read the directory '%s'", path);
	if (l->n)
		qsort(l->names, l->n, sizeof(*l->names), by_name);
	return 0;
}

static void skip(struct tar *t, const char *path, const char *why)
{
	t->stats.skipped++;
	if (t->skip)
		t->skip(path, why, t->arg);
}

/* As the archive has it; caller frees. */
static char *name_of(const struct tar *t, const char *path)
{
	return t->dest ? xasprintf("%s/%s", t->dest, path) : xstrdup(path);
}

static void add_dir_header(struct tar *t, const char *path, int64_t mtime)
{
	cleanup_free char *inside = name_of(t, path);
	cleanup_free char *name = xasprintf("%s/", inside);

	header(t, name, '5', "", 0755, 0, mtime);
	t->stats.dirs++;
}

/* Of the directories that waited for something to be in them. */
static void pay_headers(struct tar *t)
{
	for (unsigned i = 0; i < t->depth; i++) {
		struct level *l = &t->level[i];

		if (l->owed)
			add_dir_header(t, l->path, l->mtime);
		l->owed = false;
	}
}

static int add_link(struct tar *t, const char *path, const struct stat *st,
		    struct err *err)
{
	char target[PATH_MAX];
	ssize_t n;
	cleanup_close int fd = fs_open_beneath(t->top, path, O_PATH | O_NOFOLLOW, 0, err);

	if (fd < 0)
		return err_wrap(err, "%s", path);
	n = readlinkat(fd, "", target, sizeof(target) - 1);
	if (n < 0)
		return err_sys(err, "readlink %s", path);
	target[n] = '\0';
	if (!tar_link_is_inside(path, target)) {
		skip(t, path, "a symlink that leads out");
		return 0;
	}
	if (str_has_control(target, (size_t)n) || !utf8_is_valid(target, (size_t)n))
		return err_set_id(err, ERRID_SPEC_PATH,
				  "%s: its target has control characters", path);
	cleanup_free char *name = name_of(t, path);

	pay_headers(t);
	header(t, name, '2', target, 0777, 0, st->st_mtime);
	t->stats.links++;
	return 0;
}

static int wanted(struct tar *t, const char *path, int fd, const struct stat *st,
		  enum tar_verdict *ret, struct err *err)
{
	cleanup_free char *name = name_of(t, path);
	const struct tar_entry e = {
		.tree = t->at - 1, .path = path, .name = name, .st = st, .fd = fd};

	*ret = TAR_TAKE;
	if (t->want && t->want(&e, ret, t->arg, err) < 0)
		return -1;
	if (*ret != TAR_LEAVE && path_check_relative(name, strlen(name), err) < 0)
		return err_wrap(err, "a name in the directory is not acceptable");
	return 0;
}

static int add_file(struct tar *t, const char *path, struct err *err)
{
	/* O_NONBLOCK: a FIFO that took the file's place does not stop us */
	cleanup_close int fd =
		fs_open_beneath(t->top, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, err);
	enum tar_verdict verdict;
	struct stat st;

	if (fd < 0)
		return unreadable(path, err);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_SPEC_TREE, "%s: changed while it was read",
				  path);
	if (wanted(t, path, fd, &st, &verdict, err) < 0)
		return -1;
	if (verdict != TAR_TAKE)
		return 0;
	cleanup_free char *name = name_of(t, path);

	t->file = TAKE_FD(fd);
	t->left = (uint64_t)st.st_size;
	t->pad = (BLOCK - t->left % BLOCK) % BLOCK;
	t->file_path = xstrdup(path);
	pay_headers(t);
	header(t, name, '0', "", st.st_mode & 0111 ? 0755 : 0644, t->left, st.st_mtime);
	t->stats.files++;
	t->stats.bytes += t->left;
	return 0;
}

static int add_dir(struct tar *t, const char *path, const struct stat *st,
		   enum tar_verdict verdict, struct err *err)
{
	if (verdict == TAR_TAKE) {
		pay_headers(t);
		add_dir_header(t, path, st->st_mtime);
	}
	if (push(t, path, err) < 0)
		return -1;
	t->level[t->depth - 1].owed = verdict == TAR_BELOW;
	t->level[t->depth - 1].mtime = st->st_mtime;
	return 0;
}

static int add_entry(struct tar *t, const char *path, struct err *err)
{
	cleanup_close int fd = -1;
	enum tar_verdict verdict;
	struct stat st;

	fd = fs_open_beneath(t->top, path, O_PATH | O_NOFOLLOW, 0, err);
	if (fd < 0)
		return err_wrap(err, "%s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "%s", path);
	if (S_ISREG(st.st_mode))
		return add_file(t, path, err);
	if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode)) {
		skip(t, path, "neither file, directory nor symlink");
		return 0;
	}
	if (wanted(t, path, fd, &st, &verdict, err) < 0)
		return -1;
	if (verdict == TAR_LEAVE)
		return 0;
	return S_ISLNK(st.st_mode) ? add_link(t, path, &st, err)
				   : add_dir(t, path, &st, verdict, err);
}

/* The next tree, if there is one. */
static int begin_tree(struct tar *t, struct err *err)
{
	const struct tree *tree = &t->tree[t->at];

	if (t->at == t->n_trees) {
		static const char zeros[2 * BLOCK];

		buf_add(&t->head, zeros, sizeof(zeros));
		t->ended = true;
		return 0;
	}
	t->at++;
	t->top = tree->top;
	t->dest = tree->dest;
	return push(t, "", err) < 0 ? err_wrap(err, "%s", tree->dir) : 0;
}

static int step(struct tar *t, struct err *err)
{
	struct level *l;

	while (t->depth && t->level[t->depth - 1].next == t->level[t->depth - 1].n)
		level_done(&t->level[--t->depth]);
	if (!t->depth)
		return begin_tree(t, err);
	l = &t->level[t->depth - 1];
	cleanup_free char *path = l->path[0]
					  ? xasprintf("%s/%s", l->path, l->names[l->next])
					  : xstrdup(l->names[l->next]);

	l->next++;
	return add_entry(t, path, err);
}

/* ---- reading ---------------------------------------------------------------- */

static int read_file(struct tar *t, char *out, size_t size, size_t *done, struct err *err)
{
	size_t want = t->left < size ? (size_t)t->left : size;
	ssize_t n = want ? read(t->file, out, want) : 0;

	if (n < 0)
		return err_sys(err, "read %s", t->file_path);
	if (want && n == 0)
		return err_set_id(err, ERRID_SPEC_TREE,
				  "%s: became shorter while it was read", t->file_path);
	t->left -= (uint64_t)n;
	*done = (size_t)n;
	if (!t->left) {
		static const char zeros[BLOCK];

		buf_add(&t->head, zeros, (size_t)t->pad);
		fd_close(&t->file);
		free(TAKE_PTR(t->file_path));
	}
	return 0;
}

int tar_read(void *buf, size_t size, size_t *ret_len, void *arg, struct err *err)
{
	struct tar *t = arg;
	char *out = buf;
	size_t len = 0;

	while (len < size) {
		if (t->head.len) {
			size_t n = t->head.len < size - len ? t->head.len : size - len;

			memcpy(out + len, t->head.data, n);
			buf_consume(&t->head, n);
			len += n;
		} else if (t->file >= 0) {
			size_t n = 0;

			if (read_file(t, out + len, size - len, &n, err) < 0)
				return -1;
			len += n;
		} else if (t->ended) {
			break;
		} else if (step(t, err) < 0) {
			return -1;
		}
	}
	if (!buf_ok(&t->head))
		return err_set(err, ERR_INTERNAL, "tar header");
	*ret_len = len;
	return 0;
}

/* The tree may be the work of somebody untrusted, its top too: a link there could point
 * at the user's keys. A slash behind it would follow the link. */
static int open_top(const char *dir, struct err *err)
{
	cleanup_free char *path = xstrdup(dir);
	size_t n = strlen(path);
	int fd;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		struct stat st;
		int why = errno;

		if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
			return err_set_id(err, ERRID_SPEC_TREE, "a symbolic link");
		errno = why;
		return err_sys_id(err, ERRID_SPEC_TREE, "open");
	}
	return fd;
}

struct tar *tar_new(tar_want_fn *want, tar_skip_fn *skip_fn, void *arg)
{
	struct tar *t = xnew(struct tar);

	t->file = -1;
	t->want = want;
	t->skip = skip_fn;
	t->arg = arg;
	buf_init(&t->head, HEADERS_MAX);
	return t;
}

int tar_add(struct tar *t, const char *dir, const char *dest, int *ret_top,
	    struct err *err)
{
	int top = open_top(dir, err);

	if (top < 0)
		return err_wrap(err, "%s", dir);
	t->tree = xreallocarray(t->tree, t->n_trees + 1, sizeof(*t->tree));
	t->tree[t->n_trees++] =
		(struct tree){top, xstrdup(dir), dest ? xstrdup(dest) : NULL};
	if (ret_top)
		*ret_top = top;
	return 0;
}

const struct tar_stats *tar_stats(const struct tar *t)
{
	return &t->stats;
}

void tar_close(struct tar *t)
{
	if (!t)
		return;
	while (t->depth)
		level_done(&t->level[--t->depth]);
	for (size_t i = 0; i < t->n_trees; i++) {
		fd_close(&t->tree[i].top);
		free(t->tree[i].dir);
		free(t->tree[i].dest);
	}
	free(t->tree);
	fd_close(&t->file);
	free(t->file_path);
	buf_done(&t->head);
	free(t);
}
