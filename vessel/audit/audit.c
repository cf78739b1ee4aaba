/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * Theory of operation. Two streams go to the scribe. "vessel" carries what this process
 * says itself, numbered from 1 for each start. "queue" carries the outbox: rows are read
 * in their order (queue_audit_next) as long as the window has room, sent without waiting,
 * and the place of the last one that the scribe has fsynced is told to the database
 * (queue_audit_mark), which is also what keeps claims open. So one mark stands for
 * hundreds of events under load, and an idle vessel makes one every three seconds.
 *
 * Claims are open only while both links are good and the database took a mark within the
 * last ten seconds. Every doubt (a link that is away, an answer that is late, rows that
 * cannot be read) ends in a mark that says no, or in none at all, which is the same.
 */
#include "vessel/audit/audit.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/audit/anchor.h"
#include "vessel/audit/event.h"
#include "vessel/audit/link.h"
#include "vessel/scribe/scribe.h"

#define FETCH_MAX 256
/* Hints come with every transaction: what gathers meanwhile is read at once. */
#define GATHER_USEC (10 * USEC_PER_MSEC)
#define POLL_USEC USEC_PER_SEC
#define MARK_USEC (3 * USEC_PER_SEC)
#define MARK_GAP_USEC (20 * USEC_PER_MSEC)
#define RETRY_USEC USEC_PER_SEC
#define REFUSED_USEC USEC_PER_SEC
#define HEARTBEAT_USEC (60 * USEC_PER_SEC)

struct audit {
	struct audit_config cfg;
	char socket_path[128];
	struct audit_link *own, *queue; /* queue: NULL before audit_begin */
	struct audit_anchor *anchor;
	struct loop_timer *fetch, *mark, *refused, *heartbeat;
	struct uuid stream;		      /* of the outbox */
	struct queue_audit_place read, acked; /* how far */
	struct queue_audit_place ring[AUDIT_WINDOW];
	bool is_owned, is_beginning, is_fetching, is_marking;
	bool mark_again, must_begin, is_behind, was_good;
	struct err db_why;
	uint64_t n_refused[2];		       /* api, work: since the last event */
	struct audit_wait *waits, **waits_end; /* in the order of pseq */
};

/* Somebody who acts only when event pseq of our own stream is on disk. */
struct audit_wait {
	uint64_t pseq;
	queue_done *done; /* NULL: forgotten */
	void *arg;
	struct audit_wait *next;
};

static bool links_are_good(const struct audit *a)
{
	struct audit_link_report own, queue;

	if (!a->queue)
		return false;
	audit_link_report(a->own, &own);
	audit_link_report(a->queue, &queue);
	return own.is_good && queue.is_good;
}

static bool is_good(const struct audit *a)
{
	return links_are_good(a) && !a->is_behind && a->db_why.id == ERRID_NONE;
}

/* ---- marks ---- */

static void on_mark(void *arg);

static void say_change(struct audit *a)
{
	bool good = is_good(a);

	if (good == a->was_good)
		return;
	a->was_good = good;
	if (good)
		log_info("the audit log is written; claims are open");
	else
		log_info("the audit log is not written; claims are closed");
}

/* A new numbering was begun in the database: forget the old one, once nothing of it is
 * under way. */
static bool begin_again(struct audit *a)
{
	if (!a->must_begin || a->is_fetching || a->is_marking)
		return false;
	log_info("the outbox is numbered anew");
	audit_link_free(a->queue);
	a->queue = NULL;
	a->must_begin = false;
	loop_timer_arm(a->mark, 0);
	return true;
}

static void marked(enum queue_audit_answer answer, const struct err *err, void *arg)
{
	struct audit *a = arg;

	a->is_marking = false;
	a->is_behind = answer == QUEUE_AUDIT_BEHIND;
	a->must_begin = answer == QUEUE_AUDIT_RESTARTED;
	if (begin_again(a))
		return;
	if (err)
		a->db_why = *err;
	else
		err_clear(&a->db_why);
	say_change(a);
	loop_timer_arm(a->mark, err		? RETRY_USEC
				: a->mark_again ? MARK_GAP_USEC
						: MARK_USEC);
	a->mark_again = false;
}

static void on_mark(void *arg)
{
	struct audit *a = arg;

	if (!a->queue || a->must_begin)
		return;
	if (a->is_marking) {
		a->mark_again = true;
		return;
	}
	a->is_marking = true;
	queue_audit_mark(a->cfg.queue, a->cfg.boot, &a->stream, &a->acked,
			 links_are_good(a), marked, a);
}

