/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Connections and dispatch. A connection does one thing at a time (enum
 * conn_state): read a head, read its body, wait for the handler, write the
 * answer. Ownership: the server owns connections, a handler owns the request
 * from its call to its reply. When the client goes first, the connection is freed
 * and req->conn becomes NULL; the request stays until its owner replies into
 * the void. Nothing frees a connection inside a call that its user made.
 */
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/socket.h>

#define LINGER_USEC (2 * USEC_PER_SEC)
#define LINGER_MAX_BYTES ((size_t)16 << 20)
#define READ_CHUNK_BYTES ((size_t)64 << 10)
#define METHOD_MAX_BYTES 16

const struct httpd_config *httpd_config_of(const struct conn *c)
{
	return &c->httpd->cfg;
}

/* ---- life of a connection and of a request ---- */

void httpd_req_free(struct httpd_req *req)
{
	if (!req)
		return;
	if (req->conn) {
		req->conn->req = NULL;
		req->conn->httpd->bodies_bytes -= req->body.max;
	}
	if (req->share)
		req->share->bodies -= (size_t)req->g.content_length;
	if (req->ctx_free && req->ctx)
		req->ctx_free(req->ctx);
	free(req->head);
	buf_done(&req->body);
	buf_done(&req->more_headers);
	free(req);
}

void conn_free(struct conn *c)
{
	struct httpd_req *req = TAKE_PTR(c->req);
	struct httpd_stream *stream = TAKE_PTR(c->stream);
	enum conn_state state = c->state;
	const struct httpd_guest *guest;
	struct httpd *h = c->httpd;

	if (c->prev)
		c->prev->next = c->next;
	else
		h->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	h->n_conns--;
	share_leave(c);
	if (req)
		h->bodies_bytes -= req->body.max;
	httpd_listen_resume(h);
	bufferevent_free(c->bev);
	loop_timer_free(c->timer);
	guest = c->guest;
	free(c);

	if (stream)
		stream_closed(stream);
	if (req) {
		req->conn = NULL;
		if (state != CONN_BUSY)
			httpd_req_free(req);
		else if (req->gone)
			req->gone(req->gone_arg);
	}
	if (guest)
		guest->gone(guest->arg);
}

void conn_doom(struct conn *c)
{
	c->doomed = true;
	loop_timer_arm(c->timer, 0);
}

void conn_cut_when_deaf(struct conn *c, bool yes)
{
	usec_t idle = c->httpd->cfg.idle_usec;
	struct timeval tv = {.tv_sec = (time_t)(idle / USEC_PER_SEC),
			     .tv_usec = (suseconds_t)(idle % USEC_PER_SEC)};

	bufferevent_set_timeouts(c->bev, NULL, yes ? &tv : NULL);
}

static void conn_linger(struct conn *c)
{
	share_answer_is_out(c);
	/* A close with unread bytes would be a reset that can overtake the answer. */
	c->state = CONN_LINGER;
	c->dropped_bytes = 0;
	if (shutdown(bufferevent_getfd(c->bev), SHUT_WR) < 0)
		conn_doom(c);
	else
		loop_timer_arm(c->timer, LINGER_USEC);
}

void conn_flush(struct conn *c)
{
	loop_timer_disarm(c->timer);
	if (c->close_after && evbuffer_get_length(bufferevent_get_output(c->bev)) == 0) {
		conn_linger(c);
		return;
	}
	c->state = CONN_FLUSH;
	/* The write callback runs whenever the output has become empty. */
	bufferevent_setwatermark(c->bev, EV_WRITE, 0, 0);
}

static void conn_timer(void *arg)
{
	struct conn *c = arg;

	/* a refused body whose rest does not come */
	if (c->state == CONN_DROP && !c->doomed)
		reply_refusal(c, c->req, &c->req->refusal);
	else
		conn_free(c);
}

/* ---- reading ---- */

