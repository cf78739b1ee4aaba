/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * From a path that a job named to a descriptor that the keeper may act on (grade floor).
 *
 * The keeper never looks at anything outside of the job's writable trees, not even to find
 * out that it is outside: such a look would tell the job what exists, could wake an
 * automount, or hang on a dead network file system. So an absolute path must lead to the
 * name of a tree by its text, and from there the kernel resolves beneath the tree's
 * descriptor, within its mount, through no magic link. Where that ends because a symlink
 * or ".." leaves the directory, the path is walked one name at a time, and what leads out
 * of the tree starts again as an absolute path. The job's own descriptors and working
 * directory are taken from /proc, whatever /proc name it used for them.
 *
 * None of this is the wall; the judgement is: the one descriptor that comes out must, by
 * what the kernel says of it then, lie at or below a tree's descriptor and on its mount.
 * A wrong turn before it ends in EPERM or in another file that the job may change anyway.
 * What is hard-linked into a tree is inside: Landlock lets no job make such a link.
 */
#include "sandbox/keeper/notify.h"

#include "common/cleanup.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The keeper has one thread, and nothing here calls itself: large buffers are static, since
 * on the stack they would be cleared each time (-ftrivial-auto-var-init). */
#define LINKS_MAX 40
#define RACES_MAX 4
/* Names walked one by one. A job that wants more of the keeper's time gets ELOOP. */
#define STEPS_MAX 1024
#define TEXT_MAX ((size_t)2 * PATH_MAX)
#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

/* One resolution; text is what is still to be walked. */
struct walk {
	struct notify *n;
	const struct seccomp_notif *req;
	bool follow;
	unsigned links;
	int dir; /* where text starts, when it is relative */
	char *text;
};

static char walk_text[TEXT_MAX];

static const char *skip_name(const char *p)
{
	while (*p && *p != '/')
		p++;
	return p;
}

static bool is_name(const char *p, const char *name)
{
	size_t len = (size_t)(skip_name(p) - p);

	return len == strlen(name) && memcmp(p, name, len) == 0;
}

const char *notify_path_strip(const char *path, const char *top)
{
	static char at[PATH_MAX];
	size_t len = 0;

	if (path[0] != '/')
		return NULL;
	at[0] = '\0';
	for (;;) {
		size_t name;

		while (*path == '/')
			path++;
		if (str_eq(at, top))
			return *path ? path : ".";
		if (!*path)
			return NULL;
		name = (size_t)(skip_name(path) - path);
		if (is_name(path, "..")) {
			while (len && at[--len] != '/')
				;
			at[len] = '\0';
		} else if (!is_name(path, ".")) {
			if (len + name + 2 > sizeof(at))
				return NULL;
			at[len++] = '/';
			memcpy(at + len, path, name);
			len += name;
			at[len] = '\0';
		}
		path += name;
	}
}

/* ---- judging ---------------------------------------------------------------------- */

/* Where an open file is now, as the kernel has it. */
static int path_of(struct notify *n, int fd, char *out, size_t size)
{
	char link[16];
	ssize_t len;

	if (n->own_fds < 0)
		n->own_fds =
			openat(n->proc_fd, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (n->own_fds < 0)
		return -EBADF;
	(void)snprintf(link, sizeof(link), "%d", fd);
	len = readlinkat(n->own_fds, link, out, size - 1);
	if (len < 0)
		return -errno;
	if ((size_t)len >= size - 1)
		return -ENAMETOOLONG;
	out[len] = '\0';
	return 0;
}

int notify_mount_of(int fd, uint64_t *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0)
		return -errno;
	if (!(x.stx_mask & STATX_MNT_ID))
		return -ENODATA;
	*ret = x.stx_mnt_id;
	return 0;
}

static bool is_below_a_tree(struct notify *n, int fd, uint64_t mount)
{
	static char path[PATH_MAX], top[PATH_MAX];

	if (path_of(n, fd, path, sizeof(path)) < 0 || path[0] != '/')
		return false;
	for (size_t i = 0; i < n->n_trees; i++)
		if (n->tree[i].mount == mount &&
		    path_of(n, n->tree[i].fd, top, sizeof(top)) == 0 && top[0] == '/' &&
		    paths_is_below(path, top))
			return true;
	return false;
}

bool notify_is_inside(struct notify *n, int fd)
{
	uint64_t mount = 0;

	if (notify_mount_of(fd, &mount) < 0)
		return false;
	for (size_t i = 0; i < n->n_trees; i++)
		if (n->tree[i].mount == mount)
			return is_below_a_tree(n, fd, mount);
	return false;
}

/* ---- walking ---------------------------------------------------------------------- */

