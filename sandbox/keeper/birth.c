/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper.
 * The birth of a sandbox: everything that the keeper does before the job runs. Two
 * halves: what the walls are built from (birth_give), and what one job brings (the second
 * half of birth_give in a cold start, birth_bind in a warm one). Between them a warm
 * sandbox waits. The keeper's capabilities live until the workspace is attached, and are
 * gone before the job is told to go on.
 */
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/landlock.h"
#include "sandbox/contract/handover.h"
#include "sandbox/keeper/diag.h"
#include "sandbox/keeper/keep.h"
#include "sandbox/walls/caps.h"
#include "sandbox/walls/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int keeper_confine(const struct sbx_spec *spec, struct err *err)
{
	static const int full[] = {CAP_SYS_PTRACE, CAP_KILL, CAP_DAC_READ_SEARCH, -1};
	static const int floor_caps[] = {-1};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys_id(err, ERRID_SANDBOX_CAPS, "no_new_privs of the keeper");
	return caps_keep_only(spec->grade == GRADE_FULL ? full : floor_caps, err);
}

static int block_signals(struct err *err)
{
	sigset_t all;

	(void)sigfillset(&all);
	return sigprocmask(SIG_SETMASK, &all, NULL) < 0 ? err_sys(err, "block signals")
							: 0;
}

