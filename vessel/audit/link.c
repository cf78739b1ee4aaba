/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See link.h.
 */
#include "vessel/audit/link.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/net/dial.h"
#include "common/str.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RETRY_USEC (200 * USEC_PER_MSEC)
/* After this long without an answer the log counts as not written. */
#define PATIENCE_USEC (5 * USEC_PER_SEC)
#define REPLY_MAX ((size_t)16384)
#define PACKET_MAX ((size_t)16384)
#define WALLS_MAX ((size_t)16384)

struct packet {
	char *data;
	size_t len;
	usec_t added;
};

struct audit_link {
	struct audit_link_config cfg;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int fd;
	struct loop_io *io;
	struct loop_timer *retry, *patience;
	bool is_welcome; /* the scribe has answered our hello */
	bool was_good;
	struct err why;
	uint64_t acked, last, sent; /* last: that was added */
	struct packet ring[AUDIT_WINDOW];
	struct audit_link_report scribe;
	struct buf walls, anchors;
};

static struct packet *packet_of(struct audit_link *l, uint64_t pseq)
{
	return &l->ring[pseq % AUDIT_WINDOW];
}

static usec_t now(const struct audit_link *l)
{
	return l->cfg.clock->boot_usec(l->cfg.clock->ctx);
}

static bool is_late(const struct audit_link *l)
{
	const struct packet *first = &l->ring[(l->acked + 1) % AUDIT_WINDOW];

	return l->last > l->acked && now(l) - first->added >= PATIENCE_USEC;
}

static bool is_good(const struct audit_link *l)
{
	return l->is_welcome && !is_late(l);
}

/* When the first open event becomes late, not sooner and hardly later: until it is told,
 * claims are open. */
static void watch_first(struct audit_link *l)
{
	const struct packet *first = packet_of(l, l->acked + 1);

	if (l->last > l->acked && !is_late(l))
		loop_timer_arm(l->patience,
			       first->added + PATIENCE_USEC - now(l) + USEC_PER_MSEC);
}

static void tell_change(struct audit_link *l)
{
	bool good = is_good(l);

	watch_first(l);
	if (good == l->was_good)
		return;
	l->was_good = good;
	l->cfg.on_change(l->cfg.arg);
}

static void on_patience(void *arg)
{
	tell_change(arg);
}

static void disconnect(struct audit_link *l, const struct err *why)
{
	loop_io_free(l->io);
	l->io = NULL;
	fd_close(&l->fd);
	l->is_welcome = false;
	/* what it said last says more than that it is away now */
	if (why->id != ERRID_AUDIT_AWAY || l->why.id == ERRID_NONE)
		l->why = *why;
	loop_timer_arm(l->retry, RETRY_USEC);
	tell_change(l);
}