static void mark_soon(struct audit *a)
{
	if (a->is_marking)
		a->mark_again = true;
	else
		loop_timer_arm(a->mark, MARK_GAP_USEC);
}

/* ---- the outbox ---- */

static void on_fetch(void *arg);

static void find_why(const struct audit *a, struct err *ret);

/* Those up to pseq; an answer may ask again, or free others. */
static void answer_waits(struct audit *a, uint64_t pseq, const struct err *why)
{
	while (a->waits && a->waits->pseq <= pseq) {
		struct audit_wait *w = a->waits;

		a->waits = w->next;
		if (!a->waits)
			a->waits_end = &a->waits;
		if (w->done)
			w->done(why, w->arg);
		free(w);
	}
}

static void on_link_change(void *arg)
{
	struct audit *a = arg;
	struct err why = ERR_INIT;

	say_change(a);
	if (!links_are_good(a) && a->waits) {
		find_why(a, &why);
		answer_waits(a, UINT64_MAX, &why);
	}
	on_mark(a); /* no delay: this is what closes claims */
	loop_timer_arm(a->fetch, 0);
}

static void on_queue_ack(uint64_t pseq, void *arg)
{
	struct audit *a = arg;

	a->acked = a->ring[pseq % AUDIT_WINDOW];
	mark_soon(a);
	if (!a->is_fetching)
		loop_timer_arm(a->fetch, GATHER_USEC);
}

static void on_own_ack(uint64_t pseq, void *arg)
{
	answer_waits(arg, pseq, NULL);
}

/* After which a job has perhaps ended. */
static bool is_end(const char *event)
{
	static const char *const ends[] = {"attempt.succeeded", "attempt.failed",
					   "attempt.lost",	"attempt.released",
					   "job.cancelled",	"containment.done"};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (str_eq(event, ends[i]))
			return true;
	return false;
}

static bool add_row(struct audit *a, const struct queue_audit_event *row)
{
	const struct audit_event e = {
		.name = row->event,
		.time_ms = row->time_ms,
		.actor = row->actor,
		.job = row->job,
		.epoch = row->epoch,
		.data = row->data,
		.data_len = strlen(row->data),
	};
	struct queue_audit_place at = row->at;
	cleanup_buf struct buf b;

	at.pseq = a->read.pseq + 1;
	buf_init(&b, AUDIT_EVENT_BUF_MAX);
	audit_event_write(&e, &b);
	/* before the link can hear an answer */
	a->ring[at.pseq % AUDIT_WINDOW] = at;
	if (!audit_link_add(a->queue, &b))
		return false;
	a->read = at;
	if (a->cfg.on_end && row->job && is_end(row->event))
		a->cfg.on_end(row->job, row->epoch, a->cfg.arg);
	return true;
}

static void fetched(const struct queue_audit_event *rows, size_t n, const struct err *err,
		    void *arg)
{
	struct audit *a = arg;
	bool all = true;

	a->is_fetching = false;
	if (begin_again(a))
		return;
	if (err) {
		loop_timer_arm(a->fetch, RETRY_USEC);
		return;
	}
	for (size_t i = 0; i < n && all; i++)
		all = add_row(a, &rows[i]);
	loop_timer_arm(a->fetch, n > 0 && all ? GATHER_USEC : POLL_USEC);
}

static void on_fetch(void *arg)
{
	struct audit *a = arg;
	size_t room = a->queue ? audit_link_room(a->queue) : 0;

	if (a->is_fetching || a->must_begin || room == 0)
		return; /* an answer, or its end, comes back here */
	a->is_fetching = true;
	queue_audit_next(a->cfg.queue, &a->read,
			 room < FETCH_MAX ? (unsigned)room : FETCH_MAX, fetched, a);
}

void audit_hint(struct audit *a)
{
	if (a && a->queue && !a->is_fetching)
		loop_timer_arm(a->fetch, GATHER_USEC);
}

static void begun(const struct uuid *stream, const struct queue_audit_place *acked,
		  const struct err *err, void *arg)
{
	struct audit *a = arg;
	struct audit_link_config cfg = {
		.loop = a->cfg.loop,
		.clock = a->cfg.clock,
		.socket_path = a->socket_path,
		.prod = "queue",
		.on_ack = on_queue_ack,
		.on_change = on_link_change,
		.arg = a,
	};

	a->is_beginning = false;
	if (err) {
		a->db_why = *err;
		loop_timer_arm(a->mark, RETRY_USEC);
		return;
	}
	a->read = a->acked = *acked;
	cfg.stream = a->stream = *stream;
	cfg.acked = acked->pseq;
	a->queue = audit_link_new(&cfg);
	loop_timer_arm(a->fetch, 0);
	loop_timer_arm(a->mark, MARK_GAP_USEC);
}

