/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The walls of a daemon, tried from inside. Each attempt is made so that it would
 * do no harm if the wall were missing: what replaces or forks the process is
 * called with arguments that the kernel refuses with another error than the
 * wall's, so that only the wall's own answer counts as held.
 */
#include "common/cleanup.h"
#include "common/confine/priv.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

static void note(struct confine_report *rep, const char *wall, const char *what,
		 bool held, const char *answer)
{
	if (rep->n >= ARRAY_SIZE(rep->line)) {
		/* Nothing may be tried and then forgotten: say so in the last line. */
		rep->line[rep->n - 1].held = false;
		return;
	}
	/* A long path is cut; the start of the line names the wall. */
	(void)snprintf(rep->line[rep->n].wall, sizeof(rep->line[rep->n].wall), "%s%s",
		       wall, what);
	(void)snprintf(rep->line[rep->n].answer, sizeof(rep->line[rep->n].answer), "%s",
		       answer);
	rep->line[rep->n].held = held;
	rep->n++;
}

/* r: result of an attempt that must fail with EPERM, the filter's answer. */
static void note_eperm(struct confine_report *rep, const char *wall, long r)
{
	int sys = errno;
	const char *name = r >= 0 ? "succeeded" : strerrorname_np(sys);

	note(rep, wall, "", r < 0 && sys == EPERM, name ? name : "unknown errno");
}

/* Refused, or not there at all: both leave nothing to reach. */
static void note_path(struct confine_report *rep, const char *kind, const char *path,
		      int r)
{
	int sys = errno;
	bool held = r < 0 &&
		    (sys == EACCES || sys == EPERM || sys == ENOENT || sys == ENOTDIR);
	const char *name = r >= 0 ? "succeeded" : strerrorname_np(sys);

	note(rep, kind, path, held, name ? name : "unknown errno");
}

static int try_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd = -1;

	if (str_copy(sa.sun_path, sizeof(sa.sun_path), path) < 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	/* EAGAIN, ECONNREFUSED, EPROTOTYPE: the path was reached, which note_path()
	 * counts as a gap. */
	return connect(fd, (struct sockaddr *)&sa, sizeof(sa));
}

static int try_open(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -1 : 0;
}

/* ---- without a private root ---- */

/* One line for each, whether somebody listens there or not: it is the filter that answers. */
static void try_socket(const struct confine_policy *policy, struct confine_report *rep,
		       const char *label, const char *path)
{
	char what[32], answer[64];
	const char *wrong = confine_try_sockets(policy, path, what, sizeof(what));

	(void)snprintf(answer, sizeof(answer), "%s%s%s", wrong ? what : "refused",
		       wrong ? ": " : "", wrong ? wrong : "");
	note(rep, "unix:", label, !wrong, answer);
}

/* The sockets that give more than anything else here: they would run programs. */
static void try_sockets_of_others(const struct confine_policy *policy,
				  struct confine_report *rep)
{
	static const struct {
		const char *label, *below;
	} there[] = {{"user bus", "bus"}, {"Podman", "podman/podman.sock"}};
	const char *run = getenv("XDG_RUNTIME_DIR");
	const char *agent = getenv("SSH_AUTH_SOCK");
	char path[256];

	try_socket(policy, rep, "api", policy->api_socket);
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		int r = run && run[0] == '/'
				? str_fmt(path, sizeof(path), "%s/%s", run,
					  there[i].below)
				: str_fmt(path, sizeof(path), "/run/user/%u/%s", getuid(),
					  there[i].below);

		try_socket(policy, rep, there[i].label, r < 0 ? "" : path);
	}
	try_socket(policy, rep, "ssh agent",
		   agent && agent[0] == '/' ? agent : "/nonexistent/agent");
	try_socket(policy, rep, "an abstract name", "@lychgate-self-test");
}

/* The filter answers before the kernel looks for the descriptor or the name, which are none. */
static void try_modes(const struct confine_policy *policy, struct confine_report *rep)
{
	static const char none[] = "/nonexistent/lychgate";
	const mode_t over = policy->may_change_modes ? 0775 : 0640;
	long r = fchmod(-1, over);

	if (r < 0 && errno == EPERM)
		r = chmod(none, over);
	if (r < 0 && errno == EPERM)
		r = fchmodat(AT_FDCWD, none, over, 0);
	if (r < 0 && errno == EPERM)
		r = syscall(FCHMODAT2, AT_FDCWD, none, over, AT_SYMLINK_NOFOLLOW);
	note_eperm(rep, "modes for others", r);
}

/* Names of sockets, which others may take for somebody else's. */
static void try_listening(const struct confine_policy *policy, struct confine_report *rep)
{
	if (policy->may_listen)
		return;
	if (!policy->may_make_inet_sockets)
		note_eperm(rep, "bind", syscall(SYS_bind, -1, NULL, 0));
	note_eperm(rep, "listen", syscall(SYS_listen, -1, 1));
}

