/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * The listener: from the job to the keeper, and the answers. See notify.h.
 */
#include "sandbox/keeper/notify.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/mem.h"
#include "sandbox/contract/paths.h"
#include "sandbox/keeper/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define PIDFD_GETFD_FLAGS 0

/* Newer than Debian 12's headers: question and answer wake the other side on this very
 * CPU. */
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define NOTIF_FD_SYNC_WAKE_UP ((uint64_t)1)

/* One turn of the keeper's loop: its clock, samples and kills wait no longer than this. */
#define CALLS_A_TURN 32
#define TURN_USEC (2 * USEC_PER_MSEC)

/* The packet that brings the listener; without a descriptor (too many of this uid are in
 * flight) the keeper fetches the number and says so with one byte. */
struct handover {
	uint32_t magic;
	int32_t fd;
};
#define HANDOVER_MAGIC 0x6c796e66u

/* ---- in the job ------------------------------------------------------------------- */

int notify_hand_over(int status_fd, int *listener, struct err *err)
{
	const struct handover m = {HANDOVER_MAGIC, *listener};

	if (fdpass_send(status_fd, &m, sizeof(m), &m.fd, 1, 0) == 0) {
		fd_close(listener);
		return 0;
	}
	/* It is fetched by its number, and closed by exec: the self-test is not answered
	 * before. */
	if (errno != ETOOMANYREFS ||
	    fdpass_send(status_fd, &m, sizeof(m), NULL, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LISTENER, "hand the listener over");
	*listener = -1;
	return 0;
}

/* ---- in the keeper: taking it ------------------------------------------------------- */

void notify_init(struct notify *n, enum sbx_grade grade)
{
	*n = (struct notify){.listener = -1,
			     .grade = grade,
			     .proc_fd = -1,
			     .own_fds = -1,
			     .asker_fd = -1,
			     .status_fd = -1};
}

static int add_tree(struct notify *n, const char *path, int from_fd, struct err *err)
{
	cleanup_close int fd = from_fd >= 0 ? fcntl(from_fd, F_DUPFD_CLOEXEC, 3)
					    : open(path, O_PATH | O_CLOEXEC);
	uint64_t mount;
	int r;

	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "open %s", path);
	r = notify_mount_of(fd, &mount);
	if (r < 0) {
		errno = -r;
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "the mount of %s", path);
	}
	n->tree = xreallocarray(n->tree, n->n_trees + 1, sizeof(*n->tree));
	n->tree[n->n_trees++] = (struct notify_tree){TAKE_FD(fd), mount, xstrdup(path)};
	return 0;
}

int notify_bind(struct notify *n, const struct sbx_spec *spec, int work_fd,
		struct err *err)
{
	n->where = seccomp_where(spec);
	if (spec->explain)
		notify_explain_start(n, spec);
	if (spec->workspace && !spec->workspace_ro &&
	    add_tree(n, spec->grade == GRADE_FULL ? PATH_WORK : spec->workspace, work_fd,
		     err) < 0)
		return -1;
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].kind == MOUNT_RW &&
		    add_tree(n, spec->mounts[i].path, -1, err) < 0)
			return -1;
	return 0;
}

/* The kernel writes as much as it knows: a larger structure than ours would not fit. */
static int check_sizes(struct err *err)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return err_sys_id(err, ERRID_SANDBOX_LISTENER, "the sizes");
	if (sizes.seccomp_notif != sizeof(struct seccomp_notif) ||
	    sizes.seccomp_notif_resp != sizeof(struct seccomp_notif_resp))
		return err_set_id(err, ERRID_SANDBOX_LISTENER,
				  "the kernel's notifications have another size");
	return 0;
}

static int fetch_listener(pid_t main_pid, int number)
{
	cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, main_pid, 0);

	return (int)syscall(SYS_pidfd_getfd, pidfd, number, PIDFD_GETFD_FLAGS);
}

static int take(struct notify *n, int fd, const struct tree *procs, struct err *err)
{
	if (n->taken || !seccomp_is_listener(fd)) {
		fd_close(&fd);
		return err_set_id(err, ERRID_SANDBOX_LISTENER,
				  "the job gave no listener, or two");
	}
	n->listener = fd;
	n->taken = true;
	n->proc_fd = procs->proc_fd;
	n->guard = procs->guard;
	if (check_sizes(err) < 0)
		return -1;
	notify_stay_apart(n, false);
	return 0;
}

ssize_t notify_recv_status(struct notify *n, int status_fd, pid_t main_pid,
			   const struct tree *procs, struct job_status *ret,
			   struct err *err)
{
	union {
		struct job_status status;
		struct handover over;
	} m;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	ssize_t len;
	int fd;

	/* A job that left without taking its rules: once that, then what it said before. */
	do
		len = fdpass_recv(status_fd, &m, sizeof(m), fds, &n_fds, MSG_DONTWAIT);
	while (len < 0 && errno == ECONNRESET);
	fd = fds[0];
	for (unsigned i = 1; i < n_fds; i++)
		fd_close(&fds[i]);
	if (len <= 0) {
		fd_close(&fd);
		return len;
	}
	errno = EPROTO;
	if (len == (ssize_t)sizeof(m.status) && fd < 0) {
		*ret = m.status;
		return len;
	}
	if (len == 1 && fd < 0 && n->taken)
		return NOTIFY_READY;
	if (len != (ssize_t)sizeof(m.over) || m.over.magic != HANDOVER_MAGIC) {
		fd_close(&fd);
		return err_set(err, ERR_SETUP, "a status of %zd bytes", len);
	}
	if (fd < 0)
		fd = fetch_listener(main_pid, m.over.fd);
	if (take(n, fd, procs, err) < 0) {
		errno = EPROTO;
		return -1;
	}
	return NOTIFY_LISTENER;
}