static int set_text(struct walk *w, const char *a, const char *b, const char *c)
{
	static char next[TEXT_MAX];

	if (str_fmt(next, sizeof(next), "%s%s%s", a, b, c) < 0)
		return -ENAMETOOLONG;
	memcpy(w->text, next, strlen(next) + 1);
	return 0;
}

static int take_dir(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	fd_close(&w->dir);
	w->dir = fd;
	return 0;
}

static int take_own(struct walk *w, int fd)
{
	int dir = -1, r = notify_take_fd(w->n, w->req, fd, &dir);

	if (r < 0 && (r != -EBADF || fd == AT_FDCWD))
		r = notify_open_fd(w->n, w->req, fd, &dir);
	if (r == 0)
		r = take_dir(w, dir);
	return r;
}

/* "N" or "N/rest" -> N; the rest is kept. -1: not a number. */
static int take_number(const char **p)
{
	const char *end = skip_name(*p);
	uint64_t v;
	char text[16];

	if (str_fmt(text, sizeof(text), "%.*s", (int)(end - *p), *p) < 0 ||
	    parse_u64(text, 0, INT_MAX, &v, NULL) < 0)
		return -1;
	*p = end;
	return (int)v;
}

/* An absolute text becomes a tree's descriptor and a relative one; the innermost tree. */
static int take_tree(struct walk *w)
{
	const struct notify_tree *found = NULL;
	const char *best = NULL;
	char top[PATH_MAX];
	int r;

	for (size_t i = 0; i < w->n->n_trees; i++) {
		const struct notify_tree *t = &w->n->tree[i];
		const char *rest = notify_path_strip(w->text, t->name);

		if (!rest && path_of(w->n, t->fd, top, sizeof(top)) == 0)
			rest = notify_path_strip(w->text, top);
		if (rest && (!best || strlen(rest) < strlen(best))) {
			best = rest;
			found = t;
		}
	}
	if (!best)
		return NOTIFY_OUTSIDE;
	r = take_dir(w, fcntl(found->fd, F_DUPFD_CLOEXEC, 3));
	return r < 0 ? r : set_text(w, str_eq(best, ".") ? "" : best, "", "");
}

/* Most calls start from one directory: the last one is remembered. Where it is now does not
 * matter, since this only says where to begin; what comes out is judged anew. */
static bool is_known_dir(const struct walk *w, const struct stat *st)
{
	static dev_t dev;
	static ino_t ino;

	if (ino && st->st_dev == dev && st->st_ino == ino)
		return true;
	if (!notify_is_inside(w->n, w->dir))
		return false;
	dev = st->st_dev;
	ino = st->st_ino;
	return true;
}

