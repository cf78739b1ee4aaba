/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * --explain: which wall is in the way of one path, looked up in what the kernel has cached
 * (notify_explain.c says why).
 */
#include "sandbox/keeper/explain_priv.h"

#include "common/cleanup.h"
#include "common/str.h"
#include "sandbox/contract/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* ---- one path ------------------------------------------------------------------------ */

static int look_once(int base, const char *path, bool nofollow)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC |
					(uint64_t)(nofollow ? O_NOFOLLOW : 0),
			       .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
}

bool explain_attributes(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		     STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID, ret) == 0;
}

static bool is_tmpfs(const struct explain *x, int fd)
{
	struct statx st;

	if (!explain_attributes(fd, &st))
		return false;
	for (size_t i = 0; i < x->n_tmpfs; i++)
		if (x->tmpfs[i] == explain_device(st.stx_dev_major, st.stx_dev_minor))
			return true;
	return false;
}

/* One name in a directory of a tmpfs: there a look waits for no disk. */
static bool is_missing(int dir, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV |
					  RESOLVE_NO_MAGICLINKS};
	cleanup_close int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 && errno == ENOENT;
}

/* A tmpfs keeps no note of what it does not hold, so that a missing name is never cached:
 * is the first name that is not, in one that we know, missing? */
static bool ends_in_tmpfs(const struct explain *x, int base, const char *path)
{
	char top[PATH_MAX];
	char *slash;

	if (str_copy(top, sizeof(top), path) < 0)
		return false;
	for (size_t len = strlen(top); len > 1 && top[len - 1] == '/'; len--)
		top[len - 1] = '\0';
	while ((slash = strrchr(top, '/')) && slash[1]) {
		cleanup_close int fd = -1;
		char first[NAME_MAX + 1];

		if (str_copy(first, sizeof(first), slash + 1) < 0)
			return false;
		slash[slash == top] = '\0';
		fd = look_once(base, top, false);
		if (fd >= 0)
			return is_tmpfs(x, fd) && is_missing(fd, first);
		if (errno != EAGAIN || slash == top)
			return false;
	}
	return false;
}

/* Of /proc the kernel has little at hand, and nothing there waits for a disk. In full it is shown, and what is
 * opened below its descriptor would have another name. */
static int look_in_proc(const struct notify *n, const char *path, bool nofollow)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (uint64_t)(nofollow ? O_NOFOLLOW : 0),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS};
	int fd = -1;

	if (n->grade == GRADE_FLOOR && str_starts(path, "/proc/") &&
	    path[strlen("/proc/")])
		fd = (int)syscall(SYS_openat2, n->proc_fd, path + strlen("/proc/"), &how,
				  sizeof(how));
	if (fd < 0)
		errno = EAGAIN;
	return fd;
}

int explain_look(const struct notify *n, int base, const char *path, bool nofollow)
{
	int fd = look_once(base, path, nofollow);

	if (fd < 0 && errno == EAGAIN && n->explain &&
	    ends_in_tmpfs(n->explain, base, path))
		errno = ENOENT;
	else if (fd < 0 && errno == EAGAIN)
		fd = look_in_proc(n, path, nofollow);
	return fd;
}

bool explain_real_path(const struct notify *n, int fd, char *out, size_t size)
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
	if (n->grade == GRADE_FLOOR || paths_is_below(object, "/proc"))
		tell(n, q, SPAWN_WALL_LANDLOCK, EACCES, missing, object, grant_at);
	else if (missing & GRANT_WRITE)
		tell(n, q, SPAWN_WALL_MOUNT, EROFS, missing, object, grant_at);
	else if (missing & GRANT_EXEC)
		tell(n, q, SPAWN_WALL_MOUNT, EACCES, missing, object, grant_at);
	else
		tell(n, q, SPAWN_WALL_LANDLOCK, EACCES, missing, object, grant_at);
}

static bool is_absolute_here(const struct notify *n, const struct question *q, char *out,
			     size_t size)
{
	char here[PATH_MAX];

	if (q->path[0] == '/'
		    ? str_copy(out, size, q->path) < 0
		    : !explain_real_path(n, q->base, here, sizeof(here)) ||
			      str_fmt(out, size, "%s/%s", str_eq(here, "/") ? "" : here,
				      q->path) < 0)
		return false;
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
	return true;
}

/* Full: what lies there outside is shown, so that what is missing is missing. Not so where
 * the sandbox has a directory of its own under the name of one outside. */
