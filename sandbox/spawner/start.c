/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * The parent's side of a keeper: starting one, and seeing to it that nothing of it is left,
 * whatever way it ended, without waiting for anything that the job could hold.
 *
 * As a rule the guard has ended the job and has said so; what is left is the keeper's own end,
 * of which its pidfd tells. When the parent's socket ends without a report, the guard is dead.
 * Full: the keeper is pid 1 of the job's pid namespace, is killed here, and takes all of it
 * along; it is a zombie only when the namespace is empty. It may be held by the job, though,
 * and then dies when it is let go. Floor: the tree is handed up to us (we are a subreaper,
 * too). So in both what comes below such a keeper, and what was handed up, is looked for in
 * /proc and killed, again and again, until there is nothing more.
 */
#include "common/cleanup.h"
#include "sandbox/contract/handover.h"
#include "sandbox/contract/keeper.h"
#include "sandbox/keeper/tree.h"
#include "sandbox/keeper/tree_parts.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FULL_NAMESPACES                                                                  \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |      \
	 CLONE_NEWUTS)

/* Those with a job, those that wait for one, those that are about to end. */
static struct {
	pid_t pid;
	bool lost; /* its guard is dead */
} alive[KEEPERS_MAX];
static unsigned n_alive;

enum whose { NOBODYS, LIVING, LOST };

static enum whose keeper_of(pid_t pid)
{
	for (unsigned i = 0; i < n_alive; i++)
		if (alive[i].pid == pid)
			return alive[i].lost ? LOST : LIVING;
	return NOBODYS;
}

static void note_lost(pid_t pid)
{
	for (unsigned i = 0; i < n_alive; i++)
		alive[i].lost |= alive[i].pid == pid;
}

static void forget(pid_t pid)
{
	for (unsigned i = 0; i < n_alive; i++)
		if (alive[i].pid == pid)
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
	alive[n_alive].pid = k.pid;
	alive[n_alive++].lost = false;
	*ret = k;
	return 0;
}

int keeper_bind(struct keeper *k, const struct sbx_spec *spec, const struct payload *sent,
		const int stdio[3], int workspace, struct err *err)
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

/* One look: kills what is below a lost keeper, or was handed up to us. How many were met. */
static unsigned kill_strays(void)
{
	struct err err = ERR_INIT;
	unsigned left = 0;
	struct tree t;

	if (tree_init(&t, GRADE_FLOOR, 0, -1, &err) < 0)
		return 1; /* not known: come again */
	if (tree_scan(&t, &err) < 0) {
		t.n = 0;
		left = 1;
	}
	for (size_t i = 0; i < t.n; i++) {
		const struct tree_proc *p = &t.proc[i];
		pid_t top = p->member ? branch_of(&t, p) : 0;

		/* The keeper itself is waited for by its number. */
		if (!top || keeper_of(top) == LIVING || keeper_of(p->pid) == LOST)
			continue;
		left++;
		if (tree_is_dead(p) && p->ppid == t.self)
			(void)waitpid(p->pid, NULL, WNOHANG | __WALL);
		else
			(void)tree_signal_one(&t, p, SIGKILL);
	}
	tree_done(&t);
	return left;
}

void keeper_end(struct keeper *k, bool lost)
{
	fd_close(&k->sock); /* EOF: a guard that still lives ends its job */
	/* A lost one may only be stopped. */
	if ((k->grade == GRADE_FULL || lost) && k->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
	k->lost |= lost;
	if (k->lost)
		note_lost(k->pid);
}

/* Its zombie is there. */
static bool reap(struct keeper *k)
{
	int status = 0;
	pid_t pid = waitpid(k->pid, &status, WNOHANG | __WALL);

	if (pid == 0 || (pid < 0 && errno == EINTR))
		return false;
	k->reaped = true;
	/* Full: nothing can be left of it. */
	k->lost = k->grade == GRADE_FLOOR &&
		  !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return true;
}

bool keeper_is_over(struct keeper *k)
{
	unsigned left = k->lost ? kill_strays() : 0;

	if (!k->reaped && !reap(k))
		return false;
	if (k->lost && (left || kill_strays()))
		return false;
	forget(k->pid);
	k->pid = 0;
	fd_close(&k->pidfd);
	limits_done(&k->limits);
	return true;
}

void keeper_done(struct keeper *k, bool lost)
{
	keeper_end(k, lost);
	while (!keeper_is_over(k)) {
		struct pollfd p = {.fd = k->reaped ? -1 : k->pidfd, .events = POLLIN};

		(void)poll(&p, 1, k->lost ? STRAYS_MSEC : -1);
	}
}
