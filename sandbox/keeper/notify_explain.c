/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * --explain: before the kernel does what a job asked of a file or an address, the keeper
 * notes which wall will refuse. The kernel always goes on and decides by itself: what is
 * noted is never part of an answer, and a job that changes its arguments meanwhile only
 * changes what is told to its own user.
 *
 * Two things must not happen. The keeper must not hang where the job may (a dead network
 * file system): it only looks up what the kernel has cached (RESOLVE_CACHED) and reads
 * attributes that are at hand. What is not cached yet is looked at again after the job's
 * own call has been there. And it must not lay a refusal to a wall that is none: the object
 * exists, its mode would have allowed the act, and no grant covers it; in full what does
 * not exist inside is told as absent, and only where somebody who sees the outside (the
 * command line) finds it there.
 */
#include "sandbox/keeper/notify.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/keeper/grants.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif
#define PENDING_MAX 64
#define LAST_TRIES 20
#define LAST_PAUSE_USEC 500
#define GRANT_TEXT sizeof(((struct spawn_denied *)0)->grant)

/* What a call is about to do with one path. */
enum access {
	ACCESS_OPEN, /* read, write or both; may create */
	ACCESS_EXEC,
	ACCESS_CREATE, /* a name that is not there yet */
	ACCESS_REMOVE, /* one that is */
};

struct question {
	int nr, base; /* base: O_PATH of the directory that path starts from, -1 */
	pid_t pid;
	enum access access;
	unsigned need; /* GRANT_* */
	bool creates, nofollow;
	char *path;
};

struct explain {
	struct grants_table grants;
	uint64_t tmpfs[3]; /* full: the devices of the root, /tmp and /dev/shm */
	struct question pending[PENDING_MAX];
	unsigned n_pending;
};

/* ---- one path ------------------------------------------------------------------------ */

static int look_once(int base, const char *path, bool nofollow)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC |
					(uint64_t)(nofollow ? O_NOFOLLOW : 0),
			       .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
}

static uint64_t device_of(const struct statx *st)
{
	return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

static bool attributes(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		     STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID, ret) == 0;
}

static bool is_own_tmpfs(const struct explain *x, int fd)
{
	struct statx st;

	if (!attributes(fd, &st))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(x->tmpfs); i++)
		if (x->tmpfs[i] == device_of(&st))
			return true;
	return false;
}

/* One name in a directory of our own tmpfs: there a look never waits. */
static bool is_missing(int dir, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV |
					  RESOLVE_NO_MAGICLINKS};
	cleanup_close int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 && errno == ENOENT;
}

/* A tmpfs keeps no note of what it does not hold, so that a missing name is never cached:
 * is the first name that is not, in one of ours, missing? */
static bool ends_in_tmpfs(const struct explain *x, int base, const char *path)
{
	char top[PATH_MAX];
	char *slash;

	if (str_copy(top, sizeof(top), path) < 0)
		return false;
	while ((slash = strrchr(top, '/')) && slash[1]) {
		cleanup_close int fd = -1;
		char first[NAME_MAX + 1];

		if (str_copy(first, sizeof(first), slash + 1) < 0)
			return false;
		slash[slash == top] = '\0';
		fd = look_once(base, top, false);
		if (fd >= 0)
			return is_own_tmpfs(x, fd) && is_missing(fd, first);
		if (errno != EAGAIN || slash == top)
			return false;
	}
	return false;
}

static int look(const struct notify *n, int base, const char *path, bool nofollow)
{
	int fd = look_once(base, path, nofollow);

	if (fd < 0 && errno == EAGAIN && n->explain && n->grade == GRADE_FULL)
		errno = ends_in_tmpfs(n->explain, base, path) ? ENOENT : EAGAIN;
	return fd;
}

static bool real_path(const struct notify *n, int fd, char *out, size_t size)
{
	char link[32];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "self/fd/%d", fd);
	len = readlinkat(n->proc_fd, link, out, size - 1);
	if (len <= 0 || (size_t)len >= size - 1 || out[0] != '/')
		return false;
	out[len] = '\0';
	return true;
}

