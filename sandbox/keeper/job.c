/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * The job's own process, from fork to exec: the stages in their order. Each stage either
 * stands or ends everything: its name, errno and text go out on the status socket and
 * the process leaves with 78. The socket is O_CLOEXEC: end of file there means that the
 * exec worked.
 *
 * What needs no spec comes first, so that a warm sandbox waits behind it:
 *
 *	fds	  nothing inherited but stdio and what the stages need
 *	session	  no controlling terminal but one of its own (--tty), no inherited
 *		  signal state, umask 077, death with the keeper
 *	cgroup	  the leaf, and a cgroup namespace, which needs capabilities
 *	proc	  full: what of /proc is the host's is covered, which needs them too
 *	caps	  none left, no_new_privs
 *	seccomp	  before Landlock takes effect: the filter lets a job build walls of its
 *		  own, and these are ours. Its listener goes to the keeper, no copy stays
 *
 * Then, when the keeper says so (struct job_go; a warm job reads its spec from there):
 *
 *	stdio	  warm: in place of /dev/null
 *	broker	  floor: the job's end as BROKER_FD
 *	cwd	  before Landlock, by descriptor where there is one
 *	limits	  rlimits (the keeper has set the affinity)
 *	landlock  with the rules that the keeper made meanwhile
 *	selftest  walks into each wall
 *	exec	  with the spec's environment, found along the spec's PATH
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/landlock.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "sandbox/contract/handover.h"
#include "sandbox/contract/paths.h"
#include "sandbox/keeper/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The first becomes BROKER_FD: its number stays taken until the broker's end comes, or
 * until exec. */
enum { KEEP_PLACE, KEEP_STATUS, KEEP_PROCS, KEEP_WORK, KEEP_MAX_ };

struct job {
	struct sbx_spec spec;
	bool warm; /* the spec is a shape until job_go */
	const char *jobs_dir;
	int status_fd, work_fd;
	unsigned nproc;
	struct landlock_set landlock; /* from the keeper */
};

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