static bool is_shown_place(const struct grants_table *t, const char *path)
{
	static const char *const own[] = {"/etc", "/tmp", "/dev/shm", "/proc"};
	bool is_own;

	for (size_t i = 0; i < t->n; i++) {
		is_own = false;
		for (size_t k = 0; k < ARRAY_SIZE(own); k++)
			is_own |= str_eq(t->g[i].real, own[k]);
		if (!is_own && paths_is_below(path, t->g[i].real))
			return true;
	}
	return t->workspace && paths_is_below(path, t->workspace);
}

/* What would get or lose a name is its directory. */
static void judge_absent(struct notify *n, const struct question *q)
{
	char path[2 * PATH_MAX], at[2 * PATH_MAX], grant[GRANT_TEXT];
	bool is_name = q->access == ACCESS_REMOVE || q->access == ACCESS_CREATE ||
		       (q->access == ACCESS_OPEN && q->creates);
	unsigned right = q->need & GRANT_EXEC	 ? GRANT_EXEC
			 : q->need & GRANT_WRITE ? GRANT_WRITE
						 : GRANT_READ;
	char *slash;

	if (n->grade != GRADE_FULL || !n->tell_absent ||
	    !is_absolute_here(n, q, path, sizeof(path)) ||
	    is_shown_place(&n->explain->grants, path))
		return;
	(void)snprintf(at, sizeof(at), "%s", path);
	slash = strrchr(at, '/');
	if (is_name && slash > at)
		*slash = '\0';
	grants_option(&n->explain->grants, at, right, grant, sizeof(grant));
	if (grant[0])
		tell(n, q, SPAWN_WALL_ABSENT, ENOENT, right, path, at);
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
	fd = explain_look(n, q->base, slash ? top : ".", false);
	if (fd < 0 && errno == ENOENT)
		judge_absent(n, q);
	if (fd < 0)
		return errno != EAGAIN;
	if (!explain_attributes(fd, &st) || !S_ISDIR(st.stx_mode) ||
	    !mode_allows(&st, GRANT_WRITE | GRANT_EXEC) ||
	    !explain_real_path(n, fd, real, sizeof(real)))
		return true;
	if ((grants_on(&n->explain->grants, real) & GRANT_WRITE) ||
	    str_fmt(object, sizeof(object), "%s/%s", str_eq(real, "/") ? "" : real,
		    name) < 0)
		return true;
	tell_missing(n, q, GRANT_WRITE, object, real);
	return true;
}

/* The caller's, not the keeper's: below it no name leads elsewhere. Told by the name that was
 * used, or each process of a job would be a kind. */
void explain_judge_self(struct notify *n, const struct seccomp_notif *req,
			const struct question *q)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV |
					  RESOLVE_NO_MAGICLINKS};
	const char *below = grants_below_self(q->path);
	cleanup_close int dir = -1, fd = -1;
	unsigned need = q->need;
	struct statx st;
	char pid[16];

	if (n->grade != GRADE_FLOOR || !below || q->access != ACCESS_OPEN)
		return;
	(void)snprintf(pid, sizeof(pid), "%d", (int)req->pid);
	dir = openat(n->proc_fd, pid, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, below, &how, sizeof(how));
	if (fd < 0 || !explain_attributes(fd, &st) || S_ISLNK(st.stx_mode))
		return; /* not there, or it leads out of /proc: not for this wall */
	if (S_ISDIR(st.stx_mode))
		need = GRANT_LIST;
	if (mode_allows(&st, need) && notify_still_waits(n, req))
		tell(n, q, SPAWN_WALL_LANDLOCK, EACCES, need, q->path, q->path);
}

bool explain_judge(struct notify *n, const struct question *q)
{
	cleanup_close int fd = explain_look(n, q->base, q->path, q->nofollow);
	unsigned need = q->need, missing;
	char real[PATH_MAX];
	struct statx st;

	if (fd < 0 && errno == EAGAIN)
		return false;
	if (fd < 0 && errno != ENOENT)
		return true; /* the kernel's own business */
	if (fd < 0 && (q->access == ACCESS_REMOVE || q->access == ACCESS_LOOK)) {
		judge_absent(n, q);
		return true;
	}
	if (q->access == ACCESS_LOOK)
		return true;
	if (q->access == ACCESS_REMOVE)
		return judge_parent(n, q);
	if (q->access == ACCESS_CREATE || (fd < 0 && q->creates))
		return fd >= 0 || judge_parent(n, q);
	if (fd < 0) {
		judge_absent(n, q);
		return true;
	}
	if (!explain_attributes(fd, &st) ||
	    !explain_real_path(n, fd, real, sizeof(real)) || S_ISLNK(st.stx_mode))
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
