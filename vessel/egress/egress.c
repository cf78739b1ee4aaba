/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. For each worker there is a link, which the parent hands over when
 * it has forked one, and a list of calls. A worker is up once its first frame said that
 * its walls hold. Its end is the end of its link: every call that was open there ends as
 * lost and counts as spent, and nothing can be begun until the next link's first frame.
 */
#include "vessel/egress/egress_priv.h"

#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/log.h"
#include "common/mem.h"
#include "vessel/egress/parent.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ATTACH_USEC (60 * USEC_PER_SEC)
/* It makes namespaces, for which it may have to wait for the whole machine. */
#define PARENT_BEGIN_USEC ATTACH_USEC
/* ---- the parent ---- */

NORETURN static void become_parent(const struct egress *e, int control)
{
	struct egress_pulse
		*workers[EGRESS_PORTALS_MAX + 1 + EGRESS_GATES + EGRESS_HOST_PLACES];

	if (control > 3)
		(void)close_range(3, (unsigned)control - 1, 0);
	(void)close_range((unsigned)control + 1, ~0U, 0);
	log_init("egress", LOG_INFO_);
	for (size_t i = 0; i < e->n; i++)
		workers[i] = e->worker[i].pulse;
	_exit(egress_parent_run(&e->cfg, control, e->pulse, workers));
}

static int start_parent(struct egress *e, struct err *err)
{
	int pair[2];

	if (egress_pulse_new(&e->pulse, err) < 0)
		return -1;
	for (size_t i = 0; i < e->n; i++)
		if (egress_pulse_new(&e->worker[i].pulse, err) < 0)
			return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "a socket to the egress workers");
	(void)fflush(NULL);
	e->pid = fork();
	if (e->pid == 0)
		become_parent(e, pair[1]);
	fd_close(&pair[1]);
	e->control = pair[0];
	return e->pid < 0 ? err_sys(err, "fork the parent of the egress workers") : 0;
}

int egress_fork(const struct egress_config *cfg, struct egress **ret, struct err *err)
{
	struct egress *e = xnew(struct egress);

	assert(cfg->n_portals <= EGRESS_PORTALS_MAX && cfg->n_hosts <= EGRESS_HOSTS_MAX);
	e->cfg = *cfg;
	e->pid = e->control = -1;
	e->n = egress_workers_count(cfg);
	e->worker = xcalloc(e->n, sizeof(*e->worker));
	for (size_t i = 0, first = egress_first_host(cfg); i < e->n; i++) {
		bool is_host = i >= first && i - first < cfg->n_hosts;

		e->worker[i].egress = e;
		e->worker[i].next_id = 1;
		if (i < first || is_host)
			egress_worker_name(cfg, i,
					   is_host ? &cfg->hosts[i - first] : NULL,
					   e->worker[i].name);
		e->worker[i].host = is_host ? HOST_IN_FORCE : HOST_NOBODY;
	}
	if (start_parent(e, err) < 0) {
		egress_free(e);
		return -1;
	}
	e->cfg.hosts = NULL; /* they change from here on */
	e->cfg.n_hosts = 0;
	*ret = e;
	return 0;
}

/* ---- a worker's link ---- */

static void note_state(struct worker *w, bool up, const struct err *why)
{
	struct egress *e = w->egress;

	w->up = up;
	if (e->events.on_worker)
		e->events.on_worker(w->name, up, why, e->events.arg);
}

static void attach_failed(struct egress *e, const struct err *why)
{
	if (!e->attaching || err_is_set(&e->failed))
		return;
	e->failed = *why;
	loop_stop(e->loop, 0);
}

/* Not a place without anybody, or with one that is not asked. */
static bool is_there(const struct worker *w)
{
	return !egress_is_host(w) || w->host == HOST_IN_FORCE;
}

static void attach_step(struct egress *e)
{
	bool all = e->parent_up;

	for (size_t i = 0; i < e->n; i++)
		all = all && (e->worker[i].up || !is_there(&e->worker[i]));
	if (e->attaching && all)
		loop_stop(e->loop, 0);
}

static int hand_to_gate(struct worker *w, struct err *err)
{
	int fd = egress_link_release(TAKE_PTR(w->link));

	if (fd < 0)
		return egress_broken(err, "the gate speaks before it is asked");
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		fd_close(&fd);
		return err_sys(err, "the gate worker's socket");
	}
	/* what its predecessor left there is the gate's to judge */
	w->egress->events.on_gate((unsigned)(w - w->egress->worker) -
					  (unsigned)w->egress->cfg.n_portals - 1,
				  fd, egress_pulse_reading(w->pulse),
				  w->egress->events.arg);
	return 0;
}

