/* SPDX-License-Identifier: Apache-2.0 */
/*
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
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define ACCEPTS_PER_TURN 16
#define ACCEPT_PAUSE_USEC (100 * USEC_PER_MSEC)
#define LINGER_USEC (2 * USEC_PER_SEC)
#define LINGER_MAX_BYTES ((size_t)16 << 20)
#define READ_CHUNK_BYTES ((size_t)64 << 10)

struct httpd {
	struct loop *loop;
	struct httpd_config cfg;
	char *socket_path;
	dev_t dev;
	ino_t ino;
	int fd;
	struct loop_io *io;
	struct loop_timer *pause; /* descriptors ran out: accept again later */
	struct conn *conns;
	unsigned n_conns;
};

static const char *const method_names[HTTP_M_MAX_] = {
	[HTTP_M_GET] = "GET",
	[HTTP_M_POST] = "POST",
	[HTTP_M_PUT] = "PUT",
	[HTTP_M_DELETE] = "DELETE",
};

const struct httpd_config *httpd_config_of(const struct conn *c)
{
	return &c->httpd->cfg;
}

/* ---- life of a connection and of a request ---- */

void httpd_req_free(struct httpd_req *req)
{
	if (!req)
		return;
	if (req->conn)
		req->conn->req = NULL;
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
	struct httpd_sse *sse = TAKE_PTR(c->sse);
	enum conn_state state = c->state;

	if (c->prev)
		c->prev->next = c->next;
	else
		c->httpd->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->httpd->n_conns--;
	bufferevent_free(c->bev);
	loop_timer_free(c->timer);
	free(c);

	if (sse)
		sse_closed(sse);
	if (req) {
		req->conn = NULL;
		if (state != CONN_BUSY)
			httpd_req_free(req);
		else if (req->gone)
			req->gone(req->gone_arg);
	}
}

void conn_doom(struct conn *c)
{
	c->doomed = true;
	loop_timer_arm(c->timer, 0);
}

static void conn_linger(struct conn *c)
{
	/* A close with unread bytes would be a reset that can overtake the answer. */
	c->state = CONN_LINGER;
	if (shutdown(bufferevent_getfd(c->bev), SHUT_WR) < 0)
		conn_doom(c);
	else
		loop_timer_arm(c->timer, LINGER_USEC);
}

void conn_flush(struct conn *c)
{
	c->state = CONN_FLUSH;
	/* The write callback runs whenever the output has become empty. */
	bufferevent_setwatermark(c->bev, EV_WRITE, 0, 0);
	loop_timer_disarm(c->timer);
}

static void conn_timer(void *arg)
{
	conn_free(arg);
}

/* ---- routing ---- */

/* Cut the decoded path into its components. */
static int split_path(struct httpd_req *req)
{
	char *at = req->path + 1;

	for (;;) {
		char *slash = strchr(at, '/');

		if (req->n_segments == GATE_SEGMENTS_MAX)
			return -1;
		req->segments[req->n_segments++] = at;
		if (!slash)
			return 0;
		*slash = '\0';
		at = slash + 1;
	}
}

/* Component i of a route's pattern; its length in *ret_len, NULL past the end. */
static const char *pattern_segment(const char *pattern, size_t i, size_t *ret_len)
{
	const char *at = pattern;

	do {
		at = strchr(at, '/');
		if (!at)
			return NULL;
		at++;
	} while (i-- > 0);
	*ret_len = strcspn(at, "/");
	return at;
}

static bool route_matches(const struct httpd_route *r, const struct httpd_req *req)
{
	size_t i, n;

	for (i = 0; i < req->n_segments; i++) {
		const char *p = pattern_segment(r->path, i, &n);

		if (!p)
			return false;
		if (*p == '{' ? !*req->segments[i]
			      : strlen(req->segments[i]) != n ||
					memcmp(p, req->segments[i], n) != 0)
			return false;
	}
	return pattern_segment(r->path, i, &n) == NULL;
}

static int find_route(const struct httpd *h, struct httpd_req *req, struct err *err)
{
	bool path_known = false;

	for (size_t i = 0; i < h->cfg.n_routes; i++) {
		const struct httpd_route *r = &h->cfg.routes[i];

		if (!route_matches(r, req))
			continue;
		path_known = true;
		if (str_eq(method_names[r->method], req->g.method)) {
			req->route = r;
			return 0;
		}
	}
	if (path_known)
		return err_set_id(err, ERRID_HTTP_METHOD, "%.16s", req->g.method);
	return err_set_id(err, ERRID_HTTP_ROUTE, "%.128s", req->g.path);
}

