/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent's side of a keeper: starting one, and cleaning up after it whatever
 * way it ended. In grade full the kernel does the killing: the keeper is pid 1
 * of the job's pid namespace, and waiting for it returns when the namespace is
 * empty. In floor a killed keeper's tree is handed up to us (we are a subreaper
 * too), and is killed here.
 */
#include "common/cleanup.h"
#include "sandbox/handover.h"
#include "sandbox/keeper.h"
#include "sandbox/tree.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FULL_NAMESPACES                                                                  \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |      \
	 CLONE_NEWUTS)
#define STRAY_ROUNDS 400
#define STRAY_PAUSE_USEC 5000

/* Those with a job, those that wait for one, those that are about to end. */
static pid_t alive[2 * SPAWN_JOBS_MAX + 1];
static unsigned n_alive;

static bool is_keeper(pid_t pid)
{
	for (unsigned i = 0; i < n_alive; i++)
		if (alive[i] == pid)
			return true;
	return false;
}

static void forget(pid_t pid)
{
	for (unsigned i = 0; i < n_alive; i++)
		if (alive[i] == pid)
			alive[i--] = alive[--n_alive];
}

NORETURN static void keeper_child(const struct sbx_birth *birth,
				  const struct sbx_limits *limits, int sock,
				  int parent_pidfd, uid_t uid, gid_t gid)
{
	struct err err = ERR_INIT;

	if (birth->spec->grade == GRADE_FULL &&
	    (ns_die_with(parent_pidfd, &err) < 0 || ns_map_self(uid, gid, &err) < 0)) {
		struct spawn_refused m;

		report_refused("userns", &err, &m);
		(void)!send(sock, &m, sizeof(m), MSG_NOSIGNAL);
		_exit(EXIT_SETUP);
	}
	keeper_main(birth, limits, sock);
}

/* The fork itself; what it fails to take over stays the caller's. */
static int fork_keeper(const struct sbx_birth *birth, struct keeper *k, struct err *err)
{
	bool full = k->grade == GRADE_FULL;
	cleanup_close int self = full ? (int)syscall(SYS_pidfd_open, getpid(), 0) : -1;
	int sv[2] = {-1, -1}, flags = full ? FULL_NAMESPACES : 0;
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (full && self < 0)
		return err_sys(err, "pidfd_open");
	if (!full && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "become a subreaper");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(err, "socketpair");
	k->pid = ns_fork(flags, &k->pidfd, err);
	if (k->pid == 0)
		keeper_child(birth, &k->limits, sv[1], self, uid, gid);
	fd_close(&sv[1]);
	if (k->pid < 0) {
		fd_close(&sv[0]);
		return -1;
	}
	k->sock = sv[0];
	return 0;
}

int keeper_start(const struct sbx_birth *birth, struct keeper *ret, struct err *err)
{
	struct keeper k = {.pidfd = -1, .sock = -1, .grade = birth->spec->grade};

	if (n_alive >= ARRAY_SIZE(alive))
		return err_set(err, ERR_LIMIT, "already %zu sandboxes",
			       ARRAY_SIZE(alive));
	if (limits_make_leaf(birth->spec, &k.limits, err) < 0)
		return -1;
	if ((!birth->warm && limits_prepare(birth->spec, &k.limits, err) < 0) ||
	    fork_keeper(birth, &k, err) < 0) {
		limits_done(&k.limits);
		return -1;
	}
	alive[n_alive++] = k.pid;
	*ret = k;
	return 0;
}

int keeper_bind(struct keeper *k, const struct sbx_spec *spec,
		const struct spawn_spec *sent, const int stdio[3], int workspace,
		struct err *err)
{
	const int fds[] = {stdio[0], stdio[1], stdio[2], workspace};
	struct keeper_bind m = {
		.type = KEEPER_BIND, .spec_bytes = sent->bytes, .broker = spec->broker};

	if (limits_prepare(spec, &k->limits, err) < 0)
		return -1;
	m.limits = k->limits;
	return handover_send(k->sock, &m, sizeof(m), sent, fds,
			     workspace < 0 ? HANDOVER_WORK : ARRAY_SIZE(fds), err);
}

/* The ancestor of p that is our own child. */
static pid_t branch_of(const struct tree *t, const struct tree_proc *p)
{
	for (unsigned hops = 0; p->ppid != t->self && hops < 65536; hops++) {
		const struct tree_proc *up = NULL;

		for (size_t i = 0; i < t->n && !up; i++)
			if (t->proc[i].pid == p->ppid)
				up = &t->proc[i];
		if (!up)
			return 0;
		p = up;
	}
	return p->pid;
}

/* Floor: kill and reap what a keeper that died left to us. */
static void kill_strays(void)
{
	struct err err = ERR_INIT;
	struct tree t;

	if (tree_init(&t, GRADE_FLOOR, -1, -1, -1, &err) < 0)
		return;
	for (int round = 0; round < STRAY_ROUNDS; round++) {
		unsigned left = 0;

		if (tree_scan(&t, &err) < 0)
			break;
		for (size_t i = 0; i < t.n; i++) {
			pid_t top;

			if (!t.proc[i].member)
				continue;
			top = branch_of(&t, &t.proc[i]);
			if (!top || is_keeper(top))
				continue;
			left++;
			if (t.proc[i].state == 'Z' && t.proc[i].threads <= 1 &&
			    t.proc[i].ppid == t.self)
				(void)waitpid(t.proc[i].pid, NULL, WNOHANG | __WALL);
			else
				(void)tree_signal_one(&t, &t.proc[i], SIGKILL);
		}
		if (!left)
			break;
		(void)usleep(STRAY_PAUSE_USEC);
	}
	tree_done(&t);
}

void keeper_done(struct keeper *k)
{
	int status = 0;
	bool clean = false;

	fd_close(&k->sock); /* EOF: a keeper that still lives ends its job */
	if (k->pid > 0) {
		/* In full its death is the job's. In floor it must do the killing: give
		 * it time. */
		if (k->grade == GRADE_FULL && k->pidfd >= 0)
			(void)syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
		while (waitpid(k->pid, &status, __WALL) < 0 && errno == EINTR)
			;
		clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
		forget(k->pid);
	}
	if (k->grade == GRADE_FLOOR && !clean)
		kill_strays();
	k->pid = 0;
	fd_close(&k->pidfd);
	limits_done(&k->limits);
}