/* Whose path is not ours to read. */
static int route_any(const struct httpd_config *cfg, struct httpd_req *req,
		     struct err *err)
{
	if (strlen(req->g.method) > METHOD_MAX_BYTES || str_eq(req->g.method, "CONNECT"))
		return err_set_id(err, ERRID_HTTP_METHOD, "%.16s", req->g.method);
	req->route = cfg->any;
	return 0;
}

static int route_by_path(const struct httpd_config *cfg, struct httpd_req *req,
			 struct err *err)
{
	char *query;

	if (httpd_gate_path(req->g.path, cfg->encoded_slash_ok, req->path,
			    sizeof(req->path), err) < 0)
		return -1;
	query = req->g.query ? req->head + (req->g.query - req->head) : NULL;
	if (gate_query(query, req->query, &req->n_query, err) < 0)
		return -1;
	return httpd_find_route(cfg, req, err);
}

/* Everything that can be judged before the body is read. */
static int admit(struct conn *c, struct httpd_req *req, size_t head_len, struct err *err)
{
	const struct httpd_config *cfg = &c->httpd->cfg;
	const char *const *hosts = c->guest ? c->guest->hosts : cfg->hosts;

	if (cfg->connect && str_starts(req->head, "CONNECT "))
		return gate_parse_connect(req->head, head_len, &req->g, err);
	if (gate_parse(req->head, head_len, hosts, &req->g, err) < 0)
		return -1;
	if (req->g.is_chunked && !cfg->chunks_ok)
		return err_set_id(err, ERRID_HTTP_FRAMING, "Transfer-Encoding");
	if ((cfg->any ? route_any : route_by_path)(cfg, req, err) < 0)
		return -1;
	if (cfg->auth && cfg->auth(req, cfg->arg, err) < 0)
		return -1;
	if (req->g.is_chunked)
		req->g.content_length = req->route->body_max_bytes;
	if (req->g.content_length > req->route->body_max_bytes)
		return err_set_id(err, ERRID_HTTP_BODY, "at most %zu bytes",
				  req->route->body_max_bytes);
	if (cfg->bodies_max_bytes > 0 &&
	    req->g.content_length > cfg->bodies_max_bytes - c->httpd->bodies_bytes)
		return err_set_id(err, ERRID_HTTP_BUSY, "too many bodies at once");
	return share_admit_body(req, err);
}

static void dispatch(struct conn *c)
{
	struct httpd_req *req = c->req;

	c->state = CONN_BUSY;
	loop_timer_disarm(c->timer);
	req->route->handler(req, c->httpd->cfg.arg);
}

/* Idle for too long, or the request as a whole takes too long. */
static void arm_idle(struct conn *c, usec_t idle)
{
	usec_t now = clock_boot_usec();

	if (c->deadline < now)
		idle = 0;
	else if (c->deadline - now < idle)
		idle = c->deadline - now;
	loop_timer_arm(c->timer, idle);
}

/* 1: the body is whole; 0: not yet. */
static int read_sized(struct httpd_req *req, struct evbuffer *in)
{
	size_t want = (size_t)req->g.content_length - req->body.len;

	while (want > 0 && evbuffer_get_length(in) > 0) {
		size_t n = evbuffer_get_contiguous_space(in);

		if (n > want)
			n = want;
		buf_add(&req->body, evbuffer_pullup(in, (ev_ssize_t)n), n);
		(void)evbuffer_drain(in, n);
		want -= n;
	}
	return want == 0;
}

/* into NULL: its bytes are dropped. */
static int read_chunks(struct httpd_req *req, struct evbuffer *in, struct buf *into,
		       struct err *err)
{
	int r = 0;

	while (r == 0 && evbuffer_get_length(in) > 0) {
		size_t n = evbuffer_get_contiguous_space(in), used = 0;
		const char *data = (const char *)evbuffer_pullup(in, (ev_ssize_t)n);

		r = gate_chunks_feed(&req->chunks, data, n, into, &used, err);
		(void)evbuffer_drain(in, used);
	}
	return r;
}

