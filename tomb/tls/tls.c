/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The tomb's side of its TLS processes: one a job, asked of their parent in order.
 */
#include "tomb/tls/tls.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/watch.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MSEC 2000

struct tls_job {
	struct tls_job
		*next; /* while its process is on its way: in the order of asking */
	struct tls *tls;
	int fd; /* -1: not there, or gone */
	struct loop_io *io;
	bool ready;
	tls_ready *fn; /* NULL: it has been told, or nobody is any more */
	void *arg;
	struct loop_timer *tell; /* of what went wrong: from the loop */
	struct err why;
};

struct tls {
	struct loop *loop;
	struct tls_events ev;
	int control;
	pid_t pid;
	int pidfd;
	struct loop_io *io;
	struct loop_timer *look;
	struct watch coming; /* of the parent, while processes are on their way */
	struct tls_job *asked;
	bool up, dead;
};

/* ---- the parent ------------------------------------------------------------------- */

int tls_start(const struct tls_place *place, struct tls **ret, struct err *err)
{
	struct tls *t;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "a socket to the TLS processes");
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(tls_parent_run(place, pair[1]));
	fd_close(&pair[1]);
	if (pid < 0) {
		fd_close(&pair[0]);
		return err_sys(err, "fork the parent of the TLS processes");
	}
	t = xnew(struct tls);
	t->control = pair[0];
	t->pid = pid;
	t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	*ret = t;
	return 0;
}

static void fail(struct tls *t, const struct err *why)
{
	if (t->dead)
		return;
	t->dead = true;
	loop_io_free(t->io);
	t->io = NULL;
	t->ev.gone(why, t->ev.arg);
}

static void fail_with(struct tls *t, const char *what)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_START_CONFINE, "%s", what);
	fail(t, &err);
}

/* ---- jobs -------------------------------------------------------------------------- */

static void job_let_go(struct tls_job *j)
{
	loop_io_free(j->io);
	j->io = NULL;
	fd_close(&j->fd);
}

static void job_tell(struct tls_job *j, const char *pem, const struct err *why)
{
	tls_ready *fn = j->fn;

	j->fn = NULL;
	if (fn)
		fn(pem, why, j->arg);
}

static void on_tell(void *arg)
{
	struct tls_job *j = arg;

	job_tell(j, NULL, &j->why);
}

static void job_fails(struct tls_job *j, const char *why)
{
	job_let_go(j);
	(void)err_set(&j->why, ERR_UNAVAILABLE, "the job's TLS process: %s", why);
	loop_timer_arm(j->tell, 0);
}

static void on_job(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	struct tls_job *j = arg;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	struct tls_hello h;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(j->fd, &h, sizeof(h), fds, &n_fds, MSG_DONTWAIT);

	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || j->ready || n_fds > 0 || !tls_hello_is_sound(&h, (size_t)n)) {
		if (n > 0 || !j->ready)
			log_warn("a job's TLS process sent a word that is none");
		job_fails(j, n <= 0 ? "it ended" : "it sent a word that is none");
	} else if (h.is.word == TLS_FAILED) {
		job_let_go(j);
		j->why = h.is.err;
		job_tell(j, NULL, &j->why);
	} else {
		j->ready = true;
		job_tell(j, h.pem, NULL);
	}
}

