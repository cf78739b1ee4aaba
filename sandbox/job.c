/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job's own process, from fork to exec: the stages in their order. Each stage either
 * stands or ends everything: its name, errno and text go out on the status descriptor and
 * the process leaves with 78. The descriptor is O_CLOEXEC: end of file there means that
 * the exec worked.
 *
 *	fds	  nothing inherited but stdio and what the stages need
 *	session	  no controlling terminal, no inherited signal state, umask 077, death
 *		  with the keeper
 *	cwd	  before Landlock, by descriptor where there is one
 *	limits	  cgroup, rlimits, affinity (before the caps go: a cgroup namespace needs
 *		  them)
 *	caps	  none left, no_new_privs
 *	landlock  needs no_new_privs; after it, no mount and no signal outwards
 *	seccomp	  after Landlock, whose calls a job may use for walls of its own; its
 *		  listener goes to the keeper, no copy stays
 *	selftest  walks into each wall
 *	exec	  with the spec's environment, found along the spec's PATH
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/str.h"
#include "sandbox/notify.h"
#include "sandbox/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { KEEP_STATUS, KEEP_PROCS, KEEP_WORK, KEEP_MAX_ };

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define EXIT_EXEC_MISSING 127
#define EXIT_EXEC_DENIED 126

static NORETURN void leave(int status_fd, const char *stage, const struct err *err,
			   int code)
{
	struct job_status st = {.error_id = (uint32_t)err->id, .sys = err->sys};

	/* An error without a public name of its own is still a wall that does not stand.
	 */
	if (err->id == ERRID_NONE)
		st.error_id = ERRID_EXEC_SETUP;
	(void)snprintf(st.stage, sizeof(st.stage), "%s", stage);
	(void)snprintf(st.text, sizeof(st.text), "%.*s", SPAWN_TEXT_MAX - 1, err->msg);
	while (send(status_fd, &st, sizeof(st), MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
	_exit(code);
}

static int stage_session(struct err *err)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	pid_t parent = getppid();

	/* The keeper may have died before this line; getppid() has changed then. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(err, "PDEATHSIG");
	if (getppid() != parent)
		return err_set(err, ERR_SETUP, "the keeper is gone");
	if (getsid(0) != getpid() && setsid() < 0)
		return err_sys(err, "setsid");
	for (int s = 1; s <= SIGRTMAX; s++)
		(void)sigaction(s, &dfl, NULL); /* KILL, STOP and libc's own two refuse */
	if (sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return err_sys(err, "signal mask");
	umask(077);
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_sys(err, "dumpable");
	return 0;
}

static bool is_shown(const struct sbx_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const char *top = spec->mounts[i].path;
		size_t n = strlen(top);

		if (strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return true;
	}
	return false;
}

static int stage_cwd(const struct sbx_spec *spec, int work_fd, struct err *err)
{
	if (spec->cwd)
		return chdir(spec->cwd) < 0 ? err_sys(err, "chdir %s", spec->cwd) : 0;
	if (spec->workspace && spec->grade == GRADE_FULL)
		return chdir(PATH_WORK) < 0 ? err_sys(err, "chdir %s", PATH_WORK) : 0;
	if (spec->workspace)
		return fchdir(work_fd) < 0 ? err_sys(err, "chdir %s", spec->workspace)
					   : 0;
	if (spec->caller_cwd && is_shown(spec, spec->caller_cwd) &&
	    chdir(spec->caller_cwd) == 0)
		return 0;
	return chdir("/") < 0 ? err_sys(err, "chdir /") : 0;
}

static const char *env_get(const struct sbx_spec *spec, const char *name)
{
	size_t n = strlen(name);

	for (char *const *e = spec->env; *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* As execvp finds it, but along the job's PATH, and a file that is no program is not
 * handed to a shell. Returns only on failure. */
static int stage_exec(const struct sbx_spec *spec, struct err *err)
{
	const char *path = env_get(spec, "PATH"), *end;
	const char *name = spec->argv[0];
	char full[PATH_MAX];
	int worst = ENOENT;

	if (strchr(name, '/')) {
		execve(name, spec->argv, spec->env);
		return err_sys_id(err, ERRID_SANDBOX_EXEC, "%.100s", name);
	}
	for (path = path ? path : PATH_DEFAULT; path; path = *end ? end + 1 : NULL) {
		end = strchrnul(path, ':');
		if (end == path || *path != '/' ||
		    str_fmt(full, sizeof(full), "%.*s/%s", (int)(end - path), path,
			    name) < 0)
			continue;
		execve(full, spec->argv, spec->env);
		if (errno != ENOENT && errno != ENOTDIR)
			worst = errno;
		if (worst != ENOENT && worst != EACCES)
			break;
	}
	errno = worst;
	return err_sys_id(err, ERRID_SANDBOX_EXEC, "%.100s", name);
}

void job_main(const struct sbx_spec *spec, const struct sbx_root *root,
	      const struct sbx_limits *limits, const int stdio[3], int status_fd)
{
	struct sbx_limits own_limits = *limits;
	struct sbx_spec own_spec = *spec;
	struct err err = ERR_INIT;
	int keep[KEEP_MAX_] = {
		[KEEP_STATUS] = status_fd,
		[KEEP_PROCS] = limits->cgroup_procs_fd,
		[KEEP_WORK] =
			spec->grade == GRADE_FULL ? root->work_fd : spec->workspace_fd,
	};
	int abi, fd = status_fd, listener = -1;

	if (fds_arrange(stdio, keep, KEEP_MAX_, &err) < 0)
		leave(fd, "fds", &err, EXIT_SETUP);
	fd = keep[KEEP_STATUS];
	own_limits.cgroup_fd = own_limits.cgroup_parent_fd =
		-1; /* closed; the leaf is entered by its cgroup.procs */
	own_limits.cgroup_procs_fd = keep[KEEP_PROCS];
	own_spec.workspace_fd = keep[KEEP_WORK];
	if (stage_session(&err) < 0)
		leave(fd, "session", &err, EXIT_SETUP);
	if (stage_cwd(&own_spec, keep[KEEP_WORK], &err) < 0)
		leave(fd, "cwd", &err, EXIT_SETUP);
	if (limits_apply(&own_spec, &own_limits, &err) < 0)
		leave(fd, "limits", &err, EXIT_SETUP);
	if (walls_drop_caps(&err) < 0)
		leave(fd, "caps", &err, EXIT_SETUP);
	if (walls_landlock(&own_spec, &abi, &err) < 0)
		leave(fd, "landlock", &err, EXIT_SETUP);
	if (seccomp_install(&own_spec, &listener, &err) < 0 ||
	    notify_hand_over(fd, &listener, &err) < 0)
		leave(fd, "seccomp", &err, EXIT_SETUP);
	if (selftest_run(&own_spec, &err) < 0)
		leave(fd, "selftest", &err, EXIT_SETUP);
	(void)stage_exec(&own_spec, &err);
	leave(fd, "exec", &err, err.sys == ENOENT ? EXIT_EXEC_MISSING : EXIT_EXEC_DENIED);
}
