/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spawner: lych-sandbox --serve FD. The tomb starts it before it confines
 * itself, so it inherits none of the tomb's walls, and raises its own.
 *
 * Grade full is two processes. The outer one only waits. The inner one is pid 1
 * of its own pid namespace, in its own user, mount, net, ipc and uts
 * namespaces, with a private root that holds the system paths, the jobs
 * directory and the cgroup directory, nothing else. Death travels both ways:
 * outer to inner by PDEATHSIG, inner to outer by wait, tomb to inner by EOF; and
 * since every keeper lives inside the inner's pid namespace, the end of the
 * inner process is the end of every job, by the kernel's hand.
 *
 * Grade floor is one process under Landlock; its keepers see EOF when it dies.
 *
 * One thread, one poll loop. The tomb is our own code: a message that breaks the
 * protocol is a bug, and ends us. What a spec says is judged, and refused per job.
 */
#include "sandbox/keeper.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "sandbox/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SPAWNER_TMP_BYTES ((uint64_t)1 << 20)
#define RUN_FDS 4
#define SEALS_NEEDED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
/* HELLO, and at most STARTED and an end for every job; what was refused to a job waits in
 * its keeper's socket while there is no room for it (has_room). */
#define OUT_MAX (4 * SPAWN_JOBS_MAX + 1)

union message {
	uint32_t type;
	struct spawn_hello hello;
	struct spawn_started started;
	struct spawn_refused refused;
	struct spawn_denied denied;
	struct spawn_exited exited;
};

struct served {
	uint64_t handle;
	struct keeper keeper;
	bool started;
};

struct server {
	int fd, jobs_fd, lifeline;
	const char *jobs_dir, *cgroup;
	enum sbx_grade grade;
	int landlock_abi;
	struct served job[SPAWN_JOBS_MAX];
	unsigned n;
	struct {
		size_t size;
		union message m;
	} out[OUT_MAX];
	unsigned n_out;
};

/* ---- to the tomb ------------------------------------------------------------- */

static void flush(struct server *s)
{
	while (s->n_out) {
		ssize_t n = send(s->fd, &s->out[0].m, s->out[0].size,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return; /* full: POLLOUT; gone: the next recv says so */
		s->n_out--;
		memmove(&s->out[0], &s->out[1], s->n_out * sizeof(s->out[0]));
	}
}

static void put(struct server *s, const void *msg, size_t size)
{
	if (s->n_out == OUT_MAX)
		return; /* cannot be: see OUT_MAX */
	memcpy(&s->out[s->n_out].m, msg, size);
	s->out[s->n_out++].size = size;
	flush(s);
}

/* For one message of each keeper, and still for what has no limit of its own. */
static bool has_room(const struct server *s)
{
	return s->n_out + s->n + 2 * SPAWN_JOBS_MAX < OUT_MAX;
}

static void put_refused(struct server *s, uint64_t handle, const char *stage,
			const struct err *err)
{
	struct spawn_refused m;

	report_refused(stage, err, &m);
	m.handle = handle;
	put(s, &m, sizeof(m));
}

static void put_hello(struct server *s)
{
	struct spawn_hello m = {.type = SPAWN_HELLO,
				.version = SPAWN_PROTO_VERSION,
				.landlock_abi = (uint32_t)s->landlock_abi,
				.pid = getpid()};

	if (s->cgroup)
		(void)snprintf(m.mechanism, sizeof(m.mechanism), "cgroup2:%s", s->cgroup);
	else
		(void)snprintf(m.mechanism, sizeof(m.mechanism), "rlimit+supervision");
	put(s, &m, sizeof(m));
}

/* ---- one job ------------------------------------------------------------------ */

static struct served *find(struct server *s, uint64_t handle)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->job[i].handle == handle)
			return &s->job[i];
	return NULL;
}

static void drop(struct server *s, struct served *j)
{
	keeper_done(&j->keeper);
	*j = s->job[--s->n];
}

