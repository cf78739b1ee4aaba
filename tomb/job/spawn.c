/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See spawn.h.
 */
#include "tomb/job/spawn.h"

#include "common/cleanup.h"
#include "common/confine/confine.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/proto/denied.h"
#include "common/proto/payload.h"
#include "common/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SERVE_FD 3
#define END_MSEC 5000

struct spawn {
	int fd;
	pid_t pid;
	int pidfd;
	struct loop_io *io;
	struct loop_timer *look;
	struct spawn_events ev;
	struct watch watch; /* since its HELLO */
	uint32_t ping;	    /* the number of the last one */
	usec_t ping_at;	    /* when the next one is due */
	bool greeted, ping_out, stuck;
};

/* Between fork and exec, of a process with one thread. */
NORETURN static void exec_spawner(int exe, int sock, int null_fd, bool unrooted,
				  char *const argv[])
{
	static char *const no_env[] = {NULL};
	struct err err = ERR_INIT;
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* Both out of the way of the numbers that they get. */
	sock = fcntl(sock, F_DUPFD, SERVE_FD + 2);
	exe = fcntl(exe, F_DUPFD_CLOEXEC, SERVE_FD + 2);
	if (sock < 0 || exe < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 ||
	    dup2(sock, SERVE_FD) < 0)
		_exit(EXIT_SETUP);
	(void)close(sock);
	if (syscall(SYS_close_range, SERVE_FD + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(EXIT_SETUP);
	if (unrooted && confine_refuse_connect("spawner", &err) < 0) {
		log_err(LOG_ERROR_, "the spawner is not started", &err);
		_exit(EXIT_SETUP);
	}
	(void)syscall(SYS_execveat, exe, "", argv, no_env, AT_EMPTY_PATH);
	_exit(EXIT_SETUP);
}

int spawn_start(const char *sandbox_path, const char *jobs_dir, const char *tools,
		const char *cgroup, enum sbx_grade grade, bool unrooted, unsigned slots,
		struct spawn **ret, struct err *err)
{
	cleanup_close int exe = open(sandbox_path, O_PATH | O_CLOEXEC);
	cleanup_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* execveat() wants writable strings and does not write to them. */
	cleanup_free char *text =
		xasprintf("lych-sandbox%c--serve%c%d%c--grade%c%s%c--jobs%c%s%c"
			  "--pool%c%u%c--tools%c%s%c--cgroup%c%s",
			  0, 0, SERVE_FD, 0, 0, sbx_grade_name(grade), 0, 0, jobs_dir, 0,
			  0, slots, 0, 0, tools, 0, 0, cgroup ? cgroup : "");
	char *argv[14], *p = text;
	size_t n = cgroup ? 13 : 11;
	int sv[2];
	struct spawn *s;
	pid_t pid;

	for (size_t i = 0; i < n; i++) {
		argv[i] = p;
		p += strlen(p) + 1;
	}
	argv[n] = NULL;
	if (exe < 0)
		return err_sys_id(err, ERRID_SANDBOX_SPAWNER, "open %s", sandbox_path);
	if (null_fd < 0)
		return err_sys(err, "open /dev/null");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return err_sys(err, "socketpair");
	pid = fork();
	if (pid == 0)
		exec_spawner(exe, sv[1], null_fd, unrooted, argv);
	fd_close(&sv[1]);
	if (pid < 0) {
		fd_close(&sv[0]);
		return err_sys(err, "fork the spawner");
	}
	s = xnew(struct spawn);
	s->fd = sv[0];
	s->pid = pid;
	s->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	*ret = s;
	return 0;
}

static void lose(struct spawn *s, const char *why)
{
	struct err err = ERR_INIT;

	loop_io_free(s->io);
	s->io = NULL;
	loop_timer_disarm(s->look);
	watch_end(&s->watch);
	fd_close(&s->fd);
	(void)err_set_id(&err, ERRID_SANDBOX_SPAWNER, "%s", why);
	s->ev.gone(&err, s->ev.arg);
}

/* Text fields come from our own program, but over a border: cut them where they end. */
#define CUT(field) ((field)[sizeof(field) - 1] = '\0')

static void cut_started(struct spawn_started *m)
{
	for (uint32_t i = 0; i < SPAWN_LAYERS_MAX; i++)
		CUT(m->layers[i]);
	for (uint32_t i = 0; i < SPAWN_LIMITS_MAX; i++) {
		CUT(m->limits[i].name);
		CUT(m->limits[i].mechanism);
	}
}

/* false: it is none of the messages about a job. fd: what came with it, -1; taken over
 * and set to -1 where it belongs. */
static bool take_job_message(struct spawn *s, union spawn_message *m, size_t n, int *fd)
{
	if (n == sizeof(m->started) && m->type == SPAWN_STARTED &&
	    m->started.n_layers <= SPAWN_LAYERS_MAX &&
	    m->started.n_limits <= SPAWN_LIMITS_MAX &&
	    m->started.broker < BROKER_KIND_MAX_ &&
	    (m->started.broker != BROKER_NONE) == (*fd >= 0)) {
		cut_started(&m->started);
		s->ev.started(&m->started, TAKE_FD(*fd), s->ev.arg);
	} else if (n == sizeof(m->terminal) && m->type == SPAWN_TERMINAL && *fd >= 0) {
		s->ev.terminal(&m->terminal, TAKE_FD(*fd), s->ev.arg);
	} else if (*fd >= 0) {
		return false;
	} else if (n == sizeof(m->refused) && m->type == SPAWN_REFUSED) {
		CUT(m->refused.error_code);
		CUT(m->refused.stage);
		CUT(m->refused.text);
		s->ev.refused(&m->refused, s->ev.arg);
	} else if (n == sizeof(m->denied) && m->type == SPAWN_DENIED &&
		   denied_is_valid(&m->denied)) {
		s->ev.denied(&m->denied, s->ev.arg);
	} else if (n == sizeof(m->exited) && m->type == SPAWN_EXITED &&
		   m->exited.how < SPAWN_END_MAX_ && m->exited.tree_gone == 1) {
		CUT(m->exited.detail);
		s->ev.exited(&m->exited, s->ev.arg);
	} else {
		return false;
	}
	return true;
}

/* ---- does its loop turn? ---- */

static void ping(struct spawn *s, usec_t now)
{
	const struct spawn_ping m = {.type = SPAWN_PING, .number = s->ping + 1};

	/* No room: it does not read. Gone: the loop tells. Either way there is no PONG. */
	if (send(s->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(m))
		return;
	s->ping++;
	s->ping_out = true;
	s->ping_at = now + WATCH_BEAT_USEC;
}

static void on_look(void *arg)
{
	struct spawn *s = arg;
	usec_t now = clock_awake_usec();

	if (watch_look(&s->watch, now, false)) {
		s->stuck = true;
		lose(s, "the spawner does not answer: it is stopped or stuck");
		return;
	}
	if (!s->ping_out && now >= s->ping_at)
		ping(s, now);
	loop_timer_arm(s->look, WATCH_LOOK_USEC);
}

static bool take_pong(struct spawn *s, const union spawn_message *m, size_t n)
{
	if (n != sizeof(m->pong) || m->type != SPAWN_PONG || !s->ping_out ||
	    m->pong.number != s->ping)
		return false;
	s->ping_out = false;
	return true;
}

static void take_hello(struct spawn *s, union spawn_message *m, size_t n)
{
	if (n != sizeof(m->hello) || m->type != SPAWN_HELLO ||
	    m->hello.version != SPAWN_PROTO_VERSION) {
		lose(s, "the spawner is of another build");
		return;
	}
	s->greeted = true;
	CUT(m->hello.mechanism);
	watch_begin(&s->watch, clock_awake_usec(), WATCH_SILENCE_USEC);
	loop_timer_arm(s->look, WATCH_LOOK_USEC);
	s->ev.hello(&m->hello, s->ev.arg);
}

static void on_packet(int fd, unsigned what, void *arg)
{
	struct spawn *s = arg;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	union spawn_message m = {0};
	ssize_t n = fdpass_recv(fd, &m, sizeof(m), fds, &n_fds, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	watch_heard(&s->watch);
	if (n <= 0)
		lose(s, n < 0 && errno == EPROTO ? "the spawner sent too much"
						 : "the spawner ended");
	else if (!s->greeted)
		take_hello(s, &m, (size_t)n);
	else if (n_fds > 1 || (!take_pong(s, &m, (size_t)n) &&
			       !take_job_message(s, &m, (size_t)n, &fds[0])))
		lose(s, "the spawner sent a message that is none");
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}

int spawn_attach(struct spawn *s, struct loop *l, const struct spawn_events *ev,
		 struct err *err)
{
	s->ev = *ev;
	s->look = loop_timer_new(l, on_look, s);
	s->io = loop_io_new(l, s->fd, LOOP_READ, on_packet, s);
	return s->io ? 0 : err_set(err, ERR_INTERNAL, "watch the spawner's socket");
}

void spawn_free(struct spawn *s)
{
	struct pollfd p;

	if (!s)
		return;
	loop_io_free(s->io);
	loop_timer_free(s->look);
	fd_close(&s->fd);
	/* EOF ends it and every job; it needs a moment for that. A stuck one is left to
	 * what stands around us (our pid namespace, the next tomb): we cannot signal out
	 * of our own confinement. */
	p = (struct pollfd){.fd = s->pidfd, .events = POLLIN};
	if (s->pidfd < 0 || poll(&p, 1, s->stuck ? 0 : END_MSEC) > 0)
		(void)waitpid(s->pid, NULL, s->pidfd < 0 ? WNOHANG : 0);
	fd_close(&s->pidfd);
	free(s);
}

int spawn_run(struct spawn *s, uint64_t handle, const char *block, size_t block_len,
	      const int stdio[3], const struct spawn_wish *wish, struct err *err)
{
	struct spawn_run m = {.type = SPAWN_RUN,
			      .version = SPAWN_PROTO_VERSION,
			      .handle = handle,
			      .spec_bytes = (uint32_t)block_len,
			      .flags = (wish->broker ? SPAWN_RUN_BROKER : 0) |
				       (wish->cols ? SPAWN_RUN_TTY : 0),
			      .cols = wish->cols,
			      .rows = wish->rows};
	struct payload spec;
	int r;

	if (s->fd < 0)
		return err_set_id(err, ERRID_SANDBOX_SPAWNER, "the spawner is gone");
	if (payload_make(block, block_len, &spec, err) < 0)
		return -1;
	r = payload_send(s->fd, &m, sizeof(m), &spec, stdio, 3, MSG_DONTWAIT);
	payload_done(&spec);
	if (r == 0)
		return 0;
	/* Full for the moment, which is no verdict on the job. */
	if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
		return err_sys(err, "send to the spawner");
	(void)err_sys_id(err, ERRID_SANDBOX_SPAWNER, "send to the spawner");
	/* Its end is met here when it comes before the loop has seen it. */
	lose(s, "the spawner takes no jobs any more");
	return -1;
}

void spawn_resize(struct spawn *s, uint64_t handle, unsigned cols, unsigned rows)
{
	struct spawn_resize m = {
		.type = SPAWN_RESIZE, .cols = cols, .handle = handle, .rows = rows};

	/* As a kill. */
	if (s->fd >= 0)
		(void)!send(s->fd, &m, sizeof(m), MSG_NOSIGNAL);
}

void spawn_kill(struct spawn *s, uint64_t handle, enum spawn_end why, unsigned grace_ms)
{
	struct spawn_kill m = {.type = SPAWN_KILL,
			       .why = (uint32_t)why,
			       .handle = handle,
			       .grace_ms = grace_ms};

	/* A kill must not get lost: this waits for room. Failure means EOF, which kills
	 * too. */
	if (s->fd >= 0)
		(void)!send(s->fd, &m, sizeof(m), MSG_NOSIGNAL);
}
