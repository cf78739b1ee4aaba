/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the scribe.
 * Theory of operation. A readable connection is read until it is dry or the batch is
 * full; its events are staged in the log. When every readable connection had its turn, a
 * timer of zero commits: one write, one fdatasync, then one acknowledgement a connection,
 * with its highest number. While the disk works the next batch gathers in the sockets, so
 * the batches grow with the load and nobody waits longer than two fsyncs, or three when a
 * seal is due, which is made after the acknowledgements.
 *
 * Nothing that a producer says is repaired: a packet that is not exactly what it should
 * be ends the connection, with an error that names why. A failed write ends the process.
 */
#include "vessel/scribe/scribe.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PRODUCERS_MAX 16
#define BACKLOG 16
#define HEARTBEAT_USEC (60 * USEC_PER_SEC)
#define EVENT_DEPTH_MAX 8
#define REPLY_MAX ((size_t)16384)

struct producer {
	struct scribe *s;
	int fd;
	struct loop_io *io;
	char prod[AUDIT_PROD_MAX]; /* "" before its hello */
	struct uuid stream;
	uint64_t taken; /* the last number that it sent */
	bool owes_ack;
	uint64_t told; /* how often the anchors were written when it was told of them */
};

struct scribe {
	struct scribe_config cfg;
	struct loop_io *listener;
	struct loop_timer *commit, *heartbeat;
	struct producer *producers[PRODUCERS_MAX];
	bool has_failed;
	uint64_t anchored; /* seals of this process that the anchors were given */
};

/* ---- packets ---- */

static int parse_hello(const struct json *j, struct scribe_packet *ret, struct err *err)
{
	static const char *const keys[] = {"hello", "prod", "stream"};
	const char *prod, *stream;
	uint64_t version;

	if (json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(j, "hello", true, 1, 1, &version, err) < 0 ||
	    json_get_str(j, "prod", true, AUDIT_PROD_MAX - 1, &prod, err) < 0 ||
	    json_get_str(j, "stream", true, 36, &stream, err) < 0 ||
	    uuid_parse(stream, &ret->stream, err) < 0)
		return -1;
	if (!audit_prod_is_valid(prod))
		return err_set(err, ERR_INVALID, "prod: [a-z][a-z0-9_]*");
	ret->is_hello = true;
	return str_copy(ret->prod, sizeof(ret->prod), prod);
}

/* Names of the head, which an event can't have too. */
static bool is_reserved(const char *key)
{
	static const char *const names[] = {"v",    "log",   "seq",  "prev",   "ts",
					    "boot", "up_ms", "prod", "stream", "pseq"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(key, names[i]))
			return true;
	return false;
}

static int parse_event(const struct json *j, struct scribe_packet *ret, struct err *err)
{
	static const char *const keys[] = {"pseq", "event"};
	const struct json *event = NULL, *val;
	cleanup_buf struct buf b;
	const char *key;
	struct jsonw w;

	buf_init(&b, AUDIT_EVENT_MAX + 2);
	if (json_check_keys(j, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(j, "pseq", true, 1, INT64_MAX, &ret->pseq, err) < 0 ||
	    json_get_obj(j, "event", true, &event, err) < 0)
		return -1;
	for (size_t i = 0; json_obj_at(event, i, &key, &val); i++)
		if (is_reserved(key))
			return err_set(err, ERR_INVALID, "an event has no \"%s\"", key);
	jsonw_init(&w, &b);
	json_write(event, &w);
	if (!buf_ok(&b))
		return err_set(err, ERR_TOO_LARGE, "an event of more than %zu bytes",
			       AUDIT_EVENT_MAX);
	if (b.len <= 2)
		return err_set(err, ERR_INVALID, "an event without a member");
	buf_add(&ret->members, b.data + 1, b.len - 2);
	return 0;
}

int scribe_packet_parse(const void *data, size_t len, struct scribe_packet *ret,
			struct err *err)
{
	cleanup_json struct json *j = NULL;
	struct err why = ERR_INIT;
	int r = -1;

	*ret = (struct scribe_packet){0};
	buf_init(&ret->members, AUDIT_EVENT_MAX);
	if (len > SCRIBE_PACKET_MAX)
		return err_set_id(err, ERRID_AUDIT_EVENT,
				  "a packet of more than %zu bytes", SCRIBE_PACKET_MAX);
	if (json_parse(data, len, EVENT_DEPTH_MAX, &j, &why) == 0)
		r = json_has(j, "hello") ? parse_hello(j, ret, &why)
					 : parse_event(j, ret, &why);
	if (r < 0)
		return err_set_id(err, ERRID_AUDIT_EVENT, "%s", why.msg);
	return 0;
}

/* ---- producers ---- */

static void producer_free(struct producer *p)
{
	struct scribe *s = p->s;

	for (size_t i = 0; i < PRODUCERS_MAX; i++)
		if (s->producers[i] == p)
			s->producers[i] = NULL;
	loop_io_free(p->io);
	fd_close(&p->fd);
	free(p);
}

/* Replies are small and a producer reads them: one that does not is let go. */
static bool reply(const struct producer *p, const struct buf *b)
{
	ssize_t n;

	if (!buf_ok(b))
		return false;
	do
		n = send(p->fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)b->len;
}

static void send_error(struct producer *p, const struct err *why)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, REPLY_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "error", err_text(why));
	jsonw_kstr(&w, "detail", why->msg);
	jsonw_obj_end(&w);
	(void)reply(p, &b);
	producer_free(p);
}