/* The block, whole, out of a memfd that nobody can change any more. */
static int read_block(int fd, uint32_t bytes, char **ret, struct err *err)
{
	cleanup_free char *block = NULL;
	size_t len = 0;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS_NEEDED) != SEALS_NEEDED)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "the spec is not sealed");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)bytes ||
	    !bytes || bytes > SPAWN_SPEC_MAX_BYTES)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER,
				  "the spec has the wrong size");
	block = xmalloc(bytes);
	while (len < bytes) {
		ssize_t n = pread(fd, block + len, bytes - len, (off_t)len);

		if (n <= 0)
			return err_sys_id(err, ERRID_SANDBOX_SPAWNER, "read the spec");
		len += (size_t)n;
	}
	*ret = TAKE_PTR(block);
	return 0;
}

/* What the spawner itself demands of a spec, beyond its grammar. */
static int judge_spec(struct server *s, struct sbx_spec *spec, struct err *err)
{
	struct stat st;

	if (!spec->timeout_usec)
		return err_set_id(err, ERRID_SANDBOX_LIMIT, "a job needs --timeout");
	if (spec->grade != s->grade)
		return err_set_id(err, ERRID_SPEC_RANGE,
				  "this spawner serves grade %s only",
				  sbx_grade_name(s->grade));
	if (spec->cgroup)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "--cgroup is the spawner's own option");
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].kind == MOUNT_RW)
			return err_set_id(
				err, ERRID_SPEC_PATH,
				"the workspace is the only writable tree of a job");
	if (s->cgroup)
		spec->cgroup = xstrdup(s->cgroup);
	if (!spec->workspace)
		return 0;
	if (path_check_relative(spec->workspace, strlen(spec->workspace), err) < 0)
		return err_wrap(err, "--workspace");
	spec->workspace_fd = fs_open_beneath(s->jobs_fd, spec->workspace,
					     O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, err);
	if (spec->workspace_fd < 0 || fstat(spec->workspace_fd, &st) < 0) {
		err->id = ERRID_SANDBOX_WORKSPACE;
		return err_wrap(err, "workspace");
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid())
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  "%s is not a directory of ours", spec->workspace);
	return spec_base_workspace(spec, s->jobs_dir, err);
}

static void start_job(struct server *s, uint64_t handle, const char *block, size_t len,
		      const int stdio[3])
{
	struct served j = {.handle = handle};
	struct err err = ERR_INIT;
	const char *stage = "spec";
	struct sbx_spec spec;
	int r;

	spec_init(&spec);
	r = spec_parse_block(block, len, &spec, &err);
	if (r == 0)
		r = judge_spec(s, &spec, &err);
	if (r == 0 && s->n == SPAWN_JOBS_MAX)
		r = err_set(&err, ERR_LIMIT, "already %d jobs", SPAWN_JOBS_MAX);
	if (r == 0) {
		stage = "seccomp"; /* compiled once here, inherited by every job */
		r = seccomp_prepare(&spec, &err);
	}
	if (r == 0) {
		stage = "namespaces";
		r = keeper_start(&spec, stdio, &j.keeper, &err);
		if (r < 0 &&
		    (err.id == ERRID_SANDBOX_LIMIT || err.id == ERRID_SANDBOX_CGROUP))
			stage = "limits";
	}
	spec_done(&spec);
	if (r < 0)
		put_refused(s, handle, stage, &err);
	else
		s->job[s->n++] = j;
}

/* The keeper ended without its report: killed from outside. Its job is gone with it. */
static void keeper_lost(struct server *s, struct served *j)
{
	struct spawn_exited m = {.type = SPAWN_EXITED,
				 .how = SPAWN_END_SHUTDOWN,
				 .code = SIGKILL,
				 .tree_gone = 1,
				 .detail = "the keeper was killed"};
	struct err err = ERR_INIT;
	bool started = j->started;

	m.handle = j->handle;
	drop(s, j);
	if (started) {
		put(s, &m, sizeof(m));
		return;
	}
	(void)err_set_id(&err, ERRID_EXEC_SETUP, "the keeper ended during the set-up");
	put_refused(s, m.handle, "keeper", &err);
}