/* Would its mode alone let us? An access list is not looked at. */
static bool mode_allows(const struct statx *st, unsigned need)
{
	unsigned shift = st->stx_uid == geteuid() ? 6 : st->stx_gid == getegid() ? 3 : 0;
	unsigned bits = (unsigned)st->stx_mode >> shift;

	return (!(need & (GRANT_READ | GRANT_LIST)) || (bits & 4)) &&
	       (!(need & GRANT_WRITE) || (bits & 2)) &&
	       (!(need & GRANT_EXEC) || (bits & 1));
}

static void tell(struct notify *n, const struct question *q, unsigned wall, int sys,
		 unsigned missing, const char *object, const char *grant_at)
{
	unsigned act = missing & GRANT_EXEC    ? SPAWN_ACT_EXEC
		       : missing & GRANT_WRITE ? SPAWN_ACT_WRITE
					       : SPAWN_ACT_READ;
	struct seccomp_notif of = {.pid = (uint32_t)q->pid, .data.nr = q->nr};
	char grant[GRANT_TEXT];

	grants_option(&n->explain->grants, grant_at,
		      missing & GRANT_EXEC    ? GRANT_EXEC
		      : missing & GRANT_WRITE ? GRANT_WRITE
					      : GRANT_READ,
		      grant, sizeof(grant));
	if (strlen(object) >= sizeof(((struct spawn_denied *)0)->object))
		return;
	notify_record(n, &of, wall, act, sys, object, grant);
}

/* missing on something that is there. */
static void tell_missing(struct notify *n, const struct question *q, unsigned missing,
			 const char *object, const char *grant_at)
{
	/* No mount of ours is in the way of a write to /proc. */
	if (n->grade == GRADE_FLOOR || notify_path_is_below(object, "/proc"))
		tell(n, q, SPAWN_WALL_LANDLOCK, EACCES, missing, object, grant_at);
	else if (missing & GRANT_WRITE)
		tell(n, q, SPAWN_WALL_MOUNT, EROFS, missing, object, grant_at);
	else if (missing & GRANT_EXEC)
		tell(n, q, SPAWN_WALL_MOUNT, EACCES, missing, object, grant_at);
	else
		tell(n, q, SPAWN_WALL_LANDLOCK, EACCES, missing, object, grant_at);
}

/* The directory that would get or lose a name. false: look again later. */
static bool judge_parent(struct notify *n, const struct question *q)
{
	char top[PATH_MAX], object[2 * PATH_MAX], real[PATH_MAX];
	const char *name;
	struct statx st;
	cleanup_close int fd = -1;
	char *slash;

	if (str_copy(top, sizeof(top), q->path) < 0)
		return true;
	while ((slash = strrchr(top, '/')) && slash > top && !slash[1])
		*slash = '\0';
	name = slash ? slash + 1 : top;
	if (!*name || str_eq(name, ".") || str_eq(name, ".."))
		return true;
	name = q->path + (name - top);
	if (slash)
		slash[slash == top] = '\0';
	fd = look(n, q->base, slash ? top : ".", false);
	if (fd < 0)
		return errno != EAGAIN;
	if (!attributes(fd, &st) || !S_ISDIR(st.stx_mode) ||
	    !mode_allows(&st, GRANT_WRITE | GRANT_EXEC) ||
	    !real_path(n, fd, real, sizeof(real)))
		return true;
	if ((grants_on(&n->explain->grants, real) & GRANT_WRITE) ||
	    str_fmt(object, sizeof(object), "%s/%s", str_eq(real, "/") ? "" : real,
		    name) < 0)
		return true;
	tell_missing(n, q, GRANT_WRITE, object, real);
	return true;
}

static bool is_absolute_here(const struct notify *n, const struct question *q, char *out,
			     size_t size)
{
	char here[PATH_MAX];

	if (q->path[0] == '/')
		return str_copy(out, size, q->path) == 0;
	return real_path(n, q->base, here, sizeof(here)) &&
	       str_fmt(out, size, "%s/%s", str_eq(here, "/") ? "" : here, q->path) == 0;
}

