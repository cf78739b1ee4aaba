/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * Mode, owner, times and extended attributes, on behalf of the job (grade floor; in full only
 * attributes are set here). The keeper is of the same uid and holds no capability that would
 * let it change a file, so the kernel's own checks are those that the job would have met; what
 * the keeper adds is the tree (notify_path.c), no new set-id bit, no other owner than oneself,
 * and no attribute of a file in memory: the kernel bounds them by the number of inodes at most.
 */
#include "sandbox/keeper/notify.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <linux/xattr.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <utime.h>

/* Newer than the headers; the numbers are the same on every architecture. */
#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_REMOVEXATTRAT 466
#define SET_ID ((mode_t)(S_ISUID | S_ISGID))
#define NSEC_PER_USEC 1000
#define USEC_LIMIT 1000000

enum op { OP_MODE, OP_OWNER, OP_UTIME, OP_TIMEVAL, OP_TIMESPEC, OP_SET, OP_REMOVE };

struct meta_call {
	int nr;
	enum op op;
	int8_t dirfd;	   /* argument, NONE: AT_FDCWD */
	int8_t path;	   /* argument, NONE: dirfd is the object */
	int8_t flags;	   /* argument, NONE: there are none */
	int8_t value;	   /* the first argument of what to set */
	bool nofollow;	   /* an l-variant */
	bool path_or_null; /* NULL: dirfd is the object */
	bool packed;	   /* setxattrat: value, size and flags in a struct */
};

#define NONE (-1)
static const struct meta_call calls[] = {
#ifdef __NR_chmod
	{__NR_chmod, OP_MODE, NONE, 0, NONE, 1, false, false, false},
	{__NR_chown, OP_OWNER, NONE, 0, NONE, 1, false, false, false},
	{__NR_lchown, OP_OWNER, NONE, 0, NONE, 1, true, false, false},
	{__NR_utime, OP_UTIME, NONE, 0, NONE, 1, false, false, false},
	{__NR_utimes, OP_TIMEVAL, NONE, 0, NONE, 1, false, false, false},
	{__NR_futimesat, OP_TIMEVAL, 0, 1, NONE, 2, false, true, false},
#endif
	{__NR_fchmod, OP_MODE, 0, NONE, NONE, 1, false, false, false},
	{__NR_fchmodat, OP_MODE, 0, 1, NONE, 2, false, false, false},
	{NR_FCHMODAT2, OP_MODE, 0, 1, 3, 2, false, false, false},
	{__NR_fchown, OP_OWNER, 0, NONE, NONE, 1, false, false, false},
	{__NR_fchownat, OP_OWNER, 0, 1, 4, 2, false, false, false},
	{__NR_utimensat, OP_TIMESPEC, 0, 1, 3, 2, false, true, false},
	{__NR_setxattr, OP_SET, NONE, 0, NONE, 1, false, false, false},
	{__NR_lsetxattr, OP_SET, NONE, 0, NONE, 1, true, false, false},
	{__NR_fsetxattr, OP_SET, 0, NONE, NONE, 1, false, false, false},
	{NR_SETXATTRAT, OP_SET, 0, 1, 2, 3, false, false, true},
	{__NR_removexattr, OP_REMOVE, NONE, 0, NONE, 1, false, false, false},
	{__NR_lremovexattr, OP_REMOVE, NONE, 0, NONE, 1, true, false, false},
	{__NR_fremovexattr, OP_REMOVE, 0, NONE, NONE, 1, false, false, false},
	{NR_REMOVEXATTRAT, OP_REMOVE, 0, 1, 2, 3, false, false, false},
};

struct attr_args { /* of setxattrat */
	uint64_t value;
	uint32_t size, flags;
};

/* What is to be set, copied once. */
struct change {
	mode_t mode;
	uid_t uid;
	gid_t gid;
	bool now; /* no times given */
	struct timespec times[2];
	char name[XATTR_NAME_MAX + 1];
	size_t size;
	int xattr_flags;
};

static char xattr_value[XATTR_SIZE_MAX];

/* ---- copying ------------------------------------------------------------------------ */

static uint64_t arg(const struct seccomp_notif *req, int i)
{
	return req->data.args[i];
}

static int take_times(const struct meta_call *c, const struct seccomp_notif *req,
		      struct change *ch)
{
	uint64_t at = arg(req, c->value);
	struct timeval tv[2];
	struct utimbuf sec;
	int r;