/* path from w->dir, a directory of the job's, which may lie above the trees. */
static int take_below(struct walk *w, const char *path)
{
	static char here[PATH_MAX];
	struct stat st;
	int r;

	if (fstat(w->dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (is_known_dir(w, &st))
		return set_text(w, path, "", "");
	r = path_of(w->n, w->dir, here, sizeof(here));
	if (r == 0)
		r = set_text(w, here, "/", path);
	return r < 0 ? r : take_tree(w);
}

/* "/proc/self/fd/7/x" -> "7/x", "/proc/self/cwd/x" -> "x"; NULL: another name. */
static const char *after_proc(const struct walk *w, bool *ret_cwd)
{
	char own[32];
	const char *const procs[] = {"/proc/self", "/proc/thread-self", own};

	if (!notify_path_strip(w->text, "/proc"))
		return NULL;
	(void)snprintf(own, sizeof(own), "/proc/%d",
		       notify_tgid(w->n, (pid_t)w->req->pid));
	for (size_t i = 0; i < ARRAY_SIZE(procs); i++) {
		const char *rest = notify_path_strip(w->text, procs[i]);

		if (!rest)
			continue;
		*ret_cwd = is_name(rest, "cwd");
		if (!*ret_cwd && !is_name(rest, "fd"))
			return NULL;
		for (rest = skip_name(rest); *rest == '/'; rest++)
			;
		return rest;
	}
	return NULL;
}

/*
 * Names in /proc and /dev for what the job has open: 1 when it was one (w->dir is it,
 * w->text what follows), 0 when not. Only its own: others' descriptors are not taken.
 */
static int take_magic(struct walk *w)
{
	static const char *const std[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	const char *rest = notify_path_strip(w->text, "/dev/fd");
	bool cwd = false;
	int fd = -1, r;

	for (int i = 0; i < 3 && !rest; i++) {
		rest = notify_path_strip(w->text, std[i]);
		if (rest) {
			fd = i;
			rest = str_eq(rest, ".") ? "" : rest;
		}
	}
	if (!rest)
		rest = after_proc(w, &cwd);
	if (!rest)
		return 0;
	if (!cwd && fd < 0)
		fd = take_number(&rest);
	if ((!cwd && fd < 0) || (!*rest && !w->follow))
		return NOTIFY_OUTSIDE; /* the link itself, or another of the kernel's */
	while (*rest == '/')
		rest++;
	r = take_own(w, cwd ? AT_FDCWD : fd);
	if (r == 0) /* rest points into w->text: nothing follows, or it is copied */
		r = *rest ? take_below(w, rest) : set_text(w, "", "", "");
	return r < 0 ? r : 1;
}

static int take_absolute(struct walk *w)
{
	int r = take_magic(w);

	if (r != 0)
		return r < 0 ? r : 0;
	return take_tree(w);
}

static int open_beneath(int dir, const char *path, bool follow)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC |
					(uint64_t)(follow ? 0 : O_NOFOLLOW),
			       .resolve = BENEATH};
	int fd = -1;

	for (int i = 0; i < RACES_MAX && fd < 0; i++) {
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	return fd;
}

/* ".." of a directory inside a tree: its parent, or, above the tree, a text again. */
static int step_up(struct walk *w, const char *rest)
{
	char here[PATH_MAX];
	char *slash;
	int r = path_of(w->n, w->dir, here, sizeof(here));

	slash = r == 0 ? strrchr(here, '/') : NULL;
	if (!slash)
		return r < 0 ? r : NOTIFY_OUTSIDE;
	*slash = '\0';
	r = set_text(w, *here ? here : "/", "/", rest);
	return r < 0 ? r : take_absolute(w);
}

/* A symlink (fd) in the middle, or at the end of a path that follows. */
static int step_link(struct walk *w, int fd, bool slash, const char *rest)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(fd, "", target, sizeof(target) - 1);
	int r;

	if (len < 0)
		return -errno;
	target[len] = '\0';
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	r = set_text(w, target, slash ? "/" : "", rest);
	if (r == 0 && w->text[0] == '/')
		r = take_absolute(w);
	return r;
}

/* One name. 1: *ret is the object; 0: go on. */
static int step(struct walk *w, int *ret)
{
	char name[NAME_MAX + 1], rest[TEXT_MAX];
	const char *end = skip_name(w->text);
	bool last, slash = *end == '/';
	cleanup_close int fd = -1;
	struct stat st;
	int r;

	if (str_fmt(name, sizeof(name), "%.*s", (int)(end - w->text), w->text) < 0)
		return -ENAMETOOLONG;
	while (*end == '/')
		end++;
	memcpy(rest, end, strlen(end) + 1);
	if (str_eq(name, "..")) {
		r = step_up(w, rest);
		return r < 0 ? r : 0;
	}
	last = !*rest;
	fd = open_beneath(w->dir, *name ? name : ".", false);
	if (fd < 0)
		return errno == EXDEV ? NOTIFY_OUTSIDE : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode) && (!last || slash || w->follow))
		return step_link(w, fd, slash, rest);
	if (last && slash && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (last) {
		*ret = TAKE_FD(fd);
		return 1;
	}
	r = set_text(w, rest, "", "");
	return r < 0 ? r : take_dir(w, TAKE_FD(fd));
}

static int walk(struct walk *w, int *ret)
{
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		int r;

		if (i == 0 && w->text[0]) {
			*ret = open_beneath(w->dir, w->text, w->follow);
			if (*ret >= 0)
				return 0;
			if (errno != EXDEV && errno != EAGAIN)
				return -errno;
		}
		if (!w->text[0]) {
			*ret = TAKE_FD(w->dir);
			return 0;
		}
		r = step(w, ret);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return -ELOOP;
}

int notify_resolve(struct notify *n, const struct seccomp_notif *req, int dirfd,
		   const char *path, unsigned how, int *ret)
{
	struct walk w = {.n = n,
			 .req = req,
			 .dir = -1,
			 .follow = (how & NOTIFY_FOLLOW) != 0,
			 .text = walk_text};
	cleanup_close int fd = -1;
	int r;

	walk_text[0] = '\0';
	if (!*path && !(how & NOTIFY_EMPTY))
		return -ENOENT;
	if (*path == '/')
		r = set_text(&w, path, "", "");
	else
		r = take_own(&w, dirfd);
	if (r == 0 && *path && *path != '/')
		r = take_below(&w, path);
	if (r == 0 && *path == '/')
		r = take_absolute(&w);
	if (r == 0)
		r = walk(&w, &fd);
	fd_close(&w.dir);
	if (r < 0)
		return r;
	if (!notify_is_inside(n, fd))
		return NOTIFY_OUTSIDE;
	*ret = TAKE_FD(fd);
	return 0;
}
