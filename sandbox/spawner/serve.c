/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the spawner.
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
#include "sandbox/spawner/serve.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/str.h"
#include "sandbox/contract/meminfo.h"
#include "sandbox/keeper/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- to the tomb ------------------------------------------------------------- */

static void flush(struct server *s)
{
	while (s->n_out) {
		if (fdpass_send(s->fd, &s->out[0].m, s->out[0].size, &s->out[0].fd,
				s->out[0].fd >= 0, MSG_DONTWAIT) < 0)
			return; /* full: POLLOUT; gone: the next recv says so */
		fd_close(&s->out[0].fd);
		s->n_out--;
		memmove(&s->out[0], &s->out[1], s->n_out * sizeof(s->out[0]));
	}
}

void serve_put(struct server *s, const void *msg, size_t size, int fd)
{
	if (!s->n_out && fdpass_send(s->fd, msg, size, &fd, fd >= 0, MSG_DONTWAIT) == 0) {
		fd_close(&fd);
		return;
	}
	if (s->n_out == OUT_MAX) { /* cannot be: see OUT_MAX */
		fd_close(&fd);
		return;
	}
	memcpy(&s->out[s->n_out].m, msg, size);
	s->out[s->n_out].fd = fd;
	s->out[s->n_out++].size = size;
	flush(s);
}

/* For one message of each keeper, and still for what has no limit of its own. */
static bool has_room(const struct server *s)
{
	return s->n_out + s->n + s->endings.n_owed + 2 * SPAWN_JOBS_MAX < OUT_MAX;
}

static void put_hello(struct server *s)
{
	struct spawn_hello m = {.type = SPAWN_HELLO,
				.version = SPAWN_PROTO_VERSION,
				.landlock_abi = (uint32_t)s->place.landlock_abi,
				.pid = getpid()};

	if (s->cgroup)
		(void)snprintf(m.mechanism, sizeof(m.mechanism), "cgroup2:%s", s->cgroup);
	else
		(void)snprintf(m.mechanism, sizeof(m.mechanism), "rlimit+supervision");
	serve_put(s, &m, sizeof(m), -1);
}
/* ---- from the tomb ------------------------------------------------------------- */

static bool is_side(uint32_t n)
{
	return n >= 1 && n <= TTY_SIDE_MAX;
}

static bool is_run(const struct spawn_run *m)
{
	bool sized = is_side(m->cols) && is_side(m->rows);

	return m->version == SPAWN_PROTO_VERSION &&
	       !(m->flags & ~(SPAWN_RUN_BROKER | SPAWN_RUN_TTY)) &&
	       (m->flags & SPAWN_RUN_TTY ? sized : !m->cols && !m->rows);
}

static int on_run(struct server *s, const struct spawn_run *m, int *fds, unsigned n_fds,
		  struct err *err)
{
	struct payload spec;

	if (!is_run(m) || serve_find(s, m->handle))
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "a malformed RUN");
	if (payload_take(m->spec_bytes, fds, &n_fds, &spec, err) < 0)
		return -1;
	if (n_fds == HANDOVER_WORK)
		serve_start(s, m, &spec, fds);
	payload_done(&spec);
	return n_fds == HANDOVER_WORK ? 0
				      : err_set_id(err, ERRID_SANDBOX_SPAWNER,
						   "a RUN with %u descriptors", n_fds);
}

static int on_kill(struct server *s, const struct spawn_kill *m, struct err *err)
{
	struct served *j = serve_find(s, m->handle);

	if (m->reserved || m->why < SPAWN_END_OUTPUT || m->why > SPAWN_END_SHUTDOWN)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "a malformed KILL");
	/* Unknown: its end is on the way to the tomb already. */
	if (j) {
		(void)!send(j->keeper.sock, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT);
		serve_end_within(j, m->grace_ms * USEC_PER_MSEC);
	}
	return 0;
}

static int on_resize(struct server *s, const struct spawn_resize *m, struct err *err)
{
	const struct served *j = serve_find(s, m->handle);
	const struct winsize size = {.ws_col = (unsigned short)m->cols,
				     .ws_row = (unsigned short)m->rows};

	if (m->reserved || !is_side(m->cols) || !is_side(m->rows))
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "a malformed RESIZE");
	if (j && j->terminal >= 0)
		(void)ioctl(j->terminal, TIOCSWINSZ, &size);
	return 0;
}