/* The first frame of a worker's life. */
static int on_begin(struct worker *w, const struct egress_frame *f, struct err *err)
{
	struct egress *e = w->egress;
	struct err why = ERR_INIT;

	if (f->type == EGRESS_F_FAILED) {
		if (egress_failed_parse(f->data, f->len, &why, err) < 0)
			return -1;
		attach_failed(e, &why);
		note_state(w, false, &why);
		egress_host_began(w, &why);
		return 0;
	}
	if (f->type != EGRESS_F_READY)
		return egress_broken(err, "it does not say that its walls hold");
	if (egress_ready_parse(f->data, f->len, &w->walls, err) < 0)
		return -1;
	w->starts++;
	note_state(w, true, NULL);
	if (egress_worker_is_gate(&e->cfg, (size_t)(w - e->worker)) &&
	    hand_to_gate(w, err) < 0)
		return -1;
	egress_host_began(w, NULL);
	attach_step(e);
	return 0;
}

static int on_frame(const struct egress_frame *f, void *arg, struct err *err)
{
	struct worker *w = arg;

	return w->up ? egress_calls_frame(w, f, err) : on_begin(w, f, err);
}

static void on_closed(const struct err *why, void *arg)
{
	struct worker *w = arg;
	struct err early = ERR_INIT;

	egress_link_free(TAKE_PTR(w->link));
	egress_last_read_closed(w, !why);
	(void)err_set_id(&early, ERRID_EGRESS_AWAY, "%s ended before it was ready",
			 w->name);
	attach_failed(w->egress, why ? why : &early);
	egress_host_began(w, why ? why : &early);
	note_state(w, false, why);
	egress_calls_lost(w);
}

/* ---- packets of the parent ---- */

static void parent_lost(struct egress *e, const struct err *why)
{
	loop_io_set(e->io, 0);
	loop_timer_disarm(e->look);
	e->parent_up = e->watcher_up = false;
	if (e->attaching)
		attach_failed(e, why);
	else
		e->events.on_lost(why, e->events.arg);
}

static int read_frame(const char *data, size_t len, struct egress_frame *f,
		      struct err *err)
{
	size_t used;

	if (egress_frame_next(data, len, f, &used, err) != 1 || used != len)
		return egress_broken(err,
				     "the parent says nothing that can be understood");
	return 0;
}

/* Once, before the parent says that it is ready itself. */
static int on_watcher_frame(struct egress *e, const char *data, size_t len,
			    struct err *err)
{
	struct egress_frame f;

	if (read_frame(data, len, &f, err) < 0)
		return -1;
	if (f.type != EGRESS_F_READY || e->watcher_up)
		return egress_broken(err, "the parent does not say what its watcher did");
	if (egress_ready_parse(f.data, f.len, &e->watcher_walls, err) < 0)
		return -1;
	e->watcher_up = true;
	return 0;
}

static int on_parent_frame(struct egress *e, const char *data, size_t len,
			   struct err *err)
{
	struct egress_frame f;
	struct err why = ERR_INIT;

	if (read_frame(data, len, &f, err) < 0)
		return -1;
	if (f.type == EGRESS_F_FAILED &&
	    egress_failed_parse(f.data, f.len, &why, err) == 0) {
		*err = why;
		return -1;
	}
	if (f.type != EGRESS_F_READY || !e->watcher_up)
		return egress_broken(err, "the parent does not say that its walls hold");
	if (egress_ready_parse(f.data, f.len, &e->parent_walls, err) < 0)
		return -1;
	e->parent_up = true;
	/* Its walls stand: from here it owes a sign of life as anybody else. */
	egress_heard_begin(&e->heard, e->pulse, WATCH_SILENCE_USEC);
	attach_step(e);
	return 0;
}

static void new_link(struct worker *w, int fd)
{
	const struct egress_link_ops ops = {on_frame, on_closed, w};

	/* The parent starts the next only when the last is dead: its link's end is on its
	 * way at most. */
	if (w->link)
		on_closed(NULL, w);
	if (!egress_worker_is_gate(&w->egress->cfg, (size_t)(w - w->egress->worker)))
		egress_last_read_next(w);
	w->up = false;
	w->link = egress_link_new(w->egress->loop, fd,
				  EGRESS_BODIES_MAX + EGRESS_CALLS_MAX * EGRESS_FRAME_MAX,
				  &ops);
}

static int on_packet(struct egress *e, const unsigned char *data, size_t len, int *fds,
		     unsigned n_fds, struct err *err)
{
	struct worker *w;

	if (len > 1 && n_fds == 0 && data[0] == EGRESS_PARENT_ITSELF)
		return on_parent_frame(e, (const char *)data + 1, len - 1, err);
	if (len > 1 && n_fds == 0 && data[0] == EGRESS_PARENT_WATCHER)
		return on_watcher_frame(e, (const char *)data + 1, len - 1, err);
	if (len > 1 && n_fds == 0 &&
	    (data[0] == EGRESS_PARENT_SAME || data[0] == EGRESS_PARENT_REFUSED))
		return egress_host_told(e, data, len, err);
	if (len < 1 || n_fds != 1 || data[0] >= e->n ||
	    len != (egress_is_host(&e->worker[data[0]]) ? 1 + EGRESS_TURN_BYTES : 1))
		return egress_broken(err, "the parent sends no worker");
	w = &e->worker[data[0]];
	/* one that was ended meanwhile ends by its socket too, which the caller closes */
	if (egress_is_host(w) &&
	    (w->host == HOST_NOBODY || egress_turn(data + 1) != w->turn))
		return 0;
	new_link(w, TAKE_FD(fds[0]));
	return 0;
}

