/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The tomb's side of its file workers: who does what next, and who is waited for.
 */
#include "tomb/files/files.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/watch.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* So many are kept when there is nothing to do, and the others for so long. */
#define KEPT_IDLE 1u
#define IDLE_USEC (30 * USEC_PER_SEC)
#define END_MSEC 2000

struct file_worker {
	struct file_worker *next;
	struct files *files;
	int fd;
	struct loop_io *io;
	bool ready;
	struct file_task *task; /* NULL: idle since idle_since */
	usec_t idle_since;	/* clock_awake_usec() */
};

struct file_task {
	struct file_task *next; /* in the order in which they were asked for */
	struct files *files;
	struct files_request rq;
	char *payload;
	file_done *done; /* NULL: nobody is told any more */
	void *arg;
	struct file_worker *worker; /* NULL: it waits for one */
	struct watch watch;
};

struct files {
	struct loop *loop;
	struct files_events ev;
	int control;
	pid_t pid;
	int pidfd;
	struct loop_io *io;
	struct loop_timer *look;
	struct file_worker *workers;
	unsigned n_workers, n_coming, workers_max;
	struct watch coming; /* of the parent, while workers are on their way */
	struct file_task *tasks;
	bool parent_up, up, dead;
};

/* ---- the parent ----------------------------------------------------------------- */

int files_start(const struct files_place *place, unsigned jobs_max, struct files **ret,
		struct err *err)
{
	struct files *f;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "a socket to the file workers");
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(files_parent_run(place, pair[1]));
	fd_close(&pair[1]);
	if (pid < 0) {
		fd_close(&pair[0]);
		return err_sys(err, "fork the parent of the file workers");
	}
	f = xnew(struct files);
	f->control = pair[0];
	f->pid = pid;
	f->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* One task of each job, and as many again that hang and were given up. */
	f->workers_max = 2 * jobs_max + 2;
	*ret = f;
	return 0;
}

static void fail(struct files *f, const struct err *why)
{
	if (f->dead)
		return;
	f->dead = true;
	loop_io_free(f->io);
	f->io = NULL;
	f->ev.gone(why, f->ev.arg);
}

static void fail_with(struct files *f, const char *what)
{
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_START_CONFINE, "%s", what);
	fail(f, &err);
}