static void on_keeper(struct server *s, struct served *j)
{
	union message m;
	ssize_t n = recv(j->keeper.sock, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(m.started) && m.type == SPAWN_STARTED) {
		m.started.handle = j->handle;
		j->started = true;
		put(s, &m, sizeof(m.started));
	} else if (n == (ssize_t)sizeof(m.denied) && m.type == SPAWN_DENIED) {
		m.denied.handle = j->handle;
		put(s, &m, sizeof(m.denied));
	} else if (n == (ssize_t)sizeof(m.refused) && m.type == SPAWN_REFUSED) {
		m.refused.handle = j->handle;
		drop(s, j);
		put(s, &m, sizeof(m.refused));
	} else if (n == (ssize_t)sizeof(m.exited) && m.type == SPAWN_EXITED) {
		m.exited.handle = j->handle;
		drop(s, j);
		put(s, &m, sizeof(m.exited));
	} else {
		keeper_lost(s, j);
	}
}

/* ---- from the tomb ------------------------------------------------------------- */

static int on_run(struct server *s, const struct spawn_run *m, const int fds[RUN_FDS],
		  struct err *err)
{
	cleanup_free char *block = NULL;

	if (m->version != SPAWN_PROTO_VERSION || m->reserved || find(s, m->handle))
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "a malformed RUN");
	if (read_block(fds[0], m->spec_bytes, &block, err) < 0)
		return -1;
	start_job(s, m->handle, block, m->spec_bytes, fds + 1);
	return 0;
}

static int on_kill(struct server *s, const struct spawn_kill *m, struct err *err)
{
	struct served *j = find(s, m->handle);

	if (m->reserved || m->why < SPAWN_END_OUTPUT || m->why > SPAWN_END_SHUTDOWN)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "a malformed KILL");
	/* Unknown: its end is on the way to the tomb already. */
	if (j)
		(void)!send(j->keeper.sock, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT);
	return 0;
}

/* The descriptors of a packet; more than we asked for cannot arrive (MSG_CTRUNC is
 * refused). */
static unsigned take_fds(struct msghdr *h, int fds[RUN_FDS])
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count && n < RUN_FDS; i++)
			memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return n;
}