/* Everything that can be judged before the body is read. */
static int admit(struct conn *c, struct httpd_req *req, size_t head_len, struct err *err)
{
	const struct httpd_config *cfg = &c->httpd->cfg;
	char *query;

	if (gate_parse(req->head, head_len, &req->g, err) < 0)
		return -1;
	if (httpd_gate_path(req->g.path, req->path, sizeof(req->path), err) < 0)
		return -1;
	query = req->g.query ? req->head + (req->g.query - req->head) : NULL;
	if (gate_query(query, req->query, &req->n_query, err) < 0)
		return -1;
	if (split_path(req) < 0)
		return err_set_id(err, ERRID_HTTP_ROUTE, "path too deep");
	if (find_route(c->httpd, req, err) < 0)
		return -1;
	if (cfg->auth && cfg->auth(req, cfg->arg, err) < 0)
		return -1;
	if (req->g.content_length > req->route->body_max_bytes)
		return err_set_id(err, ERRID_HTTP_BODY, "at most %zu bytes",
				  req->route->body_max_bytes);
	return 0;
}

/* ---- reading ---- */

static void dispatch(struct conn *c)
{
	struct httpd_req *req = c->req;

	c->state = CONN_BUSY;
	loop_timer_disarm(c->timer);
	req->route->handler(req, c->httpd->cfg.arg);
}

static void read_body(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct httpd_req *req = c->req;
	size_t want = (size_t)req->g.content_length - req->body.len;

	while (want > 0 && evbuffer_get_length(in) > 0) {
		size_t n = evbuffer_get_contiguous_space(in);

		if (n > want)
			n = want;
		buf_add(&req->body, evbuffer_pullup(in, (ev_ssize_t)n), n);
		(void)evbuffer_drain(in, n);
		want -= n;
	}
	if (want > 0) {
		loop_timer_arm(c->timer, c->httpd->cfg.idle_usec);
		return;
	}
	/* Bytes after the request: it is answered, then the connection closes. */
	if (evbuffer_get_length(in) > 0) {
		(void)evbuffer_drain(in, evbuffer_get_length(in));
		c->close_after = true;
	}
	dispatch(c);
}

static void request_begins(struct conn *c, size_t head_len)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct httpd_req *req = xnew(struct httpd_req);
	struct err err = ERR_INIT;

	request_id_new(&random_real, &req->id);
	buf_init(&req->more_headers, 2048);
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
		reply_refusal(c, req, &err);
		return;
	}
	if (req->g.close)
		c->close_after = true;
	buf_init(&req->body, (size_t)req->g.content_length);
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
	if (c->scanned == 0) /* first bytes: the head must be whole by then */
		loop_timer_arm(c->timer, c->httpd->cfg.idle_usec);
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
	case CONN_BUSY:
	case CONN_FLUSH:
	case CONN_SSE:
		c->close_after = true;
		(void)evbuffer_drain(in, len);
		break;
	case CONN_LINGER:
		c->lingered_bytes += len;
		(void)evbuffer_drain(in, len);
		if (c->lingered_bytes > LINGER_MAX_BYTES)
			conn_free(c);
		break;
	}
}

