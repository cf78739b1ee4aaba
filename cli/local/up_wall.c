/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The tomb's wall in embedded mode. Theory of operation:
 *
 * In a pod a container stands around the tomb; on a bare workstation this file
 * makes that wall. The supervisor starts `lych _tomb` (inside a delegated scope
 * where a systemd user manager runs). That process
 *
 *  1. in a scope: moves itself to a leaf, turns the controllers on and makes the
 *     group that jobs get (up_cgroup.c: or says why this scope can't keep limits);
 *  2. proves that the tomb before is dead, with all that it started, and leaves
 *     word of it for the next one (up_gone.c);
 *  3. clones a child into new user, mount, pid, network, ipc and uts namespaces,
 *     the calling uid mapped to itself and nothing else mapped, records who that
 *     is, and only then lets it go on;
 *  4. stays outside as its guard: passes SIGTERM on, ends with the child's code,
 *     and takes the child with it when it dies.
 *
 * The child takes a clone of every tree that it may see (open_tree) *before* it
 * puts anything in place, moves those clones into an empty tmpfs, pivots into it
 * and detaches the old root (with a tmpfs for the folders of jobs, or a file system that
 * the owner named, where codex.yaml says so). What was not cloned does not exist there: no home,
 * no api socket, no user bus, no vessel data, no other secret. Then it drops every
 * capability, sets no_new_privs and executes lych-tomb as pid 1. It stays dumpable
 * across that exec (an ordinary one), since the spawner has to write uid maps.
 *
 * Where the owner said `daemons: no_private_root` (docs/adr/0047) there are no namespaces:
 * steps 1, 2 and 4 stay, the child executes lych-tomb under no_new_privs where it is, and
 * the tomb's own walls are all that there is. Nobody could prove such a tomb dead with all
 * that it started, so it is not recorded, and the leases of one that died run out.
 *
 * Whatever fails here ends the child with 78 before the exec: no wall, no tomb.
 */
#include "cli/local/up_wall.h"
#include "cli/base/cmd.h"
#include "cli/base/proc.h"
#include "cli/local/up.h"
#include "cli/local/up_gone.h"

#include "common/cleanup.h"
#include "common/crypto/tomb_secret.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "common/proto.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TOMB_ARGV_SIZE 32
#define STOP_AGAIN_MSEC 100

/* By errno. Some hosts let user namespaces be made, and give no right in them. */
static enum err_id why_refused(void)
{
	return errno == EPERM || errno == EACCES || errno == ENOSPC ? ERRID_START_USERNS
								    : ERRID_SANDBOX_NS;
}

static int write_text(const char *path, const char *text, struct err *err)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return err_sys_id(err, why_refused(), "write %s", path);
	return 0;
}

static int map_self(uid_t uid, gid_t gid, struct err *err)
{
	char line[64];

	if (str_fmt(line, sizeof(line), "%u %u 1\n", uid, uid) < 0 ||
	    write_text("/proc/self/setgroups", "deny", err) < 0 ||
	    write_text("/proc/self/uid_map", line, err) < 0)
		return err_wrap(err, "in a new user namespace");
	if (str_fmt(line, sizeof(line), "%u %u 1\n", gid, gid) < 0 ||
	    write_text("/proc/self/gid_map", line, err) < 0)
		return err_wrap(err, "in a new user namespace");
	return 0;
}

/* ---- the child ------------------------------------------------------------ */

static int drop_everything(struct err *err)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return err_sys_id(err, ERRID_SANDBOX_CAPS, "bounding set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &h, none) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "capset");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "no_new_privs");
	return 0;
}

static void tomb_arguments(const struct wall *w, const char *argv[TOMB_ARGV_SIZE])
{
	size_t n = 0;

	argv[n++] = "lych-tomb";
	argv[n++] = "--name";
	argv[n++] = TOMB_NAME;
	argv[n++] = "--data";
	argv[n++] = w->unrooted ? w->data : "/lych/tomb";
	argv[n++] = "--work-dir";
	argv[n++] = w->unrooted ? w->work : "/lych/work";
	argv[n++] = "--queue";
	argv[n++] = w->queue;
	if (w->pg) {
		argv[n++] = "--pg-dir";
		argv[n++] = w->unrooted ? w->pg : "/lych/pg";
	}
	argv[n++] = "--secrets";
	argv[n++] = w->unrooted ? w->secrets : "/lych/secrets";
	argv[n++] = "--sandbox";
	argv[n++] = w->unrooted ? w->sandbox : "/lych/bin/lych-sandbox";
	argv[n++] = "--slots";
	argv[n++] = w->slots;
	argv[n++] = "--grade";
	argv[n++] = w->grade;
	if (w->cgroup) {
		argv[n++] = "--cgroup";
		argv[n++] = w->unrooted ? w->cgroup : "/lych/cgroup";
	}
	argv[n++] = "--jobs-apart";
	argv[n++] = w->jobs_dir || w->jobs_tmpfs ? "yes" : "no";
	if (w->ready) {
		argv[n++] = "--ready-fd";
		argv[n++] = "3";
	}
	if (w->unrooted) {
		argv[n++] = "--no-private-root";
		argv[n++] = "--dial-fd";
		argv[n++] = "4";
	}
	argv[n] = NULL;
}