/* 1: the rest of a refused body is over, or more than is waited for; 0: not yet. */
static int drop_body(struct conn *c, struct httpd_req *req, struct evbuffer *in)
{
	size_t before = evbuffer_get_length(in), n = before;
	struct err framing = ERR_INIT;
	int r = 0;

	if (req->g.is_chunked) {
		r = read_chunks(req, in, NULL, &framing);
	} else {
		n = c->dropped_bytes + n < req->g.content_length
			    ? n
			    : (size_t)req->g.content_length - c->dropped_bytes;
		(void)evbuffer_drain(in, n);
	}
	c->dropped_bytes += before - evbuffer_get_length(in);
	if (r != 0 || c->dropped_bytes > c->httpd->cfg.drop_max_bytes)
		return 1;
	return !req->g.is_chunked && c->dropped_bytes == req->g.content_length;
}

static void read_refused(struct conn *c)
{
	struct httpd_req *req = c->req;

	if (drop_body(c, req, bufferevent_get_input(c->bev)) > 0)
		reply_refusal(c, req, &req->refusal);
	else
		arm_idle(c, LINGER_USEC);
}

/* At once; or behind the rest of a body that is too large, where the server is asked for that. */
static void refuse(struct conn *c, struct httpd_req *req, const struct err *err)
{
	size_t max = c->httpd->cfg.drop_max_bytes;

	if (err->id != ERRID_HTTP_BODY || max == 0 || req->g.expect_continue ||
	    (!req->g.is_chunked && req->g.content_length > max)) {
		reply_refusal(c, req, err);
		return;
	}
	req->refusal = *err;
	c->state = CONN_DROP;
	c->dropped_bytes = 0;
	read_refused(c);
}

static void read_body(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct httpd_req *req = c->req;
	struct err err = ERR_INIT;
	int r = req->g.is_chunked ? read_chunks(req, in, &req->body, &err)
				  : read_sized(req, in);

	if (r < 0) {
		refuse(c, req, &err);
		return;
	}
	if (r == 0) {
		arm_idle(c, c->httpd->cfg.idle_usec);
		return;
	}
	/* Bytes after the request: it is answered, then the connection closes. */
	if (evbuffer_get_length(in) > 0) {
		(void)evbuffer_drain(in, evbuffer_get_length(in));
		c->close_after = true;
	}
	dispatch(c);
}

/* Who sends before the answer takes it for granted: what it says is not guessed at. */
static void connect_begins(struct conn *c)
{
	struct httpd_req *req = c->req;
	struct err err = ERR_INIT;

	if (evbuffer_get_length(bufferevent_get_input(c->bev)) > 0) {
		(void)err_set_id(&err, ERRID_HTTP_FRAMING,
				 "bytes behind CONNECT before its answer");
		reply_refusal(c, req, &err);
		return;
	}
	c->state = CONN_BUSY;
	loop_timer_disarm(c->timer);
	c->httpd->cfg.connect(req, req->g.path, c->httpd->cfg.arg);
}

static void request_begins(struct conn *c, size_t head_len)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct httpd_req *req = xnew(struct httpd_req);
	struct err err = ERR_INIT;

	request_id_new(&random_real, &req->id);
	buf_init(&req->more_headers, 4096);
	buf_init(&req->body, 0);
	req->uid = c->uid;
	req->pid = c->pid;
	req->head = xmalloc(head_len + 1);
	(void)evbuffer_remove(in, req->head, head_len);
	req->head[head_len] = '\0';
	req->conn = c;
	c->req = req;
	c->state = CONN_BODY;
	if (admit(c, req, head_len, &err) < 0) {
		refuse(c, req, &err);
		return;
	}
	if (req->g.close)
		c->close_after = true;
	if (req->g.is_connect) {
		connect_begins(c);
		return;
	}
	buf_init(&req->body, (size_t)req->g.content_length);
	gate_chunks_begin(&req->chunks, req->body.max);
	c->httpd->bodies_bytes += req->body.max;
	if (req->g.expect_continue && req->g.content_length > 0 &&
	    evbuffer_get_length(in) == 0)
		(void)bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	read_body(c);
}