static void on_ping(struct server *s, const struct spawn_ping *m)
{
	const struct spawn_ping pong = {.type = SPAWN_PONG, .number = m->number};

	serve_put(s, &pong, sizeof(pong), -1);
}

/* 1: go on; 0: the tomb is gone; -1: it broke the protocol. */
static int on_tomb(struct server *s, struct err *err)
{
	union {
		uint32_t type;
		struct spawn_run run;
		struct spawn_kill kill;
		struct spawn_resize resize;
		struct spawn_ping ping;
	} m = {0};
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(s->fd, &m, sizeof(m), fds, &n_fds, MSG_DONTWAIT);
	int r = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (n < 0 && errno == EPROTO)
		r = err_set_id(err, ERRID_SANDBOX_SPAWNER, "a message that is too large");
	else if (n <= 0)
		return 0;
	else if (n == (ssize_t)sizeof(m.run) && m.type == SPAWN_RUN)
		r = on_run(s, &m.run, fds, n_fds, err);
	else if (n == (ssize_t)sizeof(m.kill) && m.type == SPAWN_KILL && n_fds == 0)
		r = on_kill(s, &m.kill, err);
	else if (n == (ssize_t)sizeof(m.resize) && m.type == SPAWN_RESIZE && n_fds == 0)
		r = on_resize(s, &m.resize, err);
	else if (n == (ssize_t)sizeof(m.ping) && m.type == SPAWN_PING && n_fds == 0)
		on_ping(s, &m.ping);
	else
		r = err_set_id(err, ERRID_SANDBOX_SPAWNER,
			       "a message of type %u, %zd bytes, %u descriptors", m.type,
			       n, n_fds);
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	return r < 0 ? -1 : 1;
}

enum { POLL_TOMB, POLL_LIFELINE, POLL_FIRST };
#define POLL_FDS (POLL_FIRST + SPAWN_JOBS_MAX + KEEPERS_MAX + POOL_MAX)
/* At the spawner's own end: what is not over then is the kernel's to end (full), or its guard's. */
#define END_MAX_USEC (2 * USEC_PER_SEC)

static int poll_all(struct server *s, struct pollfd *p, unsigned *ret_n)
{
	usec_t at = pool_turn(&s->pool, s->n > 0), overdue = serve_overdue(s);
	usec_t leaves = limits_sweep(), rules = prepared_rules_turn(&s->prepared),
	       ends = endings_next(&s->endings), now = clock_boot_usec(), left;
	struct timespec ts;
	unsigned n = POLL_FIRST;

	if (leaves < at)
		at = leaves;
	if (rules < at)
		at = rules;
	if (ends < at)
		at = ends;
	left = at > now ? at - now : 0;
	if (overdue < left)
		left = overdue;
	ts = (struct timespec){.tv_sec = (time_t)(left / USEC_PER_SEC),
			       .tv_nsec = (long)(left % USEC_PER_SEC * 1000)};
	p[POLL_TOMB] = (struct pollfd){.fd = s->fd, .events = POLLIN};
	if (s->n_out)
		p[POLL_TOMB].events |= POLLOUT;
	p[POLL_LIFELINE] = (struct pollfd){.fd = s->lifeline, .events = POLLIN};
	for (unsigned i = 0; i < s->n; i++)
		p[n++] = (struct pollfd){.fd = has_room(s) ? s->job[i].keeper.sock : -1,
					 .events = POLLIN};
	for (unsigned i = 0; i < s->endings.n; i++)
		p[n++] = (struct pollfd){.fd = s->endings.all[i].keeper.pidfd,
					 .events = POLLIN};
	for (unsigned i = 0; i < s->pool.n; i++)
		p[n++] = (struct pollfd){.fd = s->pool.warm[i].keeper.sock,
					 .events = POLLIN};
	*ret_n = n;
	return ppoll(p, n, at == USEC_INFINITY && overdue == USEC_INFINITY ? NULL : &ts,
		     NULL);
}

