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
#include "sandbox/keeper/explain_priv.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "common/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LAST_TRIES 20
#define PORT_DNS 53
#define LAST_PAUSE_USEC 500

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

	if (notify_read_string(req, address, path, sizeof(path)) < 0 || !path[0])
		return;
	q.nr = req->data.nr;
	q.pid = (pid_t)req->pid;
	q.base = -1;
	if (starts_with_own(path)) {
		q.path = path;
		explain_judge_self(n, req, &q);
		return;
	}
	if (path[0] != '/' && notify_open_fd(n, req, (int)(int32_t)dirfd, &q.base) < 0)
		return;
	q.path = path;
	if (!notify_still_waits(n, req) || explain_judge(n, &q) ||
	    x->n_pending == PENDING_MAX) {
		fd_close(&q.base);
		return;
	}
	q.path = xstrdup(path);
	x->pending[x->n_pending++] = q;
}

/* The sandbox's own list of name servers is empty, and no lookup goes further than files: who
 * reads it looks a name up. Which, nobody says, and it may be one that is known inside. */
static void ask_names(struct notify *n, const struct seccomp_notif *req, uint64_t address)
{
	static const char list[] = "/etc/resolv.conf";
	char path[sizeof(list) + 1];

	if (n->grade == GRADE_FULL &&
	    notify_read_string(req, address, path, sizeof(path)) >= 0 &&
	    str_eq(path, list) && notify_still_waits(n, req))
		notify_record(n, req, SPAWN_WALL_ABSENT, SPAWN_ACT_CONNECT, 0,
			      "names (DNS)", "");
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
	ask_names(n, req, address);
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

/* What is not shown is missed by who only looks, too; in floor nobody is kept from that. */
static void ask_look(struct notify *n, const struct seccomp_notif *req, uint64_t dirfd,
		     uint64_t address)
{
	if (n->grade == GRADE_FULL && n->tell_absent)
		ask(n, req, dirfd, address,
		    (struct question){.access = ACCESS_LOOK, .need = GRANT_READ});
}

/* The network namespace has a loopback and nothing else; and there, no name server. */
static void ask_address(struct notify *n, const struct seccomp_notif *req,
			uint64_t address, uint64_t len)
{
	union {
		sa_family_t family;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = {0};
	char object[sizeof(((struct spawn_denied *)0)->object)] = "";
	bool is_own = true; /* of another family: none of ours */
	unsigned port = 0;

	if (n->grade != GRADE_FULL || len < sizeof(a.in) ||
	    notify_read(req, address, &a, len < sizeof(a) ? len : sizeof(a)) < 0)
		return;
	if (a.family == AF_INET) {
		uint32_t host = ntohl(a.in.sin_addr.s_addr);

		is_own = host >> 24 == IN_LOOPBACKNET || host == INADDR_ANY;
		port = ntohs(a.in.sin_port);
	} else if (a.family == AF_INET6 && len >= sizeof(a.in6)) {
		is_own = IN6_IS_ADDR_LOOPBACK(&a.in6.sin6_addr) ||
			 IN6_IS_ADDR_UNSPECIFIED(&a.in6.sin6_addr);
		port = ntohs(a.in6.sin6_port);
	}
	if (is_own && port != PORT_DNS)
		return;
	notify_address(req, address, len, object, sizeof(object));
	if (object[0] && notify_still_waits(n, req))
		notify_record(n, req, SPAWN_WALL_NETWORK, SPAWN_ACT_CONNECT,
			      is_own ? ECONNREFUSED : ENETUNREACH, object, "");
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
	case __NR_stat:
	case __NR_lstat:
	case __NR_access:
		ask_look(n, req, here, a[0]);
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
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_faccessat:
	case __NR_faccessat2:
		ask_look(n, req, a[0], a[1]);
		break;
	case __NR_chdir:
		ask_look(n, req, here, a[0]);
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
		fd = explain_look(n, base, path, false);
	if (fd < 0 && errno != EAGAIN && !starts_with_own(path))
		return; /* not there: nothing was refused */
	if (fd >= 0 && (!explain_attributes(fd, &st) || st.stx_uid != geteuid()))
		return; /* the kernel would not have let us either */
	if (fd >= 0 && explain_real_path(n, fd, real, sizeof(real)))
		object = real;
	if (n->explain && wall == SPAWN_WALL_LANDLOCK)
		grants_option(&n->explain->grants, object, GRANT_WRITE, grant,
			      sizeof(grant));
	if (notify_still_waits(n, req))
		notify_record(n, req, wall, SPAWN_ACT_METADATA, EPERM, object, grant);
}

/* ---- the keeper's side ------------------------------------------------------------------ */

/* Floor, where the keeper sees the machine's mounts: all of them. */
static void find_tmpfs(struct notify *n)
{
	struct explain *x = n->explain;
	static struct mount_line m; /* large */
	cleanup_buf struct buf text = {0};
	const char *at, *next, *type;
	unsigned major, minor;

	buf_init(&text, MOUNTINFO_MAX_BYTES);
	if (mountinfo_read(AT_FDCWD, "/proc/self", &text) < 0)
		return;
	for (at = buf_str(&text); *at && x->n_tmpfs < TMPFS_MAX; at = next) {
		next = mountinfo_line(at, &m);
		type = memmem(at, (size_t)(next - at), " - tmpfs ", strlen(" - tmpfs "));
		if (type && sscanf(m.dev, "%u:%u", &major, &minor) == 2)
			x->tmpfs[x->n_tmpfs++] = explain_device(major, minor);
	}
}

void notify_explain_start(struct notify *n, const struct sbx_spec *spec)
{
	static const char *const own[] = {"/", "/tmp", "/dev/shm"};
	struct statx st;

	n->explain = xnew(struct explain);
	if (spec->grade == GRADE_FLOOR)
		find_tmpfs(n);
	for (size_t i = 0; i < ARRAY_SIZE(own) && spec->grade == GRADE_FULL; i++)
		if (statx(AT_FDCWD, own[i], 0, STATX_TYPE, &st) == 0)
			n->explain->tmpfs[n->explain->n_tmpfs++] =
				explain_device(st.stx_dev_major, st.stx_dev_minor);
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

		if (explain_judge(n, &q))
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