static void wish(struct tls *t)
{
	static const char one = 't';

	/* No room for a byte, or nobody there: its end is told by the loop. */
	if (send(t->control, &one, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return;
}

struct tls_job *tls_job_new(struct tls *t, tls_ready *ready, void *arg)
{
	struct tls_job *j = xnew(struct tls_job), **p = &t->asked;

	j->tls = t;
	j->fd = -1;
	j->fn = ready;
	j->arg = arg;
	j->tell = loop_timer_new(t->loop, on_tell, j);
	if (!t->asked)
		watch_begin(&t->coming, clock_awake_usec(), t->ev.patience_usec);
	while (*p)
		p = &(*p)->next;
	*p = j;
	wish(t);
	return j;
}

static void job_destroy(struct tls_job *j)
{
	job_let_go(j);
	loop_timer_free(j->tell);
	free(j);
}

void tls_job_free(struct tls_job *j)
{
	if (!j)
		return;
	for (struct tls_job *i = j->tls->asked; i; i = i->next)
		if (i == j) {
			j->fn = NULL; /* its process, which comes, ends at once */
			j->arg = NULL;
			return;
		}
	job_destroy(j);
}

bool tls_job_is_up(const struct tls_job *j)
{
	return j->ready && j->fd >= 0;
}

int tls_job_open(struct tls_job *j, const char *host, int client, int plain)
{
	const int fds[] = {client, plain};
	struct tls_open o = {0};

	if (!tls_job_is_up(j) || str_copy(o.host, sizeof(o.host), host) < 0)
		return -1;
	return fdpass_send(j->fd, &o, sizeof(o), fds, ARRAY_SIZE(fds), MSG_DONTWAIT);
}

/* ---- the loop ---------------------------------------------------------------------- */

/* fd -1: it could not be forked. */
static void one_came(struct tls *t, int fd)
{
	struct tls_job *j = t->asked;

	t->asked = j->next;
	j->next = NULL;
	watch_heard(&t->coming);
	if (!t->asked)
		watch_end(&t->coming);
	j->fd = fd;
	if (!j->fn)
		job_destroy(j);
	else if (fd < 0)
		job_fails(j, "it could not be started");
	else
		j->io = loop_io_new(t->loop, fd, LOOP_READ, on_job, j);
}

static void on_control(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	struct tls *t = arg;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	struct tls_reply r;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(t->control, &r, sizeof(r), fds, &n_fds, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		fail_with(t, "the parent of the TLS processes ended");
	else if (n != (ssize_t)sizeof(r) || !tls_reply_is_sound(&r))
		fail_with(t, "the parent of the TLS processes sent a word that is none");
	else if (r.word == TLS_FAILED)
		fail(t, &r.err);
	else if (!t->up && r.word == TLS_READY && !n_fds) {
		t->up = true;
		t->ev.up(t->ev.arg);
	} else if (t->up && t->asked && r.word == TLS_DONE && n_fds == 1)
		one_came(t, TAKE_FD(fds[0]));
	else if (t->up && t->asked && r.word == TLS_BUSY)
		one_came(t, -1);
	else
		fail_with(t, "the parent of the TLS processes broke its word");
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}

static void on_look(void *arg)
{
	struct tls *t = arg;

	if (watch_look(&t->coming, clock_awake_usec(), false))
		fail_with(t, "the parent of the TLS processes does not answer: it is "
			     "stopped or stuck");
	loop_timer_arm(t->look, WATCH_LOOK_USEC);
}

int tls_attach(struct tls *t, struct loop *l, const struct tls_events *ev,
	       struct err *err)
{
	t->loop = l;
	t->ev = *ev;
	t->look = loop_timer_new(l, on_look, t);
	t->io = loop_io_new(l, t->control, LOOP_READ, on_control, t);
	if (!t->io)
		return err_set(err, ERR_INTERNAL, "watch the TLS processes' socket");
	loop_timer_arm(t->look, WATCH_LOOK_USEC);
	return 0;
}

void tls_free(struct tls *t)
{
	struct pollfd p;

	if (!t)
		return;
	while (t->asked) {
		struct tls_job *j = t->asked;

		t->asked = j->next;
		job_destroy(j);
	}
	loop_io_free(t->io);
	loop_timer_free(t->look);
	fd_close(&t->control);
	/* The end of its socket ends the parent, and with it every process. */
	p = (struct pollfd){.fd = t->pidfd, .events = POLLIN};
	if (t->pidfd < 0 || poll(&p, 1, END_MSEC) > 0)
		(void)waitpid(t->pid, NULL, t->pidfd < 0 ? WNOHANG : 0);
	fd_close(&t->pidfd);
	free(t);
}