static void judge_absent(struct notify *n, const struct question *q)
{
	char path[2 * PATH_MAX], grant[GRANT_TEXT];
	unsigned right = q->need & GRANT_EXEC	 ? GRANT_EXEC
			 : q->need & GRANT_WRITE ? GRANT_WRITE
						 : GRANT_READ;

	if (n->grade != GRADE_FULL || !n->tell_absent ||
	    !is_absolute_here(n, q, path, sizeof(path)))
		return;
	grants_option(&n->explain->grants, path, right, grant, sizeof(grant));
	if (grant[0])
		tell(n, q, SPAWN_WALL_ABSENT, ENOENT, right, path, path);
}

/* false: not cached, look again later. */
static bool judge_path(struct notify *n, const struct question *q)
{
	cleanup_close int fd = look(n, q->base, q->path, q->nofollow);
	unsigned need = q->need, missing;
	char real[PATH_MAX];
	struct statx st;

	if (fd < 0 && errno == EAGAIN)
		return false;
	if (fd < 0 && errno != ENOENT)
		return true; /* the kernel's own business */
	if (q->access == ACCESS_REMOVE)
		return fd < 0 || judge_parent(n, q);
	if (q->access == ACCESS_CREATE || (fd < 0 && q->creates))
		return fd >= 0 || judge_parent(n, q);
	if (fd < 0) {
		judge_absent(n, q);
		return true;
	}
	if (!attributes(fd, &st) || !real_path(n, fd, real, sizeof(real)) ||
	    S_ISLNK(st.stx_mode))
		return true;
	if (S_ISDIR(st.stx_mode)) {
		if (need & (GRANT_WRITE | GRANT_EXEC))
			return true; /* EISDIR, EACCES */
		need = GRANT_LIST;
	}
	missing = need & ~grants_on(&n->explain->grants, real);
	if (missing && mode_allows(&st, need))
		tell_missing(n, q, missing, real, real);
	return true;
}

/* ---- from a call to its questions ------------------------------------------------------ */

static void forget(struct question *q)
{
	fd_close(&q->base);
	free(q->path);
	q->path = NULL;
}

static bool starts_with_own(const char *path)
{
	/* /proc/self would be the keeper's; descriptors have been opened already. */
	static const char *const own[] = {"/proc/self", "/proc/thread-self", "/dev/fd",
					  "/dev/std"};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (str_starts(path, own[i]))
			return true;
	return false;
}

static void ask(struct notify *n, const struct seccomp_notif *req, uint64_t dirfd,
		uint64_t address, struct question q)
{
	struct explain *x = n->explain;
	char path[PATH_MAX];

	if (notify_read_string(req, address, path, sizeof(path)) < 0 || !path[0] ||
	    starts_with_own(path))
		return;
	q.nr = req->data.nr;
	q.pid = (pid_t)req->pid;
	q.base = -1;
	if (path[0] != '/' && notify_open_fd(n, req, (int)(int32_t)dirfd, &q.base) < 0)
		return;
	q.path = path;
	if (!notify_still_waits(n, req) || judge_path(n, &q) ||
	    x->n_pending == PENDING_MAX) {
		fd_close(&q.base);
		return;
	}
	q.path = xstrdup(path);
	x->pending[x->n_pending++] = q;
}

static unsigned need_of(uint64_t flags)
{
	unsigned mode = (unsigned)flags & O_ACCMODE;
	unsigned need = mode == O_RDONLY   ? GRANT_READ
			: mode == O_WRONLY ? GRANT_WRITE
					   : GRANT_READ | GRANT_WRITE;

	return flags & O_TRUNC ? need | GRANT_WRITE : need;
}

static void ask_open(struct notify *n, const struct seccomp_notif *req, uint64_t dirfd,
		     uint64_t address, uint64_t flags)
{
	if ((flags & O_PATH) || (flags & O_TMPFILE) == O_TMPFILE)
		return;
	ask(n, req, dirfd, address,
	    (struct question){.access = ACCESS_OPEN,
			      .need = need_of(flags),
			      .creates = (flags & O_CREAT) != 0,
			      .nofollow = (flags & O_NOFOLLOW) != 0});
}