static void on_mark_or_begin(void *arg)
{
	struct audit *a = arg;

	if (a->queue) {
		on_mark(a);
	} else if (a->is_owned && !a->is_beginning) {
		a->is_beginning = true;
		queue_audit_begin(a->cfg.queue, a->cfg.boot, begun, a);
	}
}

void audit_owned(struct audit *a)
{
	a->is_owned = true;
	audit_anchor_owned(a->anchor);
	loop_timer_arm(a->mark, 0);
}

/* ---- what this process says itself ---- */

void audit_note(struct audit *a, const struct audit_event *e)
{
	cleanup_buf struct buf b;

	buf_init(&b, AUDIT_EVENT_BUF_MAX);
	audit_event_write(e, &b);
	/* hundreds of these are open only when the log is away, and claims with it */
	if (!audit_link_add(a->own, &b))
		log_kv(LOG_WARN_, "an event finds no room", "event", e->name, NULL);
}

struct audit_wait *audit_before(struct audit *a, const struct audit_event *e,
				queue_done *done, void *arg, struct err *err)
{
	cleanup_buf struct buf b;
	struct audit_link_report own;
	struct audit_wait *w;

	if (!is_good(a)) {
		find_why(a, err);
		return NULL;
	}
	buf_init(&b, AUDIT_EVENT_BUF_MAX);
	audit_event_write(e, &b);
	if (!audit_link_add(a->own, &b)) {
		(void)err_set_id(err, ERRID_AUDIT_AWAY, "too many events wait for it");
		return NULL;
	}
	if (!links_are_good(a)) { /* it broke over this event: nobody waits for it */
		find_why(a, err);
		return NULL;
	}
	audit_link_report(a->own, &own);
	w = xnew(struct audit_wait);
	w->pseq = own.acked + own.waiting;
	w->done = done;
	w->arg = arg;
	*a->waits_end = w;
	a->waits_end = &w->next;
	return w;
}

/* It keeps its place in the list: an answer is on its way. */
void audit_forget(struct audit_wait *w)
{
	if (w)
		w->done = NULL;
}

static void say(struct audit *a, const char *name, const struct buf *data)
{
	const struct audit_event e = {
		.name = name,
		.time_ms = a->cfg.clock->wall_usec(a->cfg.clock->ctx) / USEC_PER_MSEC,
		.actor = "lych-vessel",
		.data = data->data,
		.data_len = data->len,
	};

	audit_note(a, &e);
}

static void say_start(struct audit *a)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, AUDIT_DATA_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "version", LYCH_VERSION);
	jsonw_kstr(&w, "boot", a->cfg.boot->s);
	jsonw_ki64(&w, "pid", getpid());
	jsonw_key(&w, "secrets_read");
	jsonw_arr(&w);
	jsonw_str(&w, "lychgate_db_vessel");
	jsonw_str(&w, "lychgate_db_watchdog");
	jsonw_str(&w, "lychgate_work");
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	say(a, "vessel.start", &b);
}

static void say_plain(struct audit *a, const char *name)
{
	cleanup_buf struct buf none;

	buf_init(&none, 1);
	say(a, name, &none);
}

static void on_checkpoint(const struct audit_checkpoint *c, void *arg)
{
	struct audit *a = arg;

	audit_anchor_offer(a->anchor, c);
}

static void anchor_told(const struct buf *data, void *arg)
{
	say(arg, "audit.anchor", data);
}

static void on_heartbeat(void *arg)
{
	struct audit *a = arg;

	say_plain(a, "vessel.heartbeat");
	loop_timer_arm(a->heartbeat, HEARTBEAT_USEC);
}

static void on_refused(void *arg)
{
	struct audit *a = arg;
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, AUDIT_DATA_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "api", a->n_refused[0]);
	jsonw_ku64(&w, "work", a->n_refused[1]);
	jsonw_obj_end(&w);
	a->n_refused[0] = a->n_refused[1] = 0;
	say(a, "peer.refused", &b);
}

void audit_peer_refused(struct audit *a, const char *listener)
{
	if (a->n_refused[0] + a->n_refused[1] == 0)
		loop_timer_arm(a->refused, REFUSED_USEC);
	a->n_refused[str_eq(listener, "work")]++;
}