	ch->now = at == 0;
	if (ch->now)
		return 0;
	if (c->op == OP_TIMESPEC)
		return notify_read(req, at, ch->times, sizeof(ch->times));
	if (c->op == OP_UTIME) {
		r = notify_read(req, at, &sec, sizeof(sec));
		ch->times[0].tv_sec = sec.actime;
		ch->times[1].tv_sec = sec.modtime;
		return r;
	}
	r = notify_read(req, at, tv, sizeof(tv));
	for (int i = 0; i < 2 && r == 0; i++) {
		if (tv[i].tv_usec < 0 || tv[i].tv_usec >= USEC_LIMIT)
			return -EINVAL;
		ch->times[i].tv_sec = tv[i].tv_sec;
		ch->times[i].tv_nsec = tv[i].tv_usec * NSEC_PER_USEC;
	}
	return r;
}

static int take_xattr(const struct meta_call *c, const struct seccomp_notif *req,
		      struct change *ch)
{
	struct attr_args a = {0};
	int r = notify_read_string(req, arg(req, c->value), ch->name, sizeof(ch->name));

	if (r == -ENAMETOOLONG || (r == 0 && !ch->name[0]))
		return -ERANGE;
	if (r < 0 || c->op == OP_REMOVE)
		return r;
	if (c->packed) {
		uint64_t size = arg(req, c->value + 2);

		if (size != sizeof(a))
			return size < sizeof(a) ? -EINVAL : -E2BIG;
		r = notify_read(req, arg(req, c->value + 1), &a, sizeof(a));
		if (r < 0)
			return r;
	} else {
		uint64_t size = arg(req, c->value + 2);

		a.value = arg(req, c->value + 1);
		a.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
		a.flags = (uint32_t)arg(req, c->value + 3);
	}
	if (a.flags & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (a.size > sizeof(xattr_value))
		return -E2BIG;
	ch->size = a.size;
	ch->xattr_flags = (int)a.flags;
	return notify_read(req, a.value, xattr_value, a.size);
}

static int take_change(const struct meta_call *c, const struct seccomp_notif *req,
		       struct change *ch)
{
	switch (c->op) {
	case OP_MODE:
		ch->mode = (mode_t)arg(req, c->value) & ALLPERMS;
		return 0;
	case OP_OWNER:
		ch->uid = (uid_t)arg(req, c->value);
		ch->gid = (gid_t)arg(req, c->value + 1);
		return 0;
	case OP_UTIME:
	case OP_TIMEVAL:
	case OP_TIMESPEC:
		return take_times(c, req, ch);
	case OP_SET:
	case OP_REMOVE:
		return take_xattr(c, req, ch);
	}
	return -EPERM;
}

/* ---- the object --------------------------------------------------------------------- */

struct target {
	int fd;
	bool opened; /* the job's own open file; else O_PATH */
};

/*
 * A file with a name that the job has open for writing was judged when it was opened:
 * Landlock let it be opened so only in a tree that the job may write. Unless it was brought
 * to the job by its stdio. (Access mode 3 has neither bit, and asks Landlock for nothing.)
 */
static bool is_own_writing(const struct notify *n, const struct target *t)
{
	struct stat st;
	int flags, mode;

	if (!n->own_opens || !t->opened)
		return false;
	flags = fcntl(t->fd, F_GETFL);
	if (flags < 0 || (flags & O_PATH))
		return false;
	mode = flags & O_ACCMODE;
	return (mode == O_WRONLY || mode == O_RDWR) && fstat(t->fd, &st) == 0 &&
	       S_ISREG(st.st_mode) && st.st_nlink > 0;
}

static int open_target_fd(struct notify *n, const struct meta_call *c,
			  const struct seccomp_notif *req, int fd, struct target *ret)
{
	int r = notify_open_object(n, req, fd, &ret->fd, &ret->opened);

	if (r < 0)
		return r;
	/* tar sets the times of each file that it writes; the look at where it lies is the
	 * dearer half of the answer. Modes and owners are rare enough for it. */
	if (c->op == OP_TIMESPEC && is_own_writing(n, ret))
		return 0;
	if (notify_is_inside(n, ret->fd))
		return 0;
	/* Inside, the act itself says so. */
	return ret->opened && (fcntl(ret->fd, F_GETFL) & O_PATH) ? -EBADF
								 : NOTIFY_OUTSIDE;
}

static int open_target(struct notify *n, const struct meta_call *c,
		       const struct seccomp_notif *req, struct target *ret)
{
	int dirfd = c->dirfd == NONE ? AT_FDCWD : (int)(int32_t)arg(req, c->dirfd);
	unsigned flags = c->flags == NONE ? 0 : (unsigned)arg(req, c->flags);
	unsigned how = c->nofollow ? 0 : NOTIFY_FOLLOW;
	static char path[PATH_MAX];
	int r;

	if (flags & ~(unsigned)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (c->path == NONE)
		return open_target_fd(n, c, req, dirfd, ret);
	if (c->path_or_null && !arg(req, c->path) && dirfd != AT_FDCWD)
		return flags ? -EINVAL : open_target_fd(n, c, req, dirfd, ret);
	if (flags & AT_SYMLINK_NOFOLLOW)
		how = 0;
	if (flags & AT_EMPTY_PATH)
		how |= NOTIFY_EMPTY;
	r = notify_read_string(req, arg(req, c->path), path, sizeof(path));
	return r < 0 ? r : notify_resolve(n, req, dirfd, path, how, &ret->fd);
}

/* ---- acting ------------------------------------------------------------------------- */

/* What the kernel would let us do, and the job may not. 0, or what to answer. */
static int forbid(const struct target *t, const struct meta_call *c,
		  const struct change *ch)
{
	struct statfs fs;
	struct stat st;

	if (c->op == OP_SET && (fstatfs(t->fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC))
		return -EOPNOTSUPP;
	if (c->op == OP_OWNER && ((ch->uid != (uid_t)-1 && ch->uid != geteuid()) ||
				  (ch->gid != (gid_t)-1 && ch->gid != getegid())))
		return -EPERM;
	if (c->op != OP_MODE || !(ch->mode & SET_ID))
		return 0;
	if (fstat(t->fd, &st) < 0)
		return -errno;
	/* What is there may stay (a directory inherits its group bit); none is added. */
	return ch->mode & SET_ID & ~st.st_mode ? NOTIFY_SET_ID : 0;
}

/* The job's own call, on the descriptor that was judged. -1 and errno: it failed. */
static int act_on_file(int fd, const struct meta_call *c, const struct change *ch)
{
	switch (c->op) {
	case OP_MODE:
		return fchmod(fd, ch->mode);
	case OP_OWNER:
		return fchown(fd, ch->uid, ch->gid);
	case OP_SET:
		return fsetxattr(fd, ch->name, xattr_value, ch->size, ch->xattr_flags);
	case OP_REMOVE:
		return fremovexattr(fd, ch->name);
	case OP_UTIME:
	case OP_TIMEVAL:
	case OP_TIMESPEC:
		break;
	}
	return futimens(fd, ch->now ? NULL : ch->times);
}

/* The same for O_PATH. It has no fsetxattr; its name in our own /proc leads to the very
 * object, a symlink included. */
static int act_on_path(int fd, const struct meta_call *c, const struct change *ch)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	switch (c->op) {
	case OP_MODE:
		return (int)syscall(NR_FCHMODAT2, fd, "", ch->mode, AT_EMPTY_PATH);
	case OP_OWNER:
		return fchownat(fd, "", ch->uid, ch->gid, AT_EMPTY_PATH);
	case OP_SET:
		return setxattr(path, ch->name, xattr_value, ch->size, ch->xattr_flags);
	case OP_REMOVE:
		return removexattr(path, ch->name);
	case OP_UTIME:
	case OP_TIMEVAL:
	case OP_TIMESPEC:
		break;
	}
	return utimensat(fd, "", ch->now ? NULL : ch->times, AT_EMPTY_PATH);
}

static int answer(struct notify *n, const struct meta_call *c,
		  const struct seccomp_notif *req)
{
	struct target t = {.fd = -1};
	struct change ch = {0};
	int r = take_change(c, req, &ch);

	if (r == 0)
		r = open_target(n, c, req, &t);
	if (r == 0)
		r = forbid(&t, c, &ch);
	if (r == 0 && !notify_still_waits(n, req))
		r = -EPERM;
	if (r == 0 &&
	    (t.opened ? act_on_file(t.fd, c, &ch) : act_on_path(t.fd, c, &ch)) < 0)
		r = -errno;
	fd_close(&t.fd);
	return r;
}

bool notify_meta(struct notify *n, const struct seccomp_notif *req, int *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].nr != req->data.nr)
			continue;
		*ret = answer(n, &calls[i], req);
		return true;
	}
	return false;
}

int notify_meta_named(const struct seccomp_notif *req, char *path, size_t size)
{
	path[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct meta_call *c = &calls[i];

		if (c->nr != req->data.nr)
			continue;
		if (c->path != NONE && arg(req, c->path) &&
		    notify_read_string(req, arg(req, c->path), path, size) < 0)
			path[0] = '\0';
		return c->dirfd == NONE ? AT_FDCWD : (int)(int32_t)arg(req, c->dirfd);
	}
	return AT_FDCWD;
}