/* 1: sent; 0: the socket is full; -1: it is lost, and l is disconnected. */
static int send_packet(struct audit_link *l, const char *data, size_t len)
{
	struct err err = ERR_INIT;
	ssize_t n;

	do
		n = send(l->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return 1;
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return 0;
	(void)err_sys_id(&err, ERRID_AUDIT_AWAY, "send to the scribe");
	disconnect(l, &err);
	return -1;
}

static void flush(struct audit_link *l)
{
	while (l->is_welcome && l->sent < l->last) {
		const struct packet *p = packet_of(l, l->sent + 1);
		int r = send_packet(l, p->data, p->len);

		if (r < 0)
			return;
		if (r == 0) {
			loop_io_set(l->io, LOOP_READ | LOOP_WRITE);
			return;
		}
		l->sent++;
	}
	if (l->io)
		loop_io_set(l->io, LOOP_READ);
}

/* ---- answers ---- */

static int keep_array(const struct json *j, const char *key, bool must, struct buf *out,
		      struct err *err)
{
	const struct json *arr = NULL;
	struct jsonw w;

	if (json_get_arr(j, key, must, 64, &arr, err) < 0)
		return -1;
	if (!arr)
		return 0;
	buf_reset(out);
	jsonw_init(&w, out);
	json_write(arr, &w);
	return 0;
}

static int tell_checkpoint(struct audit_link *l, const struct json *j, struct err *err)
{
	struct audit_checkpoint c = {.log = l->scribe.log};
	const struct json *o = NULL;
	const char *root, *line;

	if (json_get_obj(j, "checkpoint", false, &o, err) < 0)
		return -1;
	if (!o)
		return 0;
	if (json_get_u64(o, "size", true, 0, INT64_MAX, &c.size, err) < 0 ||
	    json_get_str(o, "root", true, sizeof(c.root) - 1, &root, err) < 0 ||
	    json_get_str(o, "line", true, sizeof(c.line) - 1, &line, err) < 0 ||
	    str_copy(c.root, sizeof(c.root), root) < 0 ||
	    str_copy(c.line, sizeof(c.line), line) < 0)
		return -1;
	if (l->cfg.on_checkpoint)
		l->cfg.on_checkpoint(&c, l->cfg.arg);
	return 0;
}

static int on_hello(struct audit_link *l, const struct json *j, struct err *err)
{
	const char *log;
	uint64_t last;

	if (json_get_str(j, "log", true, 36, &log, err) < 0 ||
	    uuid_parse(log, &l->scribe.log, err) < 0 ||
	    json_get_u64(j, "last", true, 0, INT64_MAX, &last, err) < 0 ||
	    keep_array(j, "walls", true, &l->walls, err) < 0 ||
	    keep_array(j, "anchors", false, &l->anchors, err) < 0)
		return -1;
	if (last < l->acked)
		return err_set_id(err, ERRID_AUDIT_ORDER,
				  "the log ends at number %llu of %s, but %llu was "
				  "acknowledged",
				  (unsigned long long)last, l->cfg.prod,
				  (unsigned long long)l->acked);
	l->is_welcome = true;
	err_clear(&l->why);
	/* also what it has already: it compares, and drops it */
	l->sent = l->acked;
	flush(l);
	tell_change(l);
	return tell_checkpoint(l, j, err);
}

static int on_ack(struct audit_link *l, const struct json *j, struct err *err)
{
	struct audit_link_report *s = &l->scribe;
	uint64_t pseq;

	if (json_get_u64(j, "ack", true, 1, INT64_MAX, &pseq, err) < 0 ||
	    json_get_u64(j, "seq", true, 0, INT64_MAX, &s->seq, err) < 0 ||
	    json_get_u64(j, "events", true, 0, INT64_MAX, &s->events, err) < 0 ||
	    json_get_u64(j, "batches", true, 0, INT64_MAX, &s->batches, err) < 0 ||
	    json_get_u64(j, "duplicates", true, 0, INT64_MAX, &s->duplicates, err) < 0 ||
	    keep_array(j, "anchors", false, &l->anchors, err) < 0)
		return -1;
	if (pseq <= l->acked || pseq > l->sent)
		return err_set_id(err, ERRID_AUDIT_ORDER,
				  "the scribe acknowledges number %llu",
				  (unsigned long long)pseq);
	while (l->acked < pseq) {
		struct packet *p = packet_of(l, ++l->acked);

		free(p->data);
		*p = (struct packet){0};
	}
	l->cfg.on_ack(pseq, l->cfg.arg);
	tell_change(l);
	return tell_checkpoint(l, j, err);
}

static int on_error(const struct json *j, struct err *err)
{
	const char *code, *detail;
	enum err_id id;

	if (json_get_str(j, "error", true, 64, &code, err) < 0 ||
	    json_get_str(j, "detail", true, 1024, &detail, err) < 0)
		return -1;
	id = err_id_from_text(code);
	return err_set_id(err, id == ERRID_NONE ? ERRID_AUDIT_AWAY : id, "%s", detail);
}

static int on_reply(struct audit_link *l, const char *data, size_t len, struct err *err)
{
	cleanup_json struct json *j = NULL;

	if (json_parse(data, len, JSON_DEPTH_DEFAULT, &j, err) < 0)
		return -1;
	if (json_has(j, "error"))
		return on_error(j, err);
	if (json_has(j, "ack") && l->is_welcome)
		return on_ack(l, j, err);
	if (json_has(j, "hello") && !l->is_welcome)
		return on_hello(l, j, err);
	return err_set_id(err, ERRID_AUDIT_AWAY, "an answer that is none");
}

static void on_io(int fd UNUSED, unsigned what, void *arg)
{
	static char data[REPLY_MAX + 1];
	struct audit_link *l = arg;
	struct err err = ERR_INIT;

	if (what & LOOP_WRITE)
		flush(l);
	while (l->fd >= 0) {
		ssize_t n = recv(l->fd, data, sizeof(data), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			(void)err_sys_id(&err, ERRID_AUDIT_AWAY, "the scribe");
		else if (n == 0)
			(void)err_set_id(&err, ERRID_AUDIT_AWAY,
					 "the scribe closed the connection");
		else if (on_reply(l, data, (size_t)n, &err) == 0)
			continue;
		if (l->fd >= 0)
			disconnect(l, &err);
		return;
	}
}

/* ---- connecting ---- */

static int say_hello(struct audit_link *l, struct err *err)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, REPLY_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "hello", 1);
	jsonw_kstr(&w, "prod", l->cfg.prod);
	jsonw_kstr(&w, "stream", l->cfg.stream.s);
	jsonw_obj_end(&w);
	if (send(l->fd, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)b.len)
		return err_sys_id(err, ERRID_AUDIT_AWAY, "greet the scribe");
	return 0;
}