static void on_control(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	static unsigned char packet[EGRESS_PARENT_PACKET_MAX];
	int fds[FDPASS_MAX];
	struct egress *e = arg;
	struct err err = ERR_INIT;
	unsigned n_fds = 0;
	ssize_t n;
	int r;

	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fds[i] = -1;
	n = fdpass_recv(e->control, packet, sizeof(packet), fds, &n_fds, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		r = err_set_id(&err, ERRID_EGRESS_AWAY,
			       "the parent of the workers ended");
	else
		r = on_packet(e, packet, (size_t)n, fds, n_fds, &err);
	for (unsigned i = 0; i < FDPASS_MAX; i++)
		fd_close(&fds[i]);
	if (r < 0)
		parent_lost(e, &err);
}

/* It lives outside of our Landlock scope: whoever supervises us ends it. */
static void on_look(void *arg)
{
	struct egress *e = arg;
	struct err err = ERR_INIT;

	if (!egress_heard_look(&e->heard, e->pulse)) {
		loop_timer_arm(e->look, WATCH_LOOK_USEC);
		return;
	}
	e->parent_stuck = true;
	(void)err_set_id(&err, ERRID_EGRESS_AWAY,
			 "the parent of the workers does not answer: it is stopped or "
			 "stuck");
	parent_lost(e, &err);
}

static void on_late(void *arg)
{
	struct egress *e = arg;
	struct err err = ERR_INIT;

	(void)err_set_id(&err, ERRID_EGRESS_AWAY, "not all workers came up in time");
	attach_failed(e, &err);
}

int egress_attach(struct egress *e, struct loop *l, const struct egress_events *events,
		  struct err *err)
{
	assert(events->on_lost && (events->on_gate || !e->cfg.gate));
	e->loop = l;
	e->events = *events;
	e->io = loop_io_new(l, e->control, LOOP_READ, on_control, e);
	e->late = loop_timer_new(l, on_late, e);
	e->look = loop_timer_new(l, on_look, e);
	egress_heard_begin(&e->heard, e->pulse, PARENT_BEGIN_USEC);
	loop_timer_arm(e->look, WATCH_LOOK_USEC);
	loop_timer_arm(e->late, ATTACH_USEC);
	e->attaching = true;
	if (loop_run(l, err) < 0)
		return -1;
	e->attaching = false;
	loop_timer_disarm(e->late);
	if (err_is_set(&e->failed)) {
		*err = e->failed;
		return -1;
	}
	/* A signal stopped the loop: let it end as it would have later. */
	for (size_t i = 0; i < e->n; i++)
		if (!e->worker[i].up && is_there(&e->worker[i])) {
			loop_stop(l, 0);
			break;
		}
	return 0;
}

void egress_free(struct egress *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++) {
		e->worker[i].host = HOST_NOBODY; /* none is told of any more */
		egress_link_free(TAKE_PTR(e->worker[i].link));
		while (e->worker[i].calls)
			egress_call_free(e->worker[i].calls);
		egress_pulse_free(e->worker[i].pulse);
	}
	loop_io_free(e->io);
	loop_timer_free(e->late);
	loop_timer_free(e->look);
	loop_timer_free(e->next.late);
	fd_close(&e->control);
	if (e->pid > 0)
		(void)waitpid(e->pid, NULL, e->parent_stuck ? WNOHANG : 0);
	egress_pulse_free(e->pulse);
	free(e->worker);
	free(e);
}

/* ---- for status ---- */

/* The i-th of those that are there; NULL: there are no more. */
static const struct worker *there(const struct egress *e, size_t i)
{
	for (size_t k = 0; k < e->n; k++)
		if (is_there(&e->worker[k]) && i-- == 0)
			return &e->worker[k];
	return NULL;
}

size_t egress_worker_count(const struct egress *e)
{
	size_t n = 2;

	for (size_t i = 0; i < e->n; i++)
		n += is_there(&e->worker[i]);
	return n;
}

void egress_worker_info(const struct egress *e, size_t i, struct egress_worker_info *ret)
{
	const struct worker *w = i == 0 ? NULL : there(e, i - 1);

	if (i == 0) {
		*ret = (struct egress_worker_info){
			.name = "parent", .up = e->parent_up, .walls = &e->parent_walls};
		return;
	}
	if (!w) {
		*ret = (struct egress_worker_info){.name = "watcher",
						   .up = e->watcher_up,
						   .walls = &e->watcher_walls};
		return;
	}
	*ret = (struct egress_worker_info){
		.name = w->name,
		.up = w->up,
		.restarts = w->starts ? w->starts - 1 : 0,
		.calls = w->n_calls,
		.walls = &w->walls,
	};
}