/* ---- in the keeper: answering -------------------------------------------------------- */

bool notify_still_waits(const struct notify *n, const struct seccomp_notif *req)
{
	uint64_t id = req->id;

	return ioctl(n->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static int judge_metadata(struct notify *n, const struct seccomp_notif *req, int r)
{
	if (r != NOTIFY_OUTSIDE && r != NOTIFY_SET_ID)
		return r;
	/* An attribute of what lies in memory: a file system that has none says so. */
	if (n->grade == GRADE_FULL)
		return -EOPNOTSUPP;
	/* The trees are those of Landlock's rules; it only does not know these calls. */
	if (!notify_is_the_jobs(n, req))
		return -EPERM;
	notify_record_metadata(
		n, req, r == NOTIFY_OUTSIDE ? SPAWN_WALL_LANDLOCK : SPAWN_WALL_SECCOMP);
	return -EPERM;
}

/* 0, a negative errno, or NOTIFY_GO_ON. Whatever nobody here knows is refused. */
static int judge(struct notify *n, const struct seccomp_notif *req)
{
	int r = -EPERM;
	bool supervised;

	switch (req->data.nr) {
	case __NR_sched_setaffinity:
		return notify_affinity(n, req);
	case __NR_setpriority:
		if (sc_judge(n->where, &req->data) == SC_SUPERVISED)
			return notify_priority(n, req);
		break;
	case __NR_fallocate:
		return notify_fallocate(n, req);
	case NR_LANDLOCK_ADD_RULE:
	case NR_LANDLOCK_RESTRICT_SELF:
		return notify_landlock(n, req);
	case __NR_setsockopt:
		if (sc_judge(n->where, &req->data) == SC_SUPERVISED)
			return notify_join(n, req);
		break;
	case __NR_mmap:
	case __NR_madvise:
		if (sc_judge(n->where, &req->data) == SC_SUPERVISED)
			return notify_map(n, req);
		break;
	case __NR_ioctl:
		if ((uint32_t)req->data.args[1] == TIOCSCTTY &&
		    sc_judge(n->where, &req->data) == SC_SUPERVISED)
			return notify_take_terminal(n, req);
		break;
	case __NR_seccomp:
		if (sc_judge(n->where, &req->data) == SC_SUPERVISED)
			return notify_filter(n);
		break;
	default:
		break;
	}
	supervised = sc_judge(n->where, &req->data) == SC_SUPERVISED;
	if (supervised && notify_meta(n, req, &r))
		return judge_metadata(n, req, r);
	if (supervised && req->data.nr == __NR_ioctl) {
		r = notify_interfaces(n, req);
		if (r != NOTIFY_OUTSIDE)
			return r;
	}
	if (notify_is_the_jobs(n, req))
		notify_record_call(n, req);
	return -EPERM;
}

static void answer_one(struct notify *n)
{
	struct seccomp_notif req = {0};
	struct seccomp_notif_resp resp = {0};

	/* Only one reader, and it was readable: this does not wait. */
	if (ioctl(n->listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
		return;
	resp.id = req.id;
	/* Only what the table allows, and only to have told: the kernel decides. */
	if (n->explain && sc_is_observed(n->where, &req.data)) {
		notify_explain(n, &req);
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	} else {
		resp.error = judge(n, &req);
		if (resp.error == NOTIFY_GO_ON) {
			resp.error = 0;
			resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
	}
	/* ENOENT: who asked is gone. */
	(void)ioctl(n->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

void notify_step(struct notify *n, short revents, int status_fd)
{
	struct pollfd p = {.fd = n->listener, .events = POLLIN, .revents = revents};
	usec_t end = clock_boot_usec() + TURN_USEC;

	n->status_fd = status_fd;
	notify_explain_again(n, false);
	for (unsigned calls = 0; p.revents & POLLIN; calls++) {
		answer_one(n);
		/* The answer may have let the job run on already, as far as to ask again. */
		if (calls == CALLS_A_TURN || clock_boot_usec() >= end ||
		    poll(&p, 1, 0) < 0)
			return;
	}
	/* Hung up: every process that the filter was on is gone, or on its way out. It is
	 * closed with us: the kernel frees the program on this processor, and the end of
	 * the job is near. */
	if (p.revents)
		n->over = true;
}

int notify_poll_fd(const struct notify *n)
{
	return n->over ? -1 : n->listener;
}

void notify_leave(struct notify *n)
{
	fd_close(&n->listener);
}

void notify_meanwhile(struct notify *n, int status_fd)
{
	struct pollfd p = {.fd = notify_poll_fd(n), .events = POLLIN};

	if (p.fd >= 0 && poll(&p, 1, 0) == 1)
		notify_step(n, p.revents, status_fd);
}

void notify_stay_apart(const struct notify *n, bool apart)
{
	if (n->listener >= 0)
		(void)ioctl(n->listener, NOTIF_SET_FLAGS,
			    apart ? 0 : NOTIF_FD_SYNC_WAKE_UP);
}