_Static_assert(PROC_READY_FD == 3 && PROC_DIAL_FD == 4, "as the tomb is told");

/* What the child does before it is the tomb. */
static int raise_wall(const struct wall *w, uid_t uid, gid_t gid, struct err *err)
{
	if (!w->unrooted && (map_self(uid, gid, err) < 0 || wall_build_root(w, err) < 0))
		return -1;
	if (w->unrooted)
		return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
			       ? err_sys_id(err, ERRID_SANDBOX_CAPS, "no_new_privs")
			       : 0;
	return drop_everything(err);
}

NORETURN static void wall_child(const struct wall *w, uid_t uid, gid_t gid, int alive)
{
	struct err err = ERR_INIT;
	struct pollfd guard = {.fd = alive, .events = POLLIN};
	sigset_t none;
	cleanup_env char **env = proc_env_of_daemons(w->unrooted);
	const char *program = w->unrooted ? w->tomb : "/lych/bin/lych-tomb";
	int last_kept = w->unrooted ? PROC_DIAL_FD : w->ready ? PROC_READY_FD : 2;
	const char *argv[TOMB_ARGV_SIZE];
	char go;

	if (read(alive, &go, 1) != 1)
		_exit(EXIT_SETUP); /* the guard ended before it had recorded us */
	assert(program);
	tomb_arguments(w, argv);
	if (raise_wall(w, uid, gid, &err) < 0)
		goto fail;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || poll(&guard, 1, 0) != 0) {
		(void)err_set_id(&err, ERRID_START_CONFINE, "the tomb's guard is gone");
		goto fail;
	}
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (syscall(SYS_close_range, last_kept + 1, ~0U, 0) < 0) {
		(void)err_sys(&err, "close_range");
		goto fail;
	}
	execve(program, (char *const *)(uintptr_t)argv, env);
	(void)err_sys_id(&err, ERRID_START_TOOL, "exec lych-tomb");
fail:
	log_err(LOG_ERROR_, "the tomb's wall cannot stand; the tomb is not started",
		&err);
	_exit(EXIT_SETUP);
}

/* ---- the guard ------------------------------------------------------------ */

/* The starter hears on the ready pipe why there are no cgroup limits. */
static int tell_reason(const struct wall *w, const char *reason, struct err *err)
{
	cleanup_free char *line = xasprintf(UP_NO_CGROUP "%s\n", reason);

	log_kv(LOG_INFO_, "limits are kept without cgroups", "reason", reason, NULL);
	return w->ready ? fs_write_all(PROC_READY_FD, line, strlen(line), err) : 0;
}

static int choose_limits(struct wall *w, struct err *err)
{
	cleanup_free char *reason = NULL;

	if (!w->scope)
		return 0;
	if (up_cgroup_prepare(&w->cgroup, &reason, err) < 0)
		return -1;
	return reason ? tell_reason(w, reason, err) : 0;
}

/* The child is the first of its PID namespace: until it has a handler, the kernel drops what would
 * end it. So who was told to stop is told again. */
