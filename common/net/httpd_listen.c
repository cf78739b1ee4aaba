/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Listening and accepting: a unix socket of our own, whose clients are told 503
 * beyond the cap, or one that was handed in, whose clients are a hostile job. That
 * one is bounded by not accepting: at the cap until a connection ends, and after a
 * turn's worth of accepts for a moment, so that a flood of connects costs the
 * process next to nothing and waits in the kernel's backlog of its own namespace.
 */
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"

#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define ACCEPTS_PER_TURN 16
#define ACCEPT_PAUSE_USEC (100 * USEC_PER_MSEC)
/* Of a job's listener: so many at once, then a pause. */
#define ADOPTED_PER_TURN 8
#define ADOPTED_PAUSE_USEC (10 * USEC_PER_MSEC)

/* Best effort and at once, for a client that gets no more than this. */
static void httpd_send_busy(int fd)
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

static void stop_for(struct httpd *h, usec_t usec)
{
	loop_io_set(h->io, 0);
	loop_timer_arm(h->pause, usec);
}

/* False when there is nothing more to accept now. */
static bool accept_one(struct httpd *h)
{
	cleanup_close int fd = -1;
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);
	int on = 1;

	if (!h->socket_path && h->n_conns >= h->cfg.max_connections) {
		h->full = true;
		loop_io_set(h->io, 0);
		return false;
	}
	fd = accept4(h->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS)
			stop_for(h, ACCEPT_PAUSE_USEC);
		return errno == EINTR || errno == ECONNABORTED;
	}
	if (h->socket_path && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
			       len != sizeof(peer)))
		return true;
	/* Small parts of a stream must not wait for an ACK. Not left to be inherited from the
	 * listener: who connected before it was handed in has it from before. */
	if (!h->socket_path &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return true;
	if (h->n_conns >= h->cfg.max_connections && !share_evict_stranger(h))
		httpd_send_busy(fd);
	else
		(void)conn_new(h, TAKE_FD(fd), peer.uid, peer.pid);
	return true;
}

static void accept_cb(int fd UNUSED, unsigned what UNUSED, void *arg)
{
	struct httpd *h = arg;
	int n = h->socket_path ? ACCEPTS_PER_TURN : ADOPTED_PER_TURN;

	for (int i = 0; i < n; i++)
		if (!accept_one(h))
			return;
	if (!h->socket_path)
		stop_for(h, ADOPTED_PAUSE_USEC);
}

static void accept_again(void *arg)
{
	struct httpd *h = arg;

	if (!h->full)
		loop_io_set(h->io, LOOP_READ);
}

void httpd_listen_resume(struct httpd *h)
{
	if (!h->full)
		return;
	h->full = false;
	/* Not at once: a client that reconnects for ever is paced, too. */
	loop_timer_arm(h->pause, ADOPTED_PAUSE_USEC);
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
	/* As many as may be connected may knock at once: one that finds no place in the
	 * queue is turned away by the kernel, without an answer. */
	if (listen(fd, (int)h->cfg.max_connections) < 0) {
		(void)unlink(addr.sun_path);
		return err_sys_id(err, ERRID_START_SOCKET, "listen on %s", addr.sun_path);
	}
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	h->fd = TAKE_FD(fd);
	return 0;
}

static bool is_in_place(const struct httpd *h)
{
	struct stat st;

	return lstat(h->socket_path, &st) == 0 && st.st_dev == h->dev &&
	       st.st_ino == h->ino;
}

int httpd_renew(struct httpd *h, struct err *err)
{
	int old = h->fd;
	struct stat st;

	if (is_in_place(h))
		return 0;
	/* listen_on() would take a socket that answers for another server's */
	if (lstat(h->socket_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    unlink(h->socket_path) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "unlink %s", h->socket_path);
	if (listen_on(h, err) < 0)
		return -1;
	/* who has knocked at the old one is asked to do so again */
	loop_io_free(h->io);
	(void)close(old);
	h->io = loop_io_new(h->loop, h->fd, LOOP_READ, accept_cb, h);
	loop_timer_disarm(h->pause);
	return 1;
}

static int adopt(int fd, struct err *err)
{
	struct sockaddr_in addr = {0};
	socklen_t len = sizeof(addr), int_len = sizeof(int);
	int listens = 0;

	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_len) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "listener handed in");
	if (addr.sin_family != AF_INET || addr.sin_addr.s_addr != htonl(INADDR_LOOPBACK))
		return err_set_id(err, ERRID_START_SOCKET,
				  "listener handed in: not on 127.0.0.1");
	if (!listens)
		return err_set_id(err, ERRID_START_SOCKET,
				  "listener handed in: does not listen");
	if (evutil_make_socket_nonblocking(fd) < 0 ||
	    evutil_make_socket_closeonexec(fd) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "listener handed in");
	return 0;
}

static struct httpd *server_new(struct loop *l, const struct httpd_config *cfg)
{
	struct httpd *h = xnew(struct httpd);

	assert(cfg->max_connections > 0 && cfg->idle_usec > 0);
	h->loop = l;
	h->cfg = *cfg;
	h->fd = -1;
	return h;
}

static void server_serve(struct httpd *h)
{
	h->io = loop_io_new(h->loop, h->fd, LOOP_READ, accept_cb, h);
	h->pause = loop_timer_new(h->loop, accept_again, h);
}

int httpd_new(struct loop *l, const struct httpd_config *cfg, struct httpd **ret,
	      struct err *err)
{
	struct httpd *h = server_new(l, cfg);

	h->socket_path = xstrdup(cfg->socket_path);
	h->cfg.socket_path = h->socket_path;
	if (listen_on(h, err) < 0) {
		free(h->socket_path);
		free(h);
		return -1;
	}
	server_serve(h);
	*ret = h;
	return 0;
}

int httpd_new_adopted(struct loop *l, const struct httpd_config *cfg, int listen_fd,
		      struct httpd **ret, struct err *err)
{
	cleanup_close int fd = listen_fd;
	struct httpd *h;

	if (adopt(fd, err) < 0)
		return -1;
	h = server_new(l, cfg);
	h->cfg.socket_path = NULL;
	h->fd = TAKE_FD(fd);
	server_serve(h);
	*ret = h;
	return 0;
}

struct httpd *httpd_new_inner(struct loop *l, const struct httpd_config *cfg)
{
	return server_new(l, cfg);
}

void httpd_add(struct httpd *h, int fd, const struct httpd_guest *guest)
{
	struct conn *c = conn_new(h, fd, (uid_t)-1, 0);

	assert(h->n_conns <= h->cfg.max_connections);
	c->guest = guest;
}

static void unlink_socket(const struct httpd *h)
{
	if (h->socket_path && is_in_place(h))
		(void)unlink(h->socket_path);
}

void httpd_free(struct httpd *h)
{
	if (!h)
		return;
	loop_io_free(h->io);
	unlink_socket(h);
	fd_close(&h->fd);
	while (h->conns) {
		struct bufferevent *bev = h->conns->bev;

		if (h->conns->state == CONN_BUSY)
			httpd_send_busy(bufferevent_getfd(bev));
		else if (evbuffer_get_length(bufferevent_get_output(bev)) > 0)
			(void)evbuffer_write(bufferevent_get_output(bev),
					     bufferevent_getfd(bev));
		conn_free(h->conns);
	}
	loop_timer_free(h->pause);
	free(h->socket_path);
	free(h);
}