static void try_files(const struct confine_policy *policy, struct confine_report *rep,
		      const char *const *foreign)
{
	const char *home = getenv("HOME");
	const char *run = getenv("XDG_RUNTIME_DIR");
	char path[256];

	if (home && home[0] == '/') {
		if (str_fmt(path, sizeof(path), "%s/.ssh", home) == 0)
			note_path(rep, "read:", "~/.ssh", try_open(path));
		note_path(rep, "read:", "~", try_open(home));
	}
	if (policy->unrooted)
		try_sockets_of_others(policy, rep);
	else if (run && run[0] == '/' && str_fmt(path, sizeof(path), "%s/bus", run) == 0)
		note_path(rep, "connect:", "user bus", try_connect(path));
	if (!policy->unrooted &&
	    str_fmt(path, sizeof(path), "/run/user/%u/bus", getuid()) == 0)
		note_path(rep, "connect:", path, try_connect(path));
	for (; foreign && *foreign; foreign++) {
		struct stat st;

		if (policy->unrooted && stat(*foreign, &st) == 0 && S_ISSOCK(st.st_mode))
			try_socket(policy, rep, *foreign, *foreign);
		else if (stat(*foreign, &st) == 0 && S_ISSOCK(st.st_mode))
			note_path(rep, "connect:", *foreign, try_connect(*foreign));
		else
			note_path(rep, "read:", *foreign, try_open(*foreign));
	}
}

static void try_becoming(const struct confine_policy *policy, struct confine_report *rep)
{
	char *const argv[] = {(char[]){"x"}, NULL};
	char *const none[] = {NULL};
	void *page;
	long pid;

	note_eperm(rep, "exec", execve("/nonexistent/lychgate", argv, none));
	note_eperm(rep, "execveat",
		   syscall(SYS_execveat, -1, "", argv, none, AT_EMPTY_PATH));
	/* the one call that fork() makes is a parent's work, whose filter its children have, too;
	 * any other is not */
	pid = syscall(SYS_clone,
		      policy->may_fork
			      ? SIGCHLD
			      : CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD,
		      0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	note_eperm(rep, policy->may_fork ? "other clone" : "fork", pid);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	note_eperm(rep, "namespace", unshare(CLONE_NEWUSER));
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	note_eperm(rep, "executable memory", page == MAP_FAILED ? -1 : 0);
	if (page != MAP_FAILED)
		(void)munmap(page, 4096);
}

static void try_neighbours(struct confine_report *rep)
{
	pid_t parent = getppid();
	long r;

	/* The parent may live outside this pid namespace: then the nearest other pid. */
	if (parent <= 0)
		parent = getpid() == 1 ? 2 : 1;
	r = ptrace(PTRACE_SEIZE, parent, NULL, NULL);
	note_eperm(rep, "ptrace parent", r);
	if (r == 0)
		(void)ptrace(PTRACE_DETACH, parent, NULL, NULL);
	note_eperm(rep, "signal parent", kill(parent, SIGCONT));
}

static void try_sockets(const struct confine_policy *policy, struct confine_report *rep)
{
	static const struct {
		const char *name;
		int family;
	} families[] = {
		/* the first two are the network's */
		{"socket:inet", AF_INET},
		{"socket:inet6", AF_INET6},
		{"socket:netlink", AF_NETLINK},
		{"socket:packet", AF_PACKET},
	};

	for (size_t i = policy->may_make_inet_sockets ? 2 : 0; i < ARRAY_SIZE(families);
	     i++) {
		int fd = socket(families[i].family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		note_eperm(rep, families[i].name, fd);
		fd_close(&fd);
	}
	if (!policy->may_make_unix_sockets && !policy->unrooted) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		note_eperm(rep, "socket:unix", fd);
		fd_close(&fd);
	}
	note_eperm(rep, "io_uring", syscall(SYS_io_uring_setup, 0, NULL));
}

/* Not attempts but the kernel's own word about this process. */
static void read_state(struct confine_report *rep)
{
	char status[64];
	int nnp = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	int mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	bool held = nnp == 1 && dumpable == 0 && mode == SECCOMP_MODE_FILTER;

	(void)snprintf(status, sizeof(status), "no_new_privs %d, dumpable %d, seccomp %d",
		       nnp, dumpable, mode);
	note(rep, "state", "", held, status);
}

int confine_selftest(const struct confine_policy *policy, const char *const *foreign,
		     struct confine_report *ret, struct err *err)
{
	*ret = (struct confine_report){0};
	read_state(ret);
	try_becoming(policy, ret);
	try_sockets(policy, ret);
	try_neighbours(ret);
	try_files(policy, ret, foreign);
	if (policy->unrooted) {
		try_modes(policy, ret);
		try_listening(policy, ret);
	}
	for (unsigned i = 0; i < ret->n; i++)
		if (!ret->line[i].held)
			return err_set_id(err,
					  policy->unrooted ? ERRID_START_UNROOTED
							   : ERRID_START_CONFINE,
					  "%s: the wall '%s' does not hold: %s",
					  policy->name, ret->line[i].wall,
					  ret->line[i].answer);
	return 0;
}