/* From the last of each table to its first: taking one out moves only the last one. */
static void on_keepers(struct server *s, const struct pollfd *p)
{
	unsigned jobs = POLL_FIRST, ending = jobs + s->n, warm = ending + s->endings.n;

	for (unsigned i = s->pool.n; i-- > 0;)
		if (p[warm + i].revents)
			pool_on_event(&s->pool, i);
	for (unsigned i = s->endings.n; i-- > 0;)
		if (ending + i < warm &&
		    (p[ending + i].revents || s->endings.all[i].keeper.lost))
			serve_on_ending(s, i);
	for (unsigned i = s->n; i-- > 0;)
		if (p[jobs + i].revents)
			serve_on_keeper(s, &s->job[i]);
}

static void end_all(struct server *s)
{
	while (s->n)
		endings_add(&s->endings, &s->job[--s->n].keeper);
	pool_done(&s->pool);
	prepared_rules_done(&s->prepared);
	endings_wait(&s->endings, END_MAX_USEC);
	limits_sweep_all();
}

static int serve_loop(struct server *s, struct err *err)
{
	int r = 1;

	put_hello(s);
	while (r > 0) {
		static struct pollfd p[POLL_FDS];
		unsigned n;

		if (poll_all(s, p, &n) < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(err, "poll");
		}
		if (p[POLL_LIFELINE].revents)
			break; /* the outer process is gone */
		on_keepers(s, p);
		if (p[POLL_TOMB].revents & POLLOUT)
			flush(s);
		if (p[POLL_TOMB].revents & (POLLIN | POLLHUP | POLLERR))
			r = on_tomb(s, err);
	}
	end_all(s);
	return r;
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
	cleanup_close int meminfo = -1;

	if (null_fd < 0)
		return err_sys(err, "open /dev/null");
	if (ns_stdio_null(null_fd, false, err) < 0 ||
	    ns_close_all_but(keep, ARRAY_SIZE(keep), err) < 0)
		return -1;
	null_fd = -1;
	(void)signal(SIGPIPE, SIG_IGN);
	meminfo = meminfo_open(err);
	if (meminfo < 0)
		return -1;
	/* Leaves are removed where their directory can still be seen by its path. */
	remove_old_leaves(s->cgroup);
	if (spawner_wall_in(&s->place, s->jobs_dir, s->cgroup, err) < 0)
		return -1;
	if (chdir("/") < 0)
		return err_sys(err, "chdir /");
	if (tree_learn(err) < 0)
		return -1;
	fs_raise_nofile();
	prepared_rules_init(&s->prepared, s->place.grade == GRADE_FLOOR);
	pool_init(&s->pool, &s->place, s->pool_max, TAKE_FD(meminfo), s->cgroup,
		  &s->endings);
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

/* Its own name, all the way: it is shown by it, and no link is followed there. */
static int check_tools(const char *dir, struct err *err)
{
	cleanup_free char *real = realpath(dir, NULL);
	struct stat st;

	if (!real || stat(real, &st) < 0)
		return err_sys_id(err, ERRID_CORE_USAGE, "--tools %s", dir);
	if (!S_ISDIR(st.st_mode) || !str_eq(real, dir))
		return err_set_id(err, ERRID_CORE_USAGE,
				  "--tools %s is not a directory by its own name", dir);
	return 0;
}

static int check_start(const struct serve_options *o, struct err *err)
{
	const char *jobs_dir = o->jobs_dir;
	int type = 0, fd = o->fd;
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
	return o->tools ? check_tools(o->tools, err) : 0;
}

int serve_main(const struct serve_options *o)
{
	/* Not assigned as a whole: what stays untouched no fork has to copy. */
	static struct server s;
	struct err err = ERR_INIT;

	s.fd = o->fd;
	s.lifeline = -1;
	s.jobs_dir = o->jobs_dir;
	s.cgroup = o->cgroup;
	s.place = (struct spawner_place){.grade = o->grade,
					 .tools = o->tools,
					 .jobs_fd = -1,
					 .cgroup_fd = -1,
					 .jobs_ns = -1,
					 .template_ns = -1};
	s.pool_max = o->pool;
	if (check_start(o, &err) < 0 ||
	    (o->grade == GRADE_FULL && serve_outer(&s, &err) < 0)) {
		log_err(LOG_ERROR_, "the spawner did not start", &err);
		return err_exit_code(&err);
	}
	if (fcntl(o->fd, F_SETFD, FD_CLOEXEC) < 0)
		return EXIT_SETUP;
	return inner_exit(&s);
}