void birth_of_job(const struct guard_birth *born, struct watch *w, pid_t guard)
{
	atomic_store(&w->main_pid, getpid()); /* before its first message */
	if (born->birth->warm)
		ns_map_code();
	/* Nothing of the job exists yet that could look at us: exec would do the same. The
	 * guard may have died before the third; getppid() has changed then. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != guard)
		_exit(EXIT_SETUP);
	job_main(born->birth, born->limits, born->work_fd, born->status_fd);
}

/* The trees whose size counts: the workspace, and what is added to the user's own trees.
 */
static int supervise_trees(struct keep *k, const int *rw, size_t n_rw, struct err *err)
{
	int work = k->spec->grade == GRADE_FULL ? k->root.work_fd : k->spec->workspace_fd;
	int fd;

	if (work >= 0 && use_set_work(&k->use, work, err) < 0)
		return -1;
	if (k->spec->workspace && !k->spec->workspace_ro) {
		fd = fcntl(work, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return err_sys(err, "workspace");
		if (disk_add(&k->disk, fd, false, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < n_rw; i++)
		if (disk_add(&k->disk, rw[i], true, err) < 0)
			return -1;
	return 0;
}

/* Before the root goes away: descriptors of the writable trees of the spec. */
static int open_rw(const struct sbx_spec *spec, int *rw, size_t *n, struct err *err)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		struct stat st;
		int fd;

		if (spec->mounts[i].kind != MOUNT_RW)
			continue;
		fd = open(spec->mounts[i].path, O_PATH | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return err_sys_id(err, ERRID_SANDBOX_ROOT, "open %s",
					  spec->mounts[i].path);
		if (!S_ISDIR(st.st_mode)) {
			fd_close(&fd); /* one file: RLIMIT_FSIZE is its limit */
			continue;
		}
		if (*n == DISK_ROOTS_MAX - 1)
			return err_set_id(
				err, ERRID_SANDBOX_LIMIT,
				"disk: more than %d writable trees cannot be supervised",
				DISK_ROOTS_MAX - 1);
		rw[(*n)++] = fd;
	}
	return 0;
}

int birth_await_guard(struct keep *k, struct err *err)
{
	struct pollfd p[] = {{.fd = k->stands_fd, .events = POLLIN},
			     {.fd = k->words}}; /* its end */
	int r;

	if (k->stands_fd < 0)
		return 0;
	do
		r = poll(p, ARRAY_SIZE(p), (int)(SETUP_MAX_USEC / USEC_PER_MSEC));
	while (r < 0 && errno == EINTR);
	if (!(p[0].revents & POLLIN))
		return err_set_id(err, ERRID_EXEC_SETUP, "the guard did not come up");
	fd_close(&k->stands_fd);
	return 0;
}

/* The guard sees in it whether we are held; looked up by us, since nobody else may. */
static int open_pulse(const struct keep *k, struct err *err)
{
	int fd = k->root.proc_fd >= 0
			 ? openat(k->root.proc_fd, "self/status", O_RDONLY | O_CLOEXEC)
			 : open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_sys_id(err, ERRID_SANDBOX_LIMIT,
				   "open /proc/self/status: nothing could be supervised")
		      : fd;
}

static int fork_job(struct keep *k, struct err *err)
{
	struct guard_birth born = {.birth = &k->birth,
				   .limits = &k->limits,
				   .parent_sock = k->sock,
				   .work_fd = k->spec->workspace_fd};
	cleanup_close int pulse = open_pulse(k, err);
	int sv[2], words[2], r;

	k->stands_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->stands_fd < 0)
		return err_sys(err, "eventfd");
	if (pulse < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(err, "socketpair");
	born.status_fd = sv[1];
	born.stands_fd = k->stands_fd;
	born.pulse_fd = pulse;
	born.proc_fd = k->root.proc_fd;
	r = guard_fork(&born, &k->guard_pid, words, &k->watch, err);
	if (r == 0) {
		k->words = words[0];
		k->meter_words = words[1];
	}
	fd_close(&sv[1]);
	k->status_fd = sv[0];
	if (r < 0)
		return -1;
	k->notify.log = &k->watch->denials;
	k->notify.filters_made = &k->watch->filters_made;
	k->notify.shared_maps = &k->watch->shared_maps;
	return 0;
}

/* spec, handed: what a warm job still lacks, in the order of handover.h. */
static int let_go(struct keep *k, const struct payload *spec, const int *handed,
		  unsigned n, struct err *err)
{
	struct job_go go = {.nproc = k->limits.nproc,
			    .spec_bytes = spec ? spec->bytes : 0,
			    .broker = k->broker.job >= 0};
	unsigned n_fds = 0;
	int fds[HANDOVER_FDS], r;

	if (walls_landlock_workspace(k->spec, &k->rules, err) < 0)
		return -1;
	fds[n_fds++] = k->rules.fd;
	if (go.broker)
		fds[n_fds++] = k->broker.job;
	for (unsigned i = 0; i < n; i++)
		fds[n_fds++] = handed[i];
	/* The rules stay open here: their end, which takes the kernel its time, is ours then,
	 * not in the middle of the job's start. */
	r = handover_send(k->status_fd, &go, sizeof(go), spec, fds, n_fds, err);
	fd_close(&k->broker.job);
	return r;
}

/* When the machine runs out of memory the kernel takes the job, not who watches it nor the
 * user's own programs. The job cannot take it back: /proc is read-only for it. */
int birth_first_for_oom(const struct keep *k, struct err *err)
{
	static const char most[] = "1000"; /* proc_pid_oom_score_adj(5) */
	char path[40];
	cleanup_close int fd = -1;

	(void)snprintf(path, sizeof(path), "%d/oom_score_adj", k->main_pid);
	fd = openat(k->tree.proc_fd, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, most, sizeof(most) - 1) != (ssize_t)sizeof(most) - 1)
		return err_sys_id(err, ERRID_SANDBOX_LIMIT, "set oom_score_adj");
	return 0;
}

int birth_pin(struct keep *k, struct err *err)
{
	if (cpus_pin(k->main_pid, &k->limits.cpus, &k->notify.cpus, err) < 0)
		return -1;
	k->pinned = true;
	return 0;
}

/* How often a directory may be removed under our hands, by the end of another job there. */
#define TMPDIR_TRIES 100 /* a millisecond each, but the first */

/* 1: it is held, so that no other keeper removes it; 0: one does, or has; once more. At the
 * last try it does without the lock: a job that has one to spite us keeps keepers off too. */
static int hold_tmpdir(struct keep *k, bool last, struct err *err)
{
	struct stat held, named;
	cleanup_close int fd = openat(k->spec->workspace_fd, SBX_TMPDIR,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  SBX_TMPDIR
				  " in it is not a directory, and TMPDIR would be that; "
				  "rename it, or choose with --env TMPDIR=DIR");
	if (fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_WORKSPACE,
				  "open " SBX_TMPDIR " in it");
	if (flock(fd, LOCK_SH | LOCK_NB) < 0 && !last)
		return 0;
	if (fstat(fd, &held) < 0)
		return err_sys_id(err, ERRID_SANDBOX_WORKSPACE,
				  "stat " SBX_TMPDIR " in it");
	if (fstatat(k->spec->workspace_fd, SBX_TMPDIR, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    named.st_ino != held.st_ino || named.st_dev != held.st_dev)
		return 0;
	k->tmpdir_fd = TAKE_FD(fd);
	return 1;
}

/*
 * Floor: what the job's TMPDIR names. Of its own name, whatever the workspace has under it.
 * Jobs of one workspace share it: each keeper has a lock on it, and the one that made it
 * removes it only when it is the last (end.c).
 */
static int make_tmpdir(struct keep *k, struct err *err)
{
	int held = 0;

	if (!k->spec->own_tmpdir)
		return 0;
	for (unsigned i = 0; i < TMPDIR_TRIES && held == 0; i++) {
		if (i > 0)
			(void)usleep(1000);
		k->made_tmpdir = mkdirat(k->spec->workspace_fd, SBX_TMPDIR, 0700) == 0;
		if (!k->made_tmpdir && errno != EEXIST)
			return err_sys_id(err, ERRID_SANDBOX_WORKSPACE,
					  "make " SBX_TMPDIR " in it");
		held = hold_tmpdir(k, i == TMPDIR_TRIES - 1, err);
	}
	if (held == 0)
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  SBX_TMPDIR " in it is removed whenever it is made; "
					     "choose with --env TMPDIR=DIR");
	return held < 0 ? -1 : 0;
}

/* What the keeper still has to do with its rights, and that it has them no more. The job
 * may be on its way: it meets us in its self-test, after all of this. */
static int take_position(struct keep *k, const int *rw, size_t n_rw, const char **stage,
			 struct err *err)
{
	*stage = "limits";
	if (make_tmpdir(k, err) < 0 || supervise_trees(k, rw, n_rw, err) < 0 ||
	    notify_bind(&k->notify, k->spec,
			k->spec->grade == GRADE_FULL ? k->root.work_fd
						     : k->spec->workspace_fd,
			err) < 0)
		return -1;
	k->notify.disk_room = files_room;
	k->notify.disk_given = files_given;
	k->notify.disk_arg = k;
	k->notify.file_max = k->spec->output_bytes;
	k->watch->timeout_usec = k->spec->timeout_usec;
	k->watch->grace_ms = k->spec->grace_ms;
	*stage = "caps";
	return keeper_confine(k->spec, err);
}

#define OWN_FDS 16

/* Of what it inherited it keeps its own; rw are descriptors of these. The job has left
 * with its stdio. */
static int close_the_rest(const struct keep *k, int null_fd, const int *rw, size_t n_rw,
			  struct err *err)
{
	int own[OWN_FDS + DISK_ROOTS_MAX] = {
		null_fd,	 k->rules.fd,		k->sock,
		k->status_fd,	 k->spec->workspace_fd, k->limits.cgroup_fd,
		k->root.proc_fd, k->root.tmp_fd,	k->root.shm_fd,
		k->root.work_fd, k->broker.tomb,	k->words,
		k->meter_words,	 k->birth.meminfo_fd,	k->stands_fd,
		k->broker.job};

	memcpy(own + OWN_FDS, rw, n_rw * sizeof(*rw));
	return ns_close_all_but(own, OWN_FDS + n_rw, err);
}

static int keeper_process(struct err *err)
{
	if (block_signals(err) < 0)
		return -1;
	return setsid() < 0 ? err_sys(err, "setsid") : 0;
}

/* Takes the detached mount. */
static int attach_workspace(struct keep *k, int mount, struct err *err)
{
	cleanup_close int mount_fd = mount;
	cleanup_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root_fd < 0)
		return err_sys_id(err, ERRID_SANDBOX_ROOT, "open /");
	return root_place_workspace(TAKE_FD(mount_fd), root_fd, &k->root, err);
}

static int give_root(struct keep *k, struct err *err)
{
	const struct sbx_birth *b = &k->birth;

	if (b->spec->grade == GRADE_FLOOR)
		return 0;
	if (!b->templated)
		return root_build(b->spec, &k->root, err);
	if (root_from_template(b->spec, &k->root, err) < 0)
		return -1;
	return b->workspace < 0 ? 0 : attach_workspace(k, b->workspace, err);
}

static int make_rules(struct keep *k, struct err *err)
{
	const struct sbx_spec *spec = k->spec;

	k->rules = k->birth.rules;
	if (k->rules.fd < 0 &&
	    walls_landlock_system(spec->grade, spec->net, &k->rules, err) < 0)
		return -1;
	return walls_landlock_spec(spec, &k->rules, err);
}

/* Nothing of ours is held where the job could meet it. */
static int let_loose(int null_fd, struct err *err)
{
	if (ns_stdio_null(null_fd, true, err) < 0)
		return -1;
	return chdir("/") < 0 ? err_sys(err, "chdir /") : 0;
}

/* Only floor's metadata calls ask for the first, only full's terminals for the second. */
static void note_stdio(struct keep *k, const int stdio[3])
{
	if (k->spec->grade == GRADE_FLOOR)
		k->notify.own_opens = fds_bring_no_files(stdio);
	else if (k->birth.terminal)
		k->notify.own_terminals = true; /* its stdio is one of its own */
	else
		notify_note_terminals(&k->notify, stdio);
}

/* Before there is a process of the job, or of the guard, that could inherit the other side. */
static int give_terminal(struct keep *k, struct err *err)
{
	static const struct keeper_terminal said = {.type = KEEPER_TERMINAL};
	int fds[TERMINAL_FDS] = {-1, -1}, r;

	if (!k->birth.terminal)
		return 0;
	if (pty_make(k->birth.terminal, fds, err) < 0)
		return -1;
	r = fdpass_send_patiently(k->sock, &said, sizeof(said), fds, TERMINAL_FDS,
				  TERMINAL_PATIENCE_USEC);
	if (r < 0)
		(void)err_sys_id(err, ERRID_TTY_JOB, "hand it over");
	fd_close(&fds[TERMINAL_MASTER]);
	for (int i = 0; i < 3; i++)
		k->birth.stdio[i] = fds[TERMINAL_SLAVE];
	return r < 0 ? -1 : 0;
}

/* What the supervision needs of its own; in full it stands in the job's namespaces. */
static int watch_job(struct keep *k, struct err *err)
{
	if (tree_init(&k->tree, k->spec->grade, k->guard_pid, k->root.proc_fd, err) < 0)
		return -1;
	if (k->spec->grade == GRADE_FULL) {
		k->diag_fd = diag_open(err);
		if (k->diag_fd < 0 || sysvipc_check(k->root.proc_fd, err) < 0)
			return -1;
	}
	if (use_init(&k->use, &k->tree, k->root.tmp_fd, k->root.shm_fd,
		     k->birth.meminfo_fd, k->diag_fd, err) < 0)
		return -1;
	/* What the keeper counts of the job's calls. */
	k->use.filters_made = &k->watch->filters_made;
	k->use.shared_maps = &k->watch->shared_maps;
	return 0;
}

int birth_give(struct keep *k, const char **stage, struct err *err)
{
	int null_fd = k->birth.null_fd;
	int rw[DISK_ROOTS_MAX];
	size_t n_rw = 0;

	for (int i = 0; i < 3; i++)
		if (k->birth.warm)
			k->birth.stdio[i] = null_fd;
	note_stdio(k, k->birth.stdio);
	*stage = "root";
	if (open_rw(k->spec, rw, &n_rw, err) < 0 || give_root(k, err) < 0)
		return -1;
	*stage = "terminal";
	if (give_terminal(k, err) < 0)
		return -1;
	*stage = "fork";
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, "PR_SET_DUMPABLE");
	if (fork_job(k, err) < 0)
		return -1;
	*stage = "broker";
	if (k->spec->broker && broker_make(k->spec->grade, &k->broker, err) < 0)
		return -1;
	/* From here on the guard and the job are there, and go as far as they can without us:
	 * all that they do not inherit comes after the fork. Whatever fails now, the guard ends
	 * the job; nothing is executed before we answer its self-test. */
	*stage = "landlock";
	if (make_rules(k, err) < 0)
		return -1;
	k->landlock_abi = k->rules.abi;
	*stage = "fds";
	if (close_the_rest(k, null_fd, rw, n_rw, err) < 0 || keeper_process(err) < 0 ||
	    let_loose(null_fd, err) < 0)
		return -1;
	*stage = "limits";
	if (watch_job(k, err) < 0)
		return -1;
	if (k->birth.warm)
		return 0;
	if (take_position(k, rw, n_rw, stage, err) < 0)
		return -1;
	*stage = "landlock";
	if (let_go(k, NULL, NULL, 0, err) < 0 && err->sys != EPIPE)
		return -1;
	err_clear(err); /* EPIPE: the job has left, and said why; on_status() reads it */
	return 0;
}