/* terminal: stdin is one that nobody else has. */
static int stage_session(bool terminal, struct err *err)
{
	sigset_t none;

	if (setsid() < 0)
		return err_sys(err, "setsid");
	if (terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		return err_sys_id(err, ERRID_TTY_JOB, "make it the controlling one");
	/* Dispositions are inherited, and at their defaults (ns_default_signals) but this one, which a
	 * spawner ignores for itself: `yes | head` would complain. */
	(void)signal(SIGPIPE, SIG_DFL);
	if (sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return err_sys(err, "signal mask");
	umask(077);
	return 0;
}

static bool is_in(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_shown(const struct sbx_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (is_in(path, spec->mounts[i].path))
			return true;
	for (const char *const *p = paths_system; *p; p++)
		if (is_in(path, *p))
			return true;
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

/* Returns only on failure. */
static OWN_FRAME int exec_along_path(const struct sbx_spec *spec, struct err *err)
{
	const char *path = env_get(spec, "PATH"), *end;
	const char *name = spec->argv[0];
	char full[PATH_MAX];
	int worst = ENOENT;

	for (path = path ? path : JOB_PATH; path; path = *end ? end + 1 : NULL) {
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

/* As execvp finds it, but along the job's PATH, and a file that is no program is not
 * handed to a shell. Returns only on failure. */
static int stage_exec(const struct sbx_spec *spec, struct err *err)
{
	const char *name = spec->argv[0];

	if (!strchr(name, '/'))
		return exec_along_path(spec, err);
	execve(name, spec->argv, spec->env);
	return err_sys_id(err, ERRID_SANDBOX_EXEC, "%.100s", name);
}

/* Warm: the same block that the spawner judged. */
static int take_spec(struct job *j, const struct payload *sent, const int *fds,
		     struct err *err)
{
	struct sbx_spec spec;

	if (sbx_spec_parse_block(sent->block, sent->bytes, &spec, err) < 0)
		return -1;
	/* HOME and TMPDIR are in the workspace, whose path it is told as of a cold one. */
	if (spec.grade == GRADE_FLOOR &&
	    sbx_spec_base_workspace(&spec, j->jobs_dir, err) < 0)
		return -1;
	j->spec = spec;
	j->work_fd = fds[HANDOVER_WORK];
	return fds_replace_stdio(&fds[HANDOVER_STDIN], err);
}

static int take_broker(int fd, struct err *err)
{
	if (dup3(fd, BROKER_FD, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_BROKER, "place descriptor %d",
				  BROKER_FD);
	fd_close(&fd);
	return 0;
}

/* In both kinds: the rules, and the broker's end. */
static int take_go(struct job *j, const struct job_go *go, const int *fds, unsigned n_fds,
		   unsigned wanted, struct err *err)
{
	if (go->broker > 1 || n_fds < 1 + go->broker + wanted)
		return err_set(err, ERR_SETUP, "the keeper gave too little");
	j->nproc = go->nproc;
	j->landlock.fd = fds[0];
	return go->broker ? take_broker(fds[1], err) : 0;
}

static int go_warm(struct job *j, struct err *err)
{
	static const char ready = 1;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	struct payload spec = PAYLOAD_NONE;
	struct job_go go;
	unsigned n_fds = 0;

	if (send(j->status_fd, &ready, sizeof(ready), MSG_NOSIGNAL) < 0)
		return err_sys(err, "tell the keeper");
	if (handover_recv(j->status_fd, &go, sizeof(go), fds, &n_fds, err) < 0)
		return err_wrap(err, "the keeper is gone");
	if (payload_take(go.spec_bytes, fds, &n_fds, &spec, err) < 0 ||
	    take_go(j, &go, fds, n_fds, HANDOVER_WORK, err) < 0)
		return -1;
	/* What the spec has of its own goes with exec. */
	return take_spec(j, &spec, fds + 1 + go.broker, err);
}

static int go_cold(struct job *j, struct err *err)
{
	int fds[FDPASS_MAX] = FDPASS_NONE;
	struct job_go go;
	unsigned n_fds = 0;

	if (handover_recv(j->status_fd, &go, sizeof(go), fds, &n_fds, err) < 0)
		return err_wrap(err, "the keeper is gone");
	return take_go(j, &go, fds, n_fds, 0, err);
}

static const char *before_spec(struct job *j, const struct sbx_birth *birth,
			       const struct sbx_limits *limits, struct err *err)
{
	int keep[KEEP_MAX_] = {[KEEP_PLACE] = j->status_fd,
			       [KEEP_STATUS] = j->status_fd,
			       [KEEP_PROCS] = limits->cgroup_procs_fd,
			       [KEEP_WORK] = j->work_fd};
	int listener = -1;

	if (fds_arrange(birth->stdio, keep, KEEP_MAX_, err) < 0)
		return "fds";
	j->status_fd = keep[KEEP_STATUS];
	j->work_fd = keep[KEEP_WORK];
	if (stage_session(birth->terminal, err) < 0)
		return "session";
	if (limits_enter(j->spec.grade, keep[KEEP_PROCS], err) < 0)
		return "limits";
	fd_close(&keep[KEEP_PROCS]);
	if (j->spec.grade == GRADE_FULL && root_cover_proc(err) < 0)
		return "proc";
	if (walls_drop_caps(err) < 0)
		return "caps";
	if (seccomp_install(&j->spec, &listener, err) < 0 ||
	    notify_hand_over(j->status_fd, &listener, err) < 0)
		return "seccomp";
	return NULL;
}

static const char *after_spec(struct job *j, struct err *err)
{
	if (stage_cwd(&j->spec, j->work_fd, err) < 0)
		return "cwd";
	if (limits_apply(&j->spec, j->nproc, err) < 0)
		return "limits";
	if (landlock_enforce(&j->landlock, err) < 0)
		return "landlock";
	return selftest_run(&j->spec, j->status_fd, err) < 0 ? "selftest" : NULL;
}

void job_main(const struct sbx_birth *birth, const struct sbx_limits *limits, int work_fd,
	      int status_fd)
{
	struct job j = {.spec = *birth->spec,
			.warm = birth->warm,
			.jobs_dir = birth->jobs_dir,
			.status_fd = status_fd,
			.work_fd = work_fd};
	struct err err = ERR_INIT;
	const char *failed = before_spec(&j, birth, limits, &err);

	if (!failed && (j.warm ? go_warm(&j, &err) : go_cold(&j, &err)) < 0)
		failed = "spec";
	if (!failed)
		failed = after_spec(&j, &err);
	if (failed)
		leave(j.status_fd, failed, &err, EXIT_SETUP);
	(void)stage_exec(&j.spec, &err);
	leave(j.status_fd, "exec", &err,
	      err.sys == ENOENT ? EXIT_EXEC_MISSING : EXIT_EXEC_DENIED);
}