/* 1: go on; 0: the tomb is gone; -1: it broke the protocol. */
static int on_tomb(struct server *s, struct err *err)
{
	union {
		uint32_t type;
		struct spawn_run run;
		struct spawn_kill kill;
	} m = {0};
	union {
		char space[CMSG_SPACE(RUN_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fds[RUN_FDS] = {-1, -1, -1, -1};
	ssize_t n = recvmsg(s->fd, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	unsigned n_fds;
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (n <= 0)
		return 0;
	n_fds = take_fds(&h, fds);
	if (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		r = err_set_id(err, ERRID_SANDBOX_SPAWNER, "a message that is too large");
	else if (n == (ssize_t)sizeof(m.run) && m.type == SPAWN_RUN && n_fds == RUN_FDS)
		r = on_run(s, &m.run, fds, err);
	else if (n == (ssize_t)sizeof(m.kill) && m.type == SPAWN_KILL && n_fds == 0)
		r = on_kill(s, &m.kill, err);
	else
		r = err_set_id(err, ERRID_SANDBOX_SPAWNER,
			       "a message of type %u, %zd bytes, %u descriptors", m.type,
			       n, n_fds);
	for (unsigned i = 0; i < RUN_FDS; i++)
		fd_close(&fds[i]);
	return r < 0 ? -1 : 1;
}

static int serve_loop(struct server *s, struct err *err)
{
	int r = 1;

	put_hello(s);
	while (r > 0) {
		struct pollfd p[SPAWN_JOBS_MAX + 2];
		uint64_t handle[SPAWN_JOBS_MAX];
		unsigned n = s->n;

		p[0] = (struct pollfd){.fd = s->fd, .events = POLLIN};
		if (s->n_out)
			p[0].events |= POLLOUT;
		p[1] = (struct pollfd){.fd = s->lifeline, .events = POLLIN};
		for (unsigned i = 0; i < n; i++) {
			p[2 + i] = (struct pollfd){
				.fd = has_room(s) ? s->job[i].keeper.sock : -1,
				.events = POLLIN};
			handle[i] = s->job[i].handle;
		}
		if (poll(p, n + 2, -1) < 0 && errno != EINTR)
			return err_sys(err, "poll");
		if (p[1].revents)
			break; /* the outer process is gone */
		for (unsigned i = 0; i < n; i++) {
			struct served *j = p[2 + i].revents ? find(s, handle[i]) : NULL;

			if (j)
				on_keeper(s, j);
		}
		if (p[0].revents & POLLOUT)
			flush(s);
		if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
			r = on_tomb(s, err);
	}
	/* First all at once, then each is waited for. */
	for (unsigned i = 0; i < s->n; i++)
		fd_close(&s->job[i].keeper.sock);
	while (s->n)
		drop(s, &s->job[s->n - 1]);
	return r;
}

/* ---- the spawner's own walls ----------------------------------------------------- */

static int wall_full(struct server *s, struct err *err)
{
	struct sbx_mount mounts[2] = {{MOUNT_RW, NULL}, {MOUNT_RW, NULL}};
	struct sbx_root root = {-1, -1, -1, -1};
	cleanup_free char *jobs = xstrdup(s->jobs_dir);
	cleanup_free char *cgroup = s->cgroup ? xstrdup(s->cgroup) : NULL;
	char hostname[] = "spawner";
	struct sbx_spec spec;
	int r;

	mounts[0].path = jobs;
	mounts[1].path = cgroup;
	spec_init(&spec);
	spec.net = NET_NONE;
	spec.tmp_bytes = SPAWNER_TMP_BYTES;
	spec.mounts = mounts;
	spec.n_mounts = cgroup ? 2 : 1;
	spec.hostname = hostname;
	r = root_build(&spec, &root, err);
	fd_close(&root.proc_fd);
	fd_close(&root.tmp_fd);
	fd_close(&root.shm_fd);
	fd_close(&root.work_fd);
	return r;
}

/* Signals stay inside the domain: keepers and jobs are in it or below it. */
static int wall_floor(struct server *s, struct err *err)
{
	const uint64_t node = LL_FS_READ_FILE | LL_FS_WRITE_FILE | LL_FS_IOCTL_DEV;
	static const char *const own[] = {"/etc", "/proc", NULL};
	const struct {
		const char *const *paths;
		uint64_t rights;
	} lists[] = {
		{paths_system, LL_FS_ROX},
		{own, LL_FS_RO},
		{paths_dev_plain, node},
		{paths_dev_random, node},
	};
	struct landlock_set set;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, "prctl");
	if (landlock_begin(&set, true, true, true, true, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (const char *const *p = lists[i].paths; *p; p++)
			if (access(*p, F_OK) == 0 &&
			    landlock_allow_path(&set, *p, lists[i].rights, err) < 0)
				goto fail;
	if (landlock_allow_path(&set, s->jobs_dir, LL_FS_RW | LL_FS_EXECUTE, err) < 0 ||
	    (s->cgroup && landlock_allow_path(&set, s->cgroup, LL_FS_RW, err) < 0))
		goto fail;
	if (landlock_enforce(&set, err) < 0)
		return err_wrap(err, "the spawner's own Landlock");
	/* In full the identity maps of the keepers need it dumpable; nobody inside sees
	 * it there. */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_sys(err, "PR_SET_DUMPABLE")
						      : 0;
fail:
	landlock_done(&set);
	return err_wrap(err, "the spawner's own Landlock");
}

/* Leaves of a spawner that was killed are empty by now; those of a living one are busy.
 */
static void remove_old_leaves(const char *cgroup)
{
	cleanup_dir DIR *d = cgroup ? opendir(cgroup) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (str_starts(e->d_name, "lych-job-"))
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
}

static int serve_inner(struct server *s, struct err *err)
{
	int keep[] = {s->fd, s->lifeline};
	cleanup_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0)
		return err_sys(err, "open /dev/null");
	if (ns_stdio_null(null_fd, false, err) < 0 ||
	    ns_close_all_but(keep, ARRAY_SIZE(keep), err) < 0)
		return -1;
	null_fd = -1;
	(void)signal(SIGPIPE, SIG_IGN);
	if (landlock_require(&s->landlock_abi, err) < 0)
		return -1;
	if ((s->grade == GRADE_FULL ? wall_full(s, err) : wall_floor(s, err)) < 0)
		return -1;
	if (chdir("/") < 0)
		return err_sys(err, "chdir /");
	fs_raise_nofile();
	remove_old_leaves(s->cgroup);
	s->jobs_fd = open(s->jobs_dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->jobs_fd < 0)
		return err_sys(err, "open %s", s->jobs_dir);
	return serve_loop(s, err);
}

static int inner_exit(struct server *s)
{
	struct err err = ERR_INIT;

	if (serve_inner(s, &err) == 0)
		return 0;
	log_err(LOG_ERROR_, "the spawner ends", &err);
	return err.id == ERRID_SANDBOX_SPAWNER ? 1 : EXIT_SETUP;
}

/* Waits for the inner process and takes its end for its own. */
static int serve_outer(struct server *s, struct err *err)
{
	cleanup_close int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	cleanup_close int inner_fd = -1;
	int line[2], status = 0;
	uid_t uid = getuid();
	gid_t gid = getgid();
	pid_t pid;

	if (self < 0 || pipe2(line, O_CLOEXEC) < 0)
		return err_sys(err, "lifeline");
	pid = ns_fork(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
			      CLONE_NEWIPC | CLONE_NEWUTS,
		      &inner_fd, err);
	if (pid < 0)
		return -1;
	if (pid == 0) {
		struct err e = ERR_INIT;

		s->lifeline = line[0];
		if (ns_die_with(self, &e) < 0 || ns_map_self(uid, gid, &e) < 0) {
			log_err(LOG_ERROR_, "the spawner ends", &e);
			_exit(EXIT_SETUP);
		}
		_exit(inner_exit(s));
	}
	fd_close(&line[0]);
	fd_close(&s->fd); /* so that the tomb sees EOF when the inner one ends */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static int check_start(int fd, const char *jobs_dir, struct err *err)
{
	int type = 0;
	socklen_t len = sizeof(type);
	struct stat st;

	if (getuid() == 0 || geteuid() == 0)
		return err_set_id(err, ERRID_CORE_ROOT, "the spawner");
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    type != SOCK_SEQPACKET)
		return err_set_id(err, ERRID_CORE_USAGE,
				  "--serve %d is not a SEQPACKET socket", fd);
	if (!jobs_dir || jobs_dir[0] != '/' || str_eq(jobs_dir, "/"))
		return err_set_id(err, ERRID_CORE_USAGE, "--jobs needs an absolute path");
	if (lstat(jobs_dir, &st) < 0)
		return err_sys_id(err, ERRID_SANDBOX_WORKSPACE, "--jobs %s", jobs_dir);
	if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 022))
		return err_set_id(err, ERRID_SANDBOX_WORKSPACE,
				  "--jobs %s is not a directory of ours alone", jobs_dir);
	return 0;
}

int serve_main(int fd, const char *jobs_dir, const char *cgroup, enum sbx_grade grade)
{
	static struct server s;
	struct err err = ERR_INIT;

	s = (struct server){.fd = fd,
			    .jobs_fd = -1,
			    .lifeline = -1,
			    .jobs_dir = jobs_dir,
			    .cgroup = cgroup,
			    .grade = grade};
	if (check_start(fd, jobs_dir, &err) < 0 ||
	    (grade == GRADE_FULL && serve_outer(&s, &err) < 0)) {
		log_err(LOG_ERROR_, "the spawner did not start", &err);
		return err_exit_code(&err);
	}
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return EXIT_SETUP;
	return inner_exit(&s);
}