void audit_stopping(struct audit *a)
{
	if (a->n_refused[0] + a->n_refused[1])
		on_refused(a);
	say_plain(a, "vessel.stop");
}

/* ---- life ---- */

int audit_new(const struct audit_config *cfg, struct audit **ret, struct err *err)
{
	struct audit *a = xnew(struct audit);
	struct audit_link_config link = {
		.loop = cfg->loop,
		.clock = cfg->clock,
		.socket_path = a->socket_path,
		.prod = "vessel",
		.stream = *cfg->boot,
		.on_ack = on_own_ack,
		.on_change = on_link_change,
		.on_checkpoint = on_checkpoint,
		.arg = a,
	};

	if (str_fmt(a->socket_path, sizeof(a->socket_path), "%s/" SCRIBE_SOCKET,
		    cfg->socket_dir) < 0) {
		free(a);
		return err_set_id(err, ERRID_START_SOCKET,
				  "the path of the scribe's socket is too long");
	}
	a->cfg = *cfg;
	a->waits_end = &a->waits;
	(void)err_set_id(&a->db_why, ERRID_RUN_DB, "the database is not owned yet");
	a->fetch = loop_timer_new(cfg->loop, on_fetch, a);
	a->mark = loop_timer_new(cfg->loop, on_mark_or_begin, a);
	a->refused = loop_timer_new(cfg->loop, on_refused, a);
	a->heartbeat = loop_timer_new(cfg->loop, on_heartbeat, a);
	a->anchor = audit_anchor_new(&(struct audit_anchor_config){
		.loop = cfg->loop, .queue = cfg->queue, .told = anchor_told, .arg = a});
	a->own = audit_link_new(&link);
	say_start(a);
	loop_timer_arm(a->heartbeat, HEARTBEAT_USEC);
	*ret = a;
	return 0;
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	for (struct audit_wait *w = a->waits; w;) {
		struct audit_wait *next = w->next;

		free(w);
		w = next;
	}
	audit_link_free(a->own);
	audit_link_free(a->queue);
	audit_anchor_free(a->anchor);
	loop_timer_free(a->fetch);
	loop_timer_free(a->mark);
	loop_timer_free(a->refused);
	loop_timer_free(a->heartbeat);
	free(a);
}

/* ---- what is told ---- */

struct audit_figures audit_figures(const struct audit *a)
{
	struct audit_link_report r;
	struct audit_figures f = {.is_good = is_good(a)};

	audit_link_report(a->queue ? a->queue : a->own, &r);
	f.events = r.events;
	f.batches = r.batches;
	f.duplicates = r.duplicates;
	f.acked = a->queue ? r.acked : 0;
	f.waiting = r.waiting;
	return f;
}

static void find_why(const struct audit *a, struct err *ret)
{
	struct audit_link_report r;

	audit_link_report(a->own, &r);
	if (r.is_good && a->queue)
		audit_link_report(a->queue, &r);
	if (!r.is_good)
		*ret = r.why;
	else if (a->db_why.id != ERRID_NONE)
		*ret = a->db_why;
	else if (a->is_behind)
		(void)err_set_id(ret, ERRID_AUDIT_AWAY,
				 "an event has waited for more than 10 s");
}

void audit_write_status(const struct audit *a, struct jsonw *w)
{
	struct audit_figures f = audit_figures(a);
	struct audit_link_report own;
	struct err why = ERR_INIT;

	audit_link_report(a->own, &own);
	jsonw_key(w, "audit");
	jsonw_obj(w);
	jsonw_kbool(w, "ok", f.is_good);
	if (!f.is_good) {
		find_why(a, &why);
		jsonw_kstr(w, "error_code", err_text(&why));
		jsonw_kstr(w, "detail", why.msg);
		jsonw_kstr(w, "hint", err_hint(&why));
	}
	jsonw_kstr(w, "log", *own.log.s ? own.log.s : NULL);
	jsonw_ku64(w, "acked", f.acked);
	jsonw_ku64(w, "waiting", f.waiting);
	jsonw_ku64(w, "events", f.events);
	jsonw_ku64(w, "batches", f.batches);
	jsonw_ku64(w, "duplicates", f.duplicates);
	jsonw_key(w, "walls");
	if (own.walls)
		jsonw_raw(w, own.walls, own.walls_len);
	else
		jsonw_null(w);
	jsonw_key(w, "anchors");
	jsonw_arr(w);
	audit_anchor_write(a->anchor, w);
	if (own.anchors && own.anchors_len > 2) /* without its brackets */
		jsonw_raw(w, own.anchors + 1, own.anchors_len - 2);
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}