static int reach_scribe(struct audit_link *l, struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (dial_is_on()) {
		struct err why = ERR_INIT;

		l->fd = dial(DIAL_SCRIBE, &why);
		return l->fd < 0 ? err_set_id(err, ERRID_AUDIT_AWAY, "%s", why.msg) : 0;
	}
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return err_sys_id(err, ERRID_AUDIT_AWAY, "socket");
	memcpy(sa.sun_path, l->path, sizeof(sa.sun_path));
	if (connect(l->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return err_sys_id(err, ERRID_AUDIT_AWAY, "connect to the scribe");
	return 0;
}

static int try_connect(struct audit_link *l, struct err *err)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (reach_scribe(l, err) < 0)
		return -1;
	if (getsockopt(l->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return err_sys_id(err, ERRID_AUDIT_AWAY, "SO_PEERCRED");
	if (who.uid != geteuid())
		return err_set_id(err, ERRID_AUDIT_AWAY, "its socket belongs to uid %u",
				  who.uid);
	l->io = loop_io_new(l->cfg.loop, l->fd, LOOP_READ, on_io, l);
	return say_hello(l, err);
}

static void on_retry(void *arg)
{
	struct audit_link *l = arg;
	struct err err = ERR_INIT;

	if (l->fd < 0 && try_connect(l, &err) < 0)
		disconnect(l, &err);
}

struct audit_link *audit_link_new(const struct audit_link_config *cfg)
{
	struct audit_link *l = xnew(struct audit_link);

	l->cfg = *cfg;
	l->fd = -1;
	l->acked = l->last = l->sent = cfg->acked;
	buf_init(&l->walls, WALLS_MAX);
	buf_init(&l->anchors, REPLY_MAX);
	(void)err_set_id(&l->why, ERRID_AUDIT_AWAY, "not connected yet");
	if (str_copy(l->path, sizeof(l->path), cfg->socket_path) < 0)
		l->path[0] = '\0'; /* connect() refuses it */
	l->retry = loop_timer_new(cfg->loop, on_retry, l);
	l->patience = loop_timer_new(cfg->loop, on_patience, l);
	loop_timer_arm(l->retry, 0);
	return l;
}

void audit_link_free(struct audit_link *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < AUDIT_WINDOW; i++)
		free(l->ring[i].data);
	loop_io_free(l->io);
	loop_timer_free(l->retry);
	loop_timer_free(l->patience);
	fd_close(&l->fd);
	buf_done(&l->walls);
	buf_done(&l->anchors);
	free(l);
}

size_t audit_link_room(const struct audit_link *l)
{
	return AUDIT_WINDOW - (size_t)(l->last - l->acked);
}

bool audit_link_add(struct audit_link *l, const struct buf *event)
{
	struct packet *p;
	struct buf b;

	if (audit_link_room(l) == 0)
		return false;
	buf_init(&b, PACKET_MAX);
	buf_addf(&b, "{\"pseq\":%llu,\"event\":", (unsigned long long)l->last + 1);
	buf_add(&b, event->data, event->len);
	buf_addc(&b, '}');
	if (!buf_ok(&b) || !buf_ok(event)) {
		buf_done(&b);
		return false;
	}
	p = packet_of(l, ++l->last);
	p->added = now(l);
	p->data = buf_take(&b, &p->len);
	flush(l);
	tell_change(l);
	return true;
}

void audit_link_report(const struct audit_link *l, struct audit_link_report *ret)
{
	*ret = l->scribe;
	ret->is_good = is_good(l);
	ret->why = l->why;
	if (l->is_welcome && !ret->is_good)
		(void)err_set_id(&ret->why, ERRID_AUDIT_AWAY,
				 "no answer to number %llu of %s for %u s",
				 (unsigned long long)(l->acked + 1), l->cfg.prod,
				 (unsigned)(PATIENCE_USEC / USEC_PER_SEC));
	ret->acked = l->acked;
	ret->waiting = l->last - l->acked;
	ret->walls = l->walls.len ? l->walls.data : NULL;
	ret->walls_len = l->walls.len;
	ret->anchors = l->anchors.len ? l->anchors.data : NULL;
	ret->anchors_len = l->anchors.len;
}