static void write_cb(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	if (c->doomed)
		return;
	if (c->state == CONN_SSE) {
		sse_drained(c->sse);
		return;
	}
	if (c->state != CONN_FLUSH ||
	    evbuffer_get_length(bufferevent_get_output(bev)) > 0)
		return;
	if (c->close_after) {
		conn_linger(c);
		return;
	}
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

/* ---- accepting ---- */

/* Best effort and at once, for a client that gets no more than this. */
static void send_busy(int fd)
{
	const struct err_info *busy = err_info(ERRID_HTTP_BUSY);
	cleanup_buf struct buf body;
	struct request_id id;
	struct jsonw w;
	char text[1024];

	request_id_new(&random_real, &id);
	buf_init(&body, sizeof(text) / 2);
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "error_code", busy->text);
	jsonw_kstr(&w, "title", busy->title);
	jsonw_kstr(&w, "detail", busy->title);
	jsonw_kstr(&w, "hint", busy->hint);
	jsonw_kstr(&w, "request_id", id.s);
	jsonw_obj_end(&w);
	if (str_fmt(text, sizeof(text),
		    "HTTP/1.1 503 Service Unavailable\r\nX-Request-Id: %s\r\n"
		    "Content-Type: application/json\r\nContent-Length: %zu\r\n"
		    "Retry-After: 1\r\nConnection: close\r\n\r\n%s",
		    id.s, body.len, buf_str(&body)) == 0)
		(void)send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void conn_new(struct httpd *h, int fd, const struct ucred *peer)
{
	struct conn *c = xnew(struct conn);
	struct timeval tv = {.tv_sec = (time_t)(h->cfg.idle_usec / USEC_PER_SEC),
			     .tv_usec = (suseconds_t)(h->cfg.idle_usec % USEC_PER_SEC)};

	c->httpd = h;
	c->uid = peer->uid;
	c->pid = peer->pid;
	c->bev = bufferevent_socket_new(loop_base(h->loop), fd, BEV_OPT_CLOSE_ON_FREE);
	assert(c->bev);
	c->timer = loop_timer_new(h->loop, conn_timer, c);
	loop_timer_arm(c->timer, h->cfg.idle_usec);
	c->next = h->conns;
	if (c->next)
		c->next->prev = c;
	h->conns = c;
	h->n_conns++;
	(void)bufferevent_set_max_single_read(c->bev, READ_CHUNK_BYTES);
	bufferevent_setcb(c->bev, read_cb, write_cb, event_cb, c);
	bufferevent_set_timeouts(c->bev, NULL, &tv);
	(void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

/* False when there is nothing more to accept now. */
static bool accept_one(struct httpd *h)
{
	cleanup_close int fd = accept4(h->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS) {
			loop_io_set(h->io, 0);
			loop_timer_arm(h->pause, ACCEPT_PAUSE_USEC);
		}
		return errno == EINTR || errno == ECONNABORTED;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    len != sizeof(peer))
		return true;
	if (h->n_conns >= h->cfg.max_connections)
		send_busy(fd);
	else
		conn_new(h, TAKE_FD(fd), &peer);
	return true;
}

static void accept_cb(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	for (int i = 0; i < ACCEPTS_PER_TURN; i++)
		if (!accept_one(arg))
			return;
}

static void accept_again(void *arg)
{
	struct httpd *h = arg;

	loop_io_set(h->io, LOOP_READ);
}

/* ---- the listener ---- */

/* Remove a socket of ours that nobody listens on; anything else in the way is refused. */
static int remove_stale(const struct sockaddr_un *addr, struct err *err)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0) {
		if (errno == ENOENT)
			return 0;
		return err_sys_id(err, ERRID_START_SOCKET, "stat %s", addr->sun_path);
	}
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return err_set_id(err, ERRID_START_SOCKET, "%s is in the way",
				  addr->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "socket");
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ||
	    errno != ECONNREFUSED)
		return err_set_id(err, ERRID_START_SOCKET, "%s is in use",
				  addr->sun_path);
	if (unlink(addr->sun_path) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "unlink %s", addr->sun_path);
	return 0;
}

static int listen_on(struct httpd *h, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_close int fd = -1;
	struct stat st;

	if (str_copy(addr.sun_path, sizeof(addr.sun_path), h->socket_path) < 0)
		return err_set_id(err, ERRID_START_SOCKET,
				  "path longer than 107 bytes: %s", h->socket_path);
	if (remove_stale(&addr, err) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The mode of an unbound socket is that of its file, so it is right from birth.
	 */
	if (fd < 0 || fchmod(fd, h->cfg.socket_mode) < 0 ||
	    bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "bind %s", addr.sun_path);
	if (lstat(addr.sun_path, &st) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "stat %s", addr.sun_path);
	if ((st.st_mode & 0777) & ~h->cfg.socket_mode) {
		(void)unlink(addr.sun_path);
		return err_set_id(err, ERRID_START_SOCKET, "%s has mode %o",
				  addr.sun_path, st.st_mode & 0777);
	}
	if (listen(fd, 128) < 0) {
		(void)unlink(addr.sun_path);
		return err_sys_id(err, ERRID_START_SOCKET, "listen on %s", addr.sun_path);
	}
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	h->fd = TAKE_FD(fd);
	return 0;
}

int httpd_new(struct loop *l, const struct httpd_config *cfg, struct httpd **ret,
	      struct err *err)
{
	struct httpd *h = xnew(struct httpd);

	assert(cfg->max_connections > 0 && cfg->idle_usec > 0);
	h->loop = l;
	h->cfg = *cfg;
	h->fd = -1;
	h->socket_path = xstrdup(cfg->socket_path);
	h->cfg.socket_path = h->socket_path;
	if (listen_on(h, err) < 0) {
		free(h->socket_path);
		free(h);
		return -1;
	}
	h->io = loop_io_new(l, h->fd, LOOP_READ, accept_cb, h);
	h->pause = loop_timer_new(l, accept_again, h);
	*ret = h;
	return 0;
}

void httpd_free(struct httpd *h)
{
	struct stat st;

	if (!h)
		return;
	loop_io_free(h->io);
	loop_timer_free(h->pause);
	if (lstat(h->socket_path, &st) == 0 && st.st_dev == h->dev && st.st_ino == h->ino)
		(void)unlink(h->socket_path);
	fd_close(&h->fd);
	while (h->conns) {
		struct bufferevent *bev = h->conns->bev;

		if (h->conns->state == CONN_BUSY)
			send_busy(bufferevent_getfd(bev));
		else if (evbuffer_get_length(bufferevent_get_output(bev)) > 0)
			(void)evbuffer_write(bufferevent_get_output(bev),
					     bufferevent_getfd(bev));
		conn_free(h->conns);
	}
	free(h->socket_path);
	free(h);
}