static void refuse(struct producer *p, const struct err *why)
{
	log_err(LOG_WARN_, "a producer is refused", why);
	send_error(p, why);
}

static void write_walls(struct jsonw *w, const struct confine_report *r)
{
	jsonw_key(w, "walls");
	jsonw_arr(w);
	for (unsigned i = 0; i < r->n; i++) {
		jsonw_obj(w);
		jsonw_kstr(w, "wall", r->line[i].wall);
		jsonw_kstr(w, "answer", r->line[i].answer);
		jsonw_kbool(w, "held", r->line[i].held);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

/* For the anchor of the database, which the vessel keeps. */
static void add_checkpoint(const struct scribe *s, struct jsonw *w)
{
	const struct seal *newest = scribe_log_newest(s->cfg.log);
	cleanup_buf struct buf line;
	char root[SEAL_TEXT32];

	buf_init(&line, ANCHOR_LINE_MAX);
	anchor_line_write(&line, newest);
	seal_text32(newest->root.b, root);
	if (!buf_ok(&line))
		return;
	jsonw_key(w, "checkpoint");
	jsonw_obj(w);
	jsonw_ku64(w, "size", newest->size);
	jsonw_kstr(w, "root", root);
	jsonw_key(w, "line");
	jsonw_strn(w, line.data, line.len - 1);
	jsonw_obj_end(w);
}

static void add_anchors(struct producer *p, struct jsonw *w)
{
	jsonw_key(w, "anchors");
	anchors_write(p->s->cfg.anchors, w);
	add_checkpoint(p->s, w);
	p->told = p->s->anchored;
}

static int welcome(struct producer *p, const struct scribe_packet *k, struct err *err)
{
	struct scribe *s = p->s;
	cleanup_buf struct buf b;
	struct jsonw w;

	if (*p->prod)
		return err_set_id(err, ERRID_AUDIT_EVENT, "a second hello");
	for (size_t i = 0; i < PRODUCERS_MAX; i++) {
		struct producer *other = s->producers[i];

		/* a predecessor that we have not seen end yet */
		if (other && other != p && str_eq(other->prod, k->prod) &&
		    str_eq(other->stream.s, k->stream.s))
			producer_free(other);
	}
	/* what it is told to have written must be on disk */
	if (scribe_flush(s, err) < 0)
		return -1;
	if (str_copy(p->prod, sizeof(p->prod), k->prod) < 0)
		return err_set(err, ERR_INTERNAL, "a producer's name");
	p->stream = k->stream;
	buf_init(&b, REPLY_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "hello", 1);
	jsonw_kstr(&w, "log", scribe_log_id(s->cfg.log)->s);
	jsonw_ku64(&w, "last", scribe_log_last(s->cfg.log, p->prod, &p->stream));
	write_walls(&w, s->cfg.walls);
	add_anchors(p, &w);
	jsonw_obj_end(&w);
	if (!reply(p, &b))
		return err_set_id(err, ERRID_AUDIT_EVENT, "it does not read its answers");
	return 0;
}

static void write_failed(struct scribe *s, const struct err *why)
{
	if (s->has_failed)
		return;
	s->has_failed = true;
	for (size_t i = 0; i < PRODUCERS_MAX; i++)
		if (s->producers[i])
			send_error(s->producers[i], why);
	s->cfg.failed(why, s->cfg.arg);
}

static int take(struct producer *p, const void *data, size_t len, struct err *err)
{
	struct scribe *s = p->s;
	struct scribe_packet k;
	enum scribe_taken taken;
	int r = scribe_packet_parse(data, len, &k, err);

	if (r == 0 && k.is_hello)
		r = welcome(p, &k, err);
	else if (r == 0 && !*p->prod)
		r = err_set_id(err, ERRID_AUDIT_EVENT, "an event before the hello");
	else if (r == 0)
		r = scribe_log_add(s->cfg.log, p->prod, &p->stream, k.pseq,
				   k.members.data, k.members.len, &taken, err);
	if (r == 0 && !k.is_hello) {
		p->taken = k.pseq;
		p->owes_ack = true;
		loop_timer_arm(s->commit, 0);
	}
	buf_done(&k.members);
	return r;
}

static void on_packet(int fd, unsigned what UNUSED, void *arg)
{
	static char data[SCRIBE_PACKET_MAX + 1];
	struct producer *p = arg;
	struct scribe *s = p->s;
	struct err err = ERR_INIT;

	while (!s->has_failed && !scribe_log_is_full(s->cfg.log)) {
		ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

		/* reset: it died without reading our answers; what it sent comes next */
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			producer_free(p);
			return;
		}
		if (take(p, data, (size_t)n, &err) < 0) {
			if (err.id == ERRID_AUDIT_WRITE)
				write_failed(s, &err);
			else
				refuse(p, &err);
			return;
		}
	}
}

static void send_ack(struct producer *p)
{
	struct scribe *s = p->s;
	struct scribe_counts n = scribe_log_counts(s->cfg.log);
	cleanup_buf struct buf b;
	struct jsonw w;

	p->owes_ack = false;
	buf_init(&b, REPLY_MAX);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_ku64(&w, "ack", p->taken);
	jsonw_ku64(&w, "seq", n.seq);
	jsonw_ku64(&w, "events", n.events);
	jsonw_ku64(&w, "batches", n.batches);
	jsonw_ku64(&w, "duplicates", n.duplicates);
	if (p->told != s->anchored)
		add_anchors(p, &w);
	jsonw_obj_end(&w);
	if (!reply(p, &b))
		producer_free(p);
}

int scribe_flush(struct scribe *s, struct err *err)
{
	if (scribe_log_commit(s->cfg.log, err) < 0)
		return -1;
	for (size_t i = 0; i < PRODUCERS_MAX; i++)
		if (s->producers[i] && s->producers[i]->owes_ack)
			send_ack(s->producers[i]);
	return 0;
}

/* That one stands, or does not any more, is a record. */
static int tell_anchors(struct scribe *s, struct err *err)
{
	const struct err *why = NULL;
	cleanup_buf struct buf members;

	buf_init(&members, 4096);
	while (!scribe_log_is_full(s->cfg.log) &&
	       anchors_tell(s->cfg.anchors, &members, &why)) {
		if (why)
			log_err(LOG_ERROR_, "an anchor does not stand", why);
		if (scribe_log_own(s->cfg.log, "scribe.anchor", &members, err) < 0)
			return -1;
		buf_reset(&members);
	}
	return scribe_flush(s, err);
}

int scribe_seal(struct scribe *s, bool ends_epoch, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct scribe_counts n;

	if (scribe_log_seal(s->cfg.log, ends_epoch, err) < 0)
		return -1;
	n = scribe_log_counts(s->cfg.log);
	if (n.seals == s->anchored)
		return 0;
	s->anchored = n.seals;
	if (anchors_add(s->cfg.anchors, scribe_log_newest(s->cfg.log), err) == 0)
		return 0;
	/* A required one: that ends us, and who is started next may find another file in its place. */
	(void)tell_anchors(s, &ignored);
	return -1;
}

static void on_commit(void *arg)
{
	struct scribe *s = arg;
	struct err err = ERR_INIT;

	if (s->has_failed)
		return;
	/* who waits has its answer before a seal is made */
	if (scribe_flush(s, &err) < 0 ||
	    (scribe_log_seal_is_due(s->cfg.log) && scribe_seal(s, false, &err) < 0) ||
	    tell_anchors(s, &err) < 0)
		write_failed(s, &err);
}

static void on_heartbeat(void *arg)
{
	struct scribe *s = arg;
	struct scribe_counts n = scribe_log_counts(s->cfg.log);
	cleanup_buf struct buf more;
	struct err err = ERR_INIT;

	loop_timer_arm(s->heartbeat, HEARTBEAT_USEC);
	buf_init(&more, 1024);
	buf_addf(&more, "\"events\":%llu,\"batches\":%llu", (unsigned long long)n.events,
		 (unsigned long long)n.batches);
	anchors_write_sizes(s->cfg.anchors, &more);
	if (s->has_failed || scribe_log_is_full(s->cfg.log))
		return;
	if (scribe_log_own(s->cfg.log, "scribe.heartbeat", &more, &err) < 0 ||
	    scribe_flush(s, &err) < 0 || scribe_seal(s, false, &err) < 0 ||
	    tell_anchors(s, &err) < 0)
		write_failed(s, &err);
}

/* ---- connections ---- */

static int check_peer(int fd, struct err *err)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return err_sys(err, "SO_PEERCRED");
	if (who.uid != geteuid())
		return err_set_id(err, ERRID_AUDIT_EVENT, "a peer of uid %u", who.uid);
	return 0;
}