/* The limits were worked out by the parent; the descriptors of the leaf are our own. */
static void take_limits(struct keep *k, const struct sbx_limits *l)
{
	k->limits.n = l->n;
	memcpy(k->limits.l, l->l, sizeof(l->l));
	k->limits.nproc = l->nproc;
	k->limits.cpus = l->cpus;
	k->limits.cgroup_cpu = l->cgroup_cpu;
}

static int bind_workspace(struct keep *k, int *work, struct err *err)
{
	if (!k->own_spec.workspace)
		return 0;
	if (*work < 0)
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE, "it was not handed over");
	if (k->own_spec.grade == GRADE_FLOOR) {
		k->own_spec.workspace_fd = fcntl(*work, F_DUPFD_CLOEXEC, 3);
		return k->own_spec.workspace_fd < 0 ? err_sys(err, "dup") : 0;
	}
	return attach_workspace(k, TAKE_FD(*work), err);
}

int birth_bind(struct keep *k, const struct keeper_bind *m, const struct payload *spec,
	       int *fds, const char **stage, struct err *err)
{
	unsigned n_fds = HANDOVER_WORK;

	*stage = "spec";
	if (sbx_spec_parse_block(spec->block, spec->bytes, &k->own_spec, err) < 0)
		return -1;
	if (k->own_spec.grade != k->spec->grade || k->own_spec.net != k->spec->net)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "a sandbox of another kind");
	k->own_spec.broker = m->broker;
	note_stdio(k, &fds[HANDOVER_STDIN]);
	k->spec = &k->own_spec;
	take_limits(k, &m->limits);
	*stage = "broker";
	if (k->spec->broker && broker_make(k->spec->grade, &k->broker, err) < 0)
		return -1;
	*stage = "root";
	if (bind_workspace(k, &fds[HANDOVER_WORK], err) < 0)
		return -1;
	if (take_position(k, NULL, 0, stage, err) < 0 || birth_pin(k, err) < 0)
		return -1;
	if (k->spec->grade == GRADE_FLOOR && fds[HANDOVER_WORK] >= 0)
		n_fds++;
	*stage = "spec";
	return let_go(k, spec, fds, n_fds, err);
}