static int guard_loop(pid_t child, const sigset_t *mask, struct err *err)
{
	cleanup_close int sfd = signalfd(-1, mask, SFD_CLOEXEC | SFD_NONBLOCK);
	bool stops = false;
	int status;

	if (sfd < 0)
		return err_sys(err, "signalfd");
	for (;;) {
		struct pollfd p = {.fd = sfd, .events = POLLIN};
		struct signalfd_siginfo si;
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got == child)
			return WIFEXITED(status) ? WEXITSTATUS(status)
						 : 128 + WTERMSIG(status);
		(void)poll(&p, 1, stops ? STOP_AGAIN_MSEC : -1);
		while (read(sfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
			stops |= si.ssi_signo != SIGCHLD;
		if (stops)
			(void)kill(child, SIGTERM);
	}
}

/* Before there is a new one. A proof that cannot be had or told costs a wait: the leases
 * run out. But a record must never name one who is not the last. */
static int settle_before(const struct wall *w, struct err *err)
{
	struct err told = ERR_INIT;
	const char *word = gone_prove(w->record);

	if (gone_tell(w->data, word, &told) < 0)
		log_err(LOG_WARN_, "the leases of an earlier tomb will run out", &told);
	return gone_forget(w->record, err);
}

static void let_go(const struct wall *w, pid_t pid, int alive)
{
	struct err err = ERR_INIT;

	if (!w->unrooted && gone_record(w->record, pid, getppid(), &err) < 0)
		log_err(LOG_WARN_, "if this tomb dies its leases will run out", &err);
	(void)signal(SIGPIPE, SIG_IGN); /* it may have ended already */
	(void)!write(alive, "", 1);
}

static int guard_run(struct wall *w, struct err *err)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int alive[2];
	sigset_t mask;
	long pid;

	/* Here, where the whole mount table can be seen. */
	if (w->jobs_dir && mountinfo_check_own(w->jobs_dir, err) < 0)
		return -1;
	if (choose_limits(w, err) < 0 || settle_before(w, err) < 0)
		return -1;
	if (pipe2(alive, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return err_sys(err, "sigprocmask");
	pid = syscall(SYS_clone,
		      (w->unrooted ? 0
				   : CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
					     CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) |
			      SIGCHLD,
		      NULL, NULL, NULL, NULL);
	if (pid < 0)
		return err_sys_id(err, why_refused(), "namespaces of the tomb");
	if (pid == 0) {
		(void)close(alive[1]);
		wall_child(w, uid, gid, alive[0]);
	}
	(void)close(alive[0]);
	let_go(w, (pid_t)pid, alive[1]);
	if (w->ready)
		(void)close(PROC_READY_FD);
	if (w->unrooted)
		(void)close(PROC_DIAL_FD);
	return guard_loop((pid_t)pid, &mask, err);
}

/* ---- the command line ------------------------------------------------------- */

static const struct option options[] = {
	{"data", required_argument, NULL, 'd'},
	{"work", required_argument, NULL, 'w'},
	{"queue", required_argument, NULL, 'q'},
	{"pg", required_argument, NULL, 'p'},
	{"secrets", required_argument, NULL, 's'},
	{"tomb", required_argument, NULL, 't'},
	{"sandbox", required_argument, NULL, 'x'},
	{"tools", required_argument, NULL, 'o'},
	{"slots", required_argument, NULL, 'n'},
	{"grade", required_argument, NULL, 'g'},
	{"scope", no_argument, NULL, 'c'},
	{"ready", no_argument, NULL, 'r'},
	{"record", required_argument, NULL, 'b'},
	{"jobs-dir", required_argument, NULL, 'j'},
	{"jobs-tmpfs", required_argument, NULL, 'm'},
	{"no-private-root", no_argument, NULL, 'u'},
	{NULL, 0, NULL, 0},
};

static bool is_whole(const struct wall *w)
{
	enum queue_door door = DOOR_MAX_;

	return w->data && w->work && w->secrets && w->tomb && w->sandbox && w->tools &&
	       w->slots && w->grade && w->record && w->queue &&
	       queue_door_from_name(w->queue, &door) &&
	       (door == DOOR_POSTGRES) == (w->pg != NULL) && (w->ready || !w->unrooted);
}

/* False: there is an option that is none, or one is missing. */
static bool wall_parse(int argc, char **argv, struct wall *w)
{
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			w->data = optarg;
			break;
		case 'w':
			w->work = optarg;
			break;
		case 'q':
			w->queue = optarg;
			break;
		case 'p':
			w->pg = optarg;
			break;
		case 's':
			w->secrets = optarg;
			break;
		case 't':
			w->tomb = optarg;
			break;
		case 'x':
			w->sandbox = optarg;
			break;
		case 'o':
			w->tools = optarg;
			break;
		case 'n':
			w->slots = optarg;
			break;
		case 'g':
			w->grade = optarg;
			break;
		case 'c':
			w->scope = true;
			break;
		case 'r':
			w->ready = true;
			break;
		case 'b':
			w->record = optarg;
			break;
		case 'j':
			w->jobs_dir = optarg;
			break;
		case 'u':
			w->unrooted = true;
			break;
		case 'm':
			w->jobs_tmpfs = optarg;
			break;
		default:
			return false;
		}
	}
	return is_whole(w);
}

int cmd_tomb_wall(int argc, char **argv)
{
	struct wall w = {0};
	struct err err = ERR_INIT;
	int code;

	log_init("tomb-wall", LOG_INFO_);
	if (!wall_parse(argc, argv, &w))
		return EXIT_USAGE;
	code = guard_run(&w, &err);
	if (code < 0) {
		log_err(LOG_ERROR_,
			"the tomb's wall cannot stand; the tomb is not started", &err);
		return EXIT_SETUP;
	}
	free(w.cgroup);
	return code;
}