static void read_head(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	size_t len = evbuffer_get_length(in);
	struct err err = ERR_INIT;
	const char *data;
	size_t head_len = 0;
	int r;

	if (len > GATE_HEAD_MAX_BYTES)
		len = GATE_HEAD_MAX_BYTES;
	if (c->scanned == 0) { /* first bytes: the head must be whole by then */
		usec_t limit = c->httpd->cfg.request_usec;

		c->deadline = limit ? clock_boot_usec() + limit : USEC_INFINITY;
		arm_idle(c, c->httpd->cfg.idle_usec);
	}
	data = (const char *)evbuffer_pullup(in, (ev_ssize_t)len);
	r = gate_head_end(data, len, &c->scanned, &head_len, &err);
	if (r < 0)
		reply_refusal(c, NULL, &err);
	else if (r > 0)
		request_begins(c, head_len);
}

static void read_cb(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(in);

	if (len == 0 || c->doomed)
		return;
	switch (c->state) {
	case CONN_HEAD:
		read_head(c);
		break;
	case CONN_BODY:
		read_body(c);
		break;
	case CONN_DROP:
		read_refused(c);
		break;
	case CONN_BUSY:
	case CONN_FLUSH:
	case CONN_STREAM:
		c->close_after = true;
		(void)evbuffer_drain(in, len);
		break;
	case CONN_LINGER:
		c->dropped_bytes += len;
		(void)evbuffer_drain(in, len);
		if (c->dropped_bytes > LINGER_MAX_BYTES)
			conn_free(c);
		break;
	}
}

static void write_cb(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	if (c->doomed)
		return;
	if (c->state == CONN_STREAM) {
		stream_drained(c->stream);
		return;
	}
	if (c->state != CONN_FLUSH ||
	    evbuffer_get_length(bufferevent_get_output(bev)) > 0)
		return;
	if (c->close_after) {
		conn_linger(c);
		return;
	}
	share_answer_is_out(c);
	c->state = CONN_HEAD;
	c->scanned = 0;
	loop_timer_arm(c->timer, c->httpd->cfg.idle_usec);
}

static void event_cb(struct bufferevent *bev UNUSED, short what, void *arg)
{
	struct conn *c = arg;

	/* It asked and closed its sending side: the answer may still be written. */
	if (c->state == CONN_FLUSH && what == (BEV_EVENT_READING | BEV_EVENT_EOF)) {
		c->close_after = true;
		return;
	}
	/* It closed, broke, or did not take its answer for idle_usec. */
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
		conn_free(c);
}

int httpd_req_take_fd(struct httpd_req *req)
{
	struct conn *c = req->conn;
	int fd = -1;

	assert(req->g.is_connect);
	if (c && evbuffer_get_length(bufferevent_get_input(c->bev)) == 0) {
		(void)bufferevent_disable(c->bev, EV_READ | EV_WRITE);
		fd = bufferevent_getfd(c->bev);
		(void)bufferevent_setfd(c->bev, -1);
	}
	if (c)
		conn_doom(c);
	httpd_req_free(req);
	return fd;
}

struct conn *conn_new(struct httpd *h, int fd, uid_t uid, pid_t pid)
{
	struct conn *c = xnew(struct conn);

	c->httpd = h;
	c->uid = uid;
	c->pid = pid;
	c->bev = bufferevent_socket_new(loop_base(h->loop), fd, BEV_OPT_CLOSE_ON_FREE);
	assert(c->bev);
	c->timer = loop_timer_new(h->loop, conn_timer, c);
	loop_timer_arm(c->timer, h->cfg.idle_usec);
	c->next = h->conns;
	if (c->next)
		c->next->prev = c;
	h->conns = c;
	h->n_conns++;
	share_join(c);
	(void)bufferevent_set_max_single_read(c->bev, READ_CHUNK_BYTES);
	bufferevent_setcb(c->bev, read_cb, write_cb, event_cb, c);
	conn_cut_when_deaf(c, true);
	(void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	return c;
}