static void ask_name(struct notify *n, const struct seccomp_notif *req, uint64_t dirfd,
		     uint64_t address, enum access access)
{
	ask(n, req, dirfd, address,
	    (struct question){.access = access,
			      .need = access == ACCESS_EXEC ? GRANT_EXEC | GRANT_READ
							    : GRANT_WRITE,
			      .nofollow = access != ACCESS_EXEC});
}

/* The network namespace has a loopback and nothing else. */
static void ask_address(struct notify *n, const struct seccomp_notif *req,
			uint64_t address, uint64_t len)
{
	union {
		sa_family_t family;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = {0};
	char object[sizeof(((struct spawn_denied *)0)->object)] = "";

	if (n->grade != GRADE_FULL || len < sizeof(a.in) ||
	    notify_read(req, address, &a, len < sizeof(a) ? len : sizeof(a)) < 0)
		return;
	if (a.family == AF_INET) {
		uint32_t host = ntohl(a.in.sin_addr.s_addr);

		if (host >> 24 == IN_LOOPBACKNET || host == INADDR_ANY)
			return;
	} else if (a.family != AF_INET6 || len < sizeof(a.in6) ||
		   IN6_IS_ADDR_LOOPBACK(&a.in6.sin6_addr) ||
		   IN6_IS_ADDR_UNSPECIFIED(&a.in6.sin6_addr)) {
		return;
	}
	notify_address(req, address, len, object, sizeof(object));
	if (object[0] && notify_still_waits(n, req))
		notify_record(n, req, SPAWN_WALL_NETWORK, SPAWN_ACT_CONNECT, ENETUNREACH,
			      object, "");
}

static void ask_renamed(struct notify *n, const struct seccomp_notif *req)
{
	const uint64_t *a = (const uint64_t *)req->data.args;
	const uint64_t here = (uint64_t)AT_FDCWD;

#ifdef __NR_rename
	if (req->data.nr == __NR_rename) {
		ask_name(n, req, here, a[0], ACCESS_REMOVE);
		ask_name(n, req, here, a[1], ACCESS_CREATE);
		return;
	}
#endif
	(void)here;
	ask_name(n, req, a[0], a[1], ACCESS_REMOVE);
	ask_name(n, req, a[2], a[3], ACCESS_CREATE);
}

#ifdef __NR_open
static bool ask_old(struct notify *n, const struct seccomp_notif *req)
{
	const uint64_t *a = (const uint64_t *)req->data.args;
	const uint64_t here = (uint64_t)AT_FDCWD;

	switch (req->data.nr) {
	case __NR_open:
		ask_open(n, req, here, a[0], a[1]);
		return true;
	case __NR_creat:
		ask_open(n, req, here, a[0], O_WRONLY | O_CREAT | O_TRUNC);
		return true;
	case __NR_unlink:
	case __NR_rmdir:
		ask_name(n, req, here, a[0], ACCESS_REMOVE);
		return true;
	case __NR_mkdir:
	case __NR_mknod:
		ask_name(n, req, here, a[0], ACCESS_CREATE);
		return true;
	case __NR_link:
	case __NR_symlink:
		ask_name(n, req, here, a[1], ACCESS_CREATE);
		return true;
	case __NR_rename:
		ask_renamed(n, req);
		return true;
	default:
		return false;
	}
}
#else
static bool ask_old(struct notify *n, const struct seccomp_notif *req)
{
	(void)n;
	(void)req;
	return false;
}
#endif

static void ask_call(struct notify *n, const struct seccomp_notif *req)
{
	const uint64_t *a = (const uint64_t *)req->data.args;
	const uint64_t here = (uint64_t)AT_FDCWD;
	struct open_how how;

	if (ask_old(n, req))
		return;
	switch (req->data.nr) {
	case __NR_openat:
		ask_open(n, req, a[0], a[1], a[2]);
		break;
	case __NR_openat2:
		if (a[3] >= sizeof(how) && notify_read(req, a[2], &how, sizeof(how)) == 0)
			ask_open(n, req, a[0], a[1], how.flags);
		break;
	case __NR_truncate:
		ask_open(n, req, here, a[0], O_WRONLY);
		break;
	case __NR_mkdirat:
	case __NR_mknodat:
		ask_name(n, req, a[0], a[1], ACCESS_CREATE);
		break;
	case __NR_symlinkat:
		ask_name(n, req, a[1], a[2], ACCESS_CREATE);
		break;
	case __NR_linkat:
		ask_name(n, req, a[2], a[3], ACCESS_CREATE);
		break;
	case __NR_unlinkat:
		ask_name(n, req, a[0], a[1], ACCESS_REMOVE);
		break;
	case __NR_renameat:
	case __NR_renameat2:
		ask_renamed(n, req);
		break;
	case __NR_execve:
		ask_name(n, req, here, a[0], ACCESS_EXEC);
		break;
	case __NR_execveat:
		ask_name(n, req, a[0], a[1], ACCESS_EXEC);
		break;
	case __NR_connect:
		ask_address(n, req, a[1], (uint32_t)a[2]);
		break;
	case __NR_sendto:
		ask_address(n, req, a[4], (uint32_t)a[5]);
		break;
	default:
		break;
	}
}

/* ---- metadata ------------------------------------------------------------------------- */

void notify_record_metadata(struct notify *n, const struct seccomp_notif *req,
			    unsigned wall)
{
	cleanup_close int base = -1, fd = -1;
	char path[PATH_MAX] = "", real[PATH_MAX], grant[GRANT_TEXT] = "";
	const char *object = path;
	struct statx st;
	int dirfd = notify_meta_named(req, path, sizeof(path));

	if (path[0] != '/' && notify_open_fd(n, req, dirfd, &base) < 0)
		return;
	if (!path[0])
		fd = TAKE_FD(base);
	else if (!starts_with_own(path))
		fd = look(n, base, path, false);
	if (fd < 0 && errno != EAGAIN && !starts_with_own(path))
		return; /* not there: nothing was refused */
	if (fd >= 0 && (!attributes(fd, &st) || st.stx_uid != geteuid()))
		return; /* the kernel would not have let us either */
	if (fd >= 0 && real_path(n, fd, real, sizeof(real)))
		object = real;
	if (n->explain && wall == SPAWN_WALL_LANDLOCK)
		grants_option(&n->explain->grants, object, GRANT_WRITE, grant,
			      sizeof(grant));
	if (notify_still_waits(n, req))
		notify_record(n, req, wall, SPAWN_ACT_METADATA, EPERM, object, grant);
}

/* ---- the keeper's side ------------------------------------------------------------------ */

void notify_explain_start(struct notify *n, const struct sbx_spec *spec)
{
	static const char *const own[] = {"/", "/tmp", "/dev/shm"};
	struct statx st;

	n->explain = xnew(struct explain);
	for (size_t i = 0; i < ARRAY_SIZE(own) && spec->grade == GRADE_FULL; i++)
		if (statx(AT_FDCWD, own[i], 0, STATX_TYPE, &st) == 0)
			n->explain->tmpfs[i] = device_of(&st);
	n->tell_absent = spec->tell_absent;
	grants_collect(&n->explain->grants, spec);
}

void notify_explain(struct notify *n, const struct seccomp_notif *req)
{
	ask_call(n, req);
}

static void again(struct notify *n)
{
	struct explain *x = n->explain;
	unsigned kept = 0;

	for (unsigned i = 0; i < x->n_pending; i++) {
		struct question q = x->pending[i];

		if (judge_path(n, &q))
			forget(&q);
		else
			x->pending[kept++] = q;
	}
	x->n_pending = kept;
}

void notify_explain_again(struct notify *n, bool last)
{
	struct explain *x = n->explain;

	if (!x)
		return;
	again(n);
	/* A mount anywhere in the system makes the cache unsure for a moment. */
	for (unsigned i = 0; last && x->n_pending && i < LAST_TRIES; i++) {
		(void)usleep(LAST_PAUSE_USEC);
		again(n);
	}
	while (last && x->n_pending)
		forget(&x->pending[--x->n_pending]);
}