static void ask_for_worker(struct files *f)
{
	static const char one = 'w';

	/* No room for a byte, or nobody there: its end is told by the loop. */
	if (send(f->control, &one, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return;
	if (f->n_coming++ == 0)
		watch_begin(&f->coming, clock_awake_usec(), f->ev.patience_usec);
}

/* The parent answered. */
static void one_came(struct files *f)
{
	watch_heard(&f->coming);
	if (f->n_coming && --f->n_coming == 0)
		watch_end(&f->coming);
}

/* ---- tasks ------------------------------------------------------------------------ */

static void task_unlink(struct file_task *t)
{
	struct file_task **p = &t->files->tasks;

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	if (t->worker)
		t->worker->task = NULL;
}

static void task_free(struct file_task *t)
{
	if (t->payload)
		explicit_bzero(t->payload, t->rq.payload_bytes);
	free(t->payload);
	free(t);
}

/* Whoever asked is told, once; what was begun and not answered stays in the list. */
static void task_tell(struct file_task *t, struct files_answer *a, const struct err *err)
{
	file_done *done = t->done;
	struct files_answer none = {.fds = {-1, -1}};

	t->done = NULL;
	if (done)
		done(a ? a : &none, err, t->arg);
}

static void give_up(struct file_task *t, const char *why)
{
	struct err err = ERR_INIT;

	(void)err_set(&err, ERR_UNAVAILABLE, "the job's folder: %s", why);
	task_tell(t, NULL, &err);
}

/* An earlier task of the same job is not over. */
static bool must_wait(const struct file_task *t)
{
	for (const struct file_task *i = t->files->tasks; i != t; i = i->next)
		if (str_eq(i->rq.job, t->rq.job))
			return true;
	return false;
}

static struct file_worker *find_idle(const struct files *f)
{
	struct file_worker *w = f->workers;

	while (w && (w->task || !w->ready))
		w = w->next;
	return w;
}

static bool hand_over(struct file_task *t, struct file_worker *w)
{
	struct payload p = PAYLOAD_NONE;
	struct err err = ERR_INIT;
	int r = -1;

	if (!t->rq.payload_bytes)
		r = fdpass_send(w->fd, &t->rq, sizeof(t->rq), NULL, 0, MSG_DONTWAIT);
	else if (payload_make(t->payload, t->rq.payload_bytes, &p, &err) == 0)
		r = payload_send(w->fd, &t->rq, sizeof(t->rq), &p, NULL, 0, MSG_DONTWAIT);
	payload_done(&p);
	if (r < 0)
		return false;
	t->worker = w;
	w->task = t;
	watch_begin(&t->watch, clock_awake_usec(), t->files->ev.patience_usec);
	return true;
}

static void worker_lost(struct file_worker *w, const char *why);

static void dispatch(struct files *f)
{
	unsigned waiting = 0;

	if (!f->up || f->dead)
		return;
	for (struct file_task *t = f->tasks; t; t = t->next) {
		struct file_worker *w;

		if (t->worker || must_wait(t))
			continue;
		w = find_idle(f);
		if (!w)
			waiting++;
		else if (!hand_over(t, w)) {
			worker_lost(w, "it takes no task");
			return; /* which looked again */
		}
	}
	while (f->n_coming < waiting && f->n_workers + f->n_coming < f->workers_max) {
		unsigned was = f->n_coming;

		ask_for_worker(f);
		if (f->n_coming == was)
			return;
	}
}

struct file_task *files_ask(struct files *f, enum files_op op, const char *job,
			    const char *name, const struct buf *payload, file_done *done,
			    void *arg)
{
	struct file_task *t = xnew(struct file_task), **p = &f->tasks;

	assert(!payload || (buf_ok(payload) && payload->len <= PAYLOAD_MAX_BYTES));
	t->files = f;
	t->rq.op = op;
	if (str_copy(t->rq.job, sizeof(t->rq.job), job) < 0 ||
	    str_copy(t->rq.name, sizeof(t->rq.name), name) < 0)
		assert(false && "a name of ours is too long");
	if (payload && payload->len) {
		t->payload = xmalloc(payload->len);
		memcpy(t->payload, payload->data, payload->len);
		t->rq.payload_bytes = (uint32_t)payload->len;
	}
	t->done = done;
	t->arg = arg;
	watch_begin(&t->watch, clock_awake_usec(), f->ev.patience_usec);
	while (*p)
		p = &(*p)->next;
	*p = t;
	dispatch(f);
	return t;
}

void files_cancel(struct file_task *t)
{
	if (!t)
		return;
	t->done = NULL;
	if (t->worker)
		return;
	task_unlink(t);
	task_free(t);
}

/* ---- workers ---------------------------------------------------------------------- */

static void worker_free(struct file_worker *w)
{
	struct file_worker **p = &w->files->workers;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	w->files->n_workers--;
	loop_io_free(w->io);
	fd_close(&w->fd);
	free(w);
}

static void worker_lost(struct file_worker *w, const char *why)
{
	struct files *f = w->files;
	struct file_task *t = w->task;

	log_kv(LOG_WARN_, "a file worker is gone", "why", why, NULL);
	worker_free(w);
	if (!f->up) {
		fail_with(f, "the first file worker ended");
		return;
	}
	if (t) {
		t->worker = NULL;
		task_unlink(t);
		give_up(t, "its worker ended");
		task_free(t);
	}
	dispatch(f);
}

static void finish(struct file_worker *w, const struct files_reply *r,
		   struct files_answer *a)
{
	struct files *f = w->files;
	struct file_task *t = w->task;

	task_unlink(t);
	w->idle_since = clock_awake_usec();
	task_tell(t, a, r->word == FILES_FAILED ? &r->err : NULL);
	task_free(t);
	dispatch(f);
}

static void take_reply(struct file_worker *w, const struct files_reply *r, int *fds,
		       unsigned n_fds)
{
	struct files_answer a = {.fds = {-1, -1}};
	struct payload p = PAYLOAD_NONE;
	struct err err = ERR_INIT;

	if (r->payload_bytes &&
	    payload_take(r->payload_bytes, fds, &n_fds, &p, &err) < 0) {
		worker_lost(w, err.msg);
		return;
	}
	if (n_fds > FILES_FDS_MAX) {
		payload_done(&p);
		worker_lost(w, "it sent too much");
		return;
	}
	for (unsigned i = 0; i < n_fds; i++)
		a.fds[i] = TAKE_FD(fds[i]);
	a.payload = p.block;
	a.payload_bytes = p.block ? p.bytes : 0;
	finish(w, r, &a);
	for (unsigned i = 0; i < FILES_FDS_MAX; i++)
		fd_close(&a.fds[i]);
	payload_done(&p);
}

static void first_word(struct file_worker *w, const struct files_reply *r)
{
	struct files *f = w->files;

	if (r->word == FILES_FAILED) {
		fail(f, &r->err);
		return;
	}
	w->ready = true;
	w->idle_since = clock_awake_usec();
	if (!f->up) {
		f->up = true;
		f->ev.up(f->ev.arg);
	}
	dispatch(f);
}

static void on_worker(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	struct file_worker *w = arg;
	struct files_reply reply;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(w->fd, &reply, sizeof(reply), fds, &n_fds, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		worker_lost(w, n < 0 ? strerror(errno) : "it ended");
	else if (!files_reply_is_sound(&reply, (size_t)n) ||
		 (reply.word == FILES_READY) == w->ready)
		worker_lost(w, "it sent a message that is none");
	else if (!w->ready)
		first_word(w, &reply);
	else if (!w->task)
		worker_lost(w, "it speaks without being asked");
	else if (reply.word == FILES_BUSY)
		watch_heard(&w->task->watch);
	else
		take_reply(w, &reply, fds, n_fds);
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}

static void worker_add(struct files *f, int fd)
{
	struct file_worker *w = xnew(struct file_worker);

	w->files = f;
	w->fd = fd;
	w->next = f->workers;
	f->workers = w;
	f->n_workers++;
	one_came(f);
	w->io = loop_io_new(f->loop, fd, LOOP_READ, on_worker, w);
}

/* ---- the loop ----------------------------------------------------------------------- */

static void on_control(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	struct files *f = arg;
	int fds[FDPASS_MAX] = FDPASS_NONE;
	struct files_reply r;
	unsigned n_fds = 0;
	ssize_t n = fdpass_recv(f->control, &r, sizeof(r), fds, &n_fds, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		fail_with(f, "the parent of the file workers ended");
	else if (!files_reply_is_sound(&r, (size_t)n))
		fail_with(f,
			  "the parent of the file workers sent a message that is none");
	else if (r.word == FILES_FAILED)
		fail(f, &r.err);
	else if (!f->parent_up && r.word == FILES_READY && !n_fds)
		f->parent_up = true;
	else if (f->parent_up && r.word == FILES_DONE && n_fds == 1)
		worker_add(f, TAKE_FD(fds[0]));
	else if (f->parent_up && r.word == FILES_BUSY)
		one_came(f); /* it could not fork one; the next look asks again */
	else
		fail_with(f, "the parent of the file workers broke its word");
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
}

/* Who waits in the kernel can't be taken back; who waits for it can be told. A task that
 * was begun stays, so that its job's next one does not meet it. */
static void tell_silent(struct file_task *t)
{
	static const char why[] = "nothing is heard of it: somebody holds it";

	watch_end(&t->watch);
	log_kv(LOG_WARN_, "nothing is heard of a job's folder", "job", t->rq.job, "begun",
	       t->worker ? "yes" : "no", NULL);
	if (t->worker) {
		give_up(t, why);
		return;
	}
	task_unlink(t);
	give_up(t, why);
	task_free(t);
}

static void look_at_tasks(struct files *f, usec_t now)
{
	struct file_task *t = f->tasks;

	while (t) {
		struct file_task *next = t->next;

		if (watch_look(&t->watch, now, false)) {
			tell_silent(t);
			/* Whoever was told may have changed the list. */
			next = f->tasks;
		}
		t = next;
	}
}

static void let_idle_go(struct files *f, usec_t now)
{
	unsigned idle = 0;
	struct file_worker *next;

	for (struct file_worker *w = f->workers; w; w = next) {
		next = w->next;
		if (w->task || !w->ready || ++idle <= KEPT_IDLE)
			continue;
		if (now - w->idle_since > IDLE_USEC)
			worker_free(w); /* the end of its socket is its end */
	}
}

static void on_look(void *arg)
{
	struct files *f = arg;
	usec_t now = clock_awake_usec();

	if (watch_look(&f->coming, now, false))
		fail_with(f, "the parent of the file workers does not answer: it is "
			     "stopped or stuck");
	look_at_tasks(f, now);
	let_idle_go(f, now);
	dispatch(f);
	loop_timer_arm(f->look, WATCH_LOOK_USEC);
}

int files_attach(struct files *f, struct loop *l, const struct files_events *ev,
		 struct err *err)
{
	f->loop = l;
	f->ev = *ev;
	f->look = loop_timer_new(l, on_look, f);
	f->io = loop_io_new(l, f->control, LOOP_READ, on_control, f);
	if (!f->io)
		return err_set(err, ERR_INTERNAL, "watch the file workers' socket");
	loop_timer_arm(f->look, WATCH_LOOK_USEC);
	ask_for_worker(f);
	return 0;
}

void files_free(struct files *f)
{
	struct pollfd p;

	if (!f)
		return;
	while (f->tasks) {
		struct file_task *t = f->tasks;

		task_unlink(t);
		task_free(t);
	}
	while (f->workers)
		worker_free(f->workers);
	loop_io_free(f->io);
	loop_timer_free(f->look);
	fd_close(&f->control);
	/* The end of its socket ends the parent, and with it every worker that does not
	 * wait in the kernel. */
	p = (struct pollfd){.fd = f->pidfd, .events = POLLIN};
	if (f->pidfd < 0 || poll(&p, 1, END_MSEC) > 0)
		(void)waitpid(f->pid, NULL, f->pidfd < 0 ? WNOHANG : 0);
	fd_close(&f->pidfd);
	free(f);
}