static void on_connection(int fd, unsigned what UNUSED, void *arg)
{
	struct scribe *s = arg;
	cleanup_close int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct err err = ERR_INIT;

	if (conn < 0)
		return;
	if (check_peer(conn, &err) < 0) {
		log_err(LOG_WARN_, "a peer is refused", &err);
		return;
	}
	for (size_t i = 0; i < PRODUCERS_MAX; i++) {
		struct producer *p;

		if (s->producers[i])
			continue;
		s->producers[i] = p = xnew(struct producer);
		p->s = s;
		p->fd = TAKE_FD(conn);
		p->io = loop_io_new(s->cfg.loop, p->fd, LOOP_READ, on_packet, p);
		return;
	}
	log_kv(LOG_WARN_, "a producer is refused", "why", "too many connections", NULL);
}

struct scribe *scribe_new(const struct scribe_config *cfg)
{
	struct scribe *s = xnew(struct scribe);

	s->cfg = *cfg;
	s->listener = loop_io_new(cfg->loop, cfg->listen_fd, LOOP_READ, on_connection, s);
	s->commit = loop_timer_new(cfg->loop, on_commit, s);
	s->heartbeat = loop_timer_new(cfg->loop, on_heartbeat, s);
	loop_timer_arm(s->heartbeat, HEARTBEAT_USEC);
	loop_timer_arm(s->commit, 0); /* tells how the anchors stand */
	return s;
}

void scribe_free(struct scribe *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < PRODUCERS_MAX; i++)
		if (s->producers[i])
			producer_free(s->producers[i]);
	loop_io_free(s->listener);
	loop_timer_free(s->commit);
	loop_timer_free(s->heartbeat);
	free(s);
}

int scribe_listen(const char *dir, int *ret_fd, struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	cleanup_close int fd =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (str_fmt(sa.sun_path, sizeof(sa.sun_path), "%s/" SCRIBE_SOCKET, dir) < 0)
		return err_set_id(err, ERRID_START_SOCKET, "%s: too long", dir);
	if (unlink(sa.sun_path) < 0 && errno != ENOENT)
		return err_sys_id(err, ERRID_START_SOCKET, "remove %s", sa.sun_path);
	/* the umask is 077; the log's lock says that no other scribe lives */
	if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "listen on %s", sa.sun_path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}
