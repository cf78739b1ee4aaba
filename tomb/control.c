/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See control.h.
 */
#include "tomb/control.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tomb/rpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PEERS_MAX 16
#define PEER_IDLE_USEC (60 * USEC_PER_SEC)
#define REPLY_MAX_BYTES 16384

struct peer {
	struct control *control;
	int fd; /* -1: free */
	struct loop_io *io;
	struct loop_timer *idle;
	struct buf in, out;
};

struct control {
	struct loop *loop;
	struct control_ops ops;
	struct sockaddr_un addr;
	int fd;
	struct loop_io *io;
	struct peer peer[PEERS_MAX];
};

static void peer_close(struct peer *p)
{
	if (p->fd < 0)
		return;
	loop_io_free(p->io);
	p->io = NULL;
	loop_timer_free(p->idle);
	p->idle = NULL;
	fd_close(&p->fd);
	buf_done(&p->in);
	buf_done(&p->out);
}

static void peer_idle(void *arg)
{
	peer_close(arg);
}

static void peer_line(struct peer *p, const char *line, size_t len)
{
	const struct control_ops *ops = &p->control->ops;
	struct err err = ERR_INIT;
	struct rpc_request rq;
	int code = rpc_parse(line, len, &rq, &err);

	if (code != 0) {
		rpc_write_error(&p->out, rq.id, code, &err);
		return;
	}
	switch (rq.method) {
	case RPC_HEALTH_CHECK: {
		cleanup_buf struct buf json = {.max = REPLY_MAX_BYTES / 2};

		ops->health(&json, ops->arg);
		rpc_write_result(&p->out, rq.id, buf_str(&json));
		return;
	}
	case RPC_START_STAGE:
		ops->claim_now(ops->arg);
		rpc_write_result(&p->out, rq.id, "{}");
		return;
	case RPC_CANCEL_STAGE:
		if (ops->check_now(rq.job, ops->arg)) {
			rpc_write_result(&p->out, rq.id, "{}");
			return;
		}
		(void)err_set_id(&err, ERRID_RUN_NOT_FOUND, "not on this tomb");
		rpc_write_error(&p->out, rq.id, RPC_APPLICATION, &err);
		return;
	}
}

/* False: the peer is to be closed. */
static bool peer_flush(struct peer *p)
{
	while (p->out.len) {
		ssize_t n =
			send(p->fd, p->out.data, p->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return false;
		buf_consume(&p->out, (size_t)n);
	}
	/* An answer that is not taken stops the reading of further questions. */
	loop_io_set(p->io, p->out.len ? LOOP_WRITE : LOOP_READ);
	return true;
}

static bool peer_read(struct peer *p)
{
	char block[8192];
	ssize_t n = recv(p->fd, block, sizeof(block), MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	loop_timer_arm(p->idle, PEER_IDLE_USEC);
	buf_add(&p->in, block, (size_t)n);
	for (;;) {
		const char *nl = p->in.len ? memchr(p->in.data, '\n', p->in.len) : NULL;
		size_t len;

		if (!nl)
			break;
		len = (size_t)(nl - p->in.data);
		peer_line(p, p->in.data, len);
		buf_consume(&p->in, len + 1);
	}
	if (p->in.len > RPC_LINE_MAX_BYTES || !buf_ok(&p->in)) {
		struct err err = ERR_INIT;

		(void)err_set(&err, ERR_TOO_LARGE, "a line has at most %d bytes",
			      RPC_LINE_MAX_BYTES);
		rpc_write_error(&p->out, "null", RPC_INVALID_REQUEST, &err);
		(void)peer_flush(p);
		return false;
	}
	return buf_ok(&p->out) && peer_flush(p);
}

static void on_peer(int fd, unsigned what, void *arg)
{
	struct peer *p = arg;

	(void)fd;
	if (what & LOOP_WRITE ? !peer_flush(p) : !peer_read(p))
		peer_close(p);
}

static bool is_ours(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       cred.uid == getuid();
}

static void on_accept(int fd, unsigned what, void *arg)
{
	struct control *c = arg;
	cleanup_close int peer_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)what;
	if (peer_fd < 0 || !is_ours(peer_fd))
		return;
	for (size_t i = 0; i < PEERS_MAX; i++) {
		struct peer *p = &c->peer[i];

		if (p->fd >= 0)
			continue;
		p->control = c;
		p->fd = TAKE_FD(peer_fd);
		/* Room for the longest line and what came behind it in one read. */
		buf_init(&p->in, RPC_LINE_MAX_BYTES + 8192);
		buf_init(&p->out, (size_t)RPC_LINE_MAX_BYTES * 8);
		p->io = loop_io_new(c->loop, p->fd, LOOP_READ, on_peer, p);
		p->idle = loop_timer_new(c->loop, peer_idle, p);
		loop_timer_arm(p->idle, PEER_IDLE_USEC);
		return;
	}
}

/* A socket file that nobody serves any more is removed; a living one is not ours to take.
 */
static int remove_stale(const struct sockaddr_un *addr, struct err *err)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set_id(err, ERRID_START_SOCKET, "%s is not a socket",
				  addr->sun_path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		return err_set_id(err, ERRID_START_SOCKET, "%s is in use",
				  addr->sun_path);
	if (unlink(addr->sun_path) < 0)
		return err_sys_id(err, ERRID_START_SOCKET, "remove %s", addr->sun_path);
	return 0;
}

int control_new(struct loop *l, const char *path, const struct control_ops *ops,
		struct control **ret, struct err *err)
{
	struct control *c = xnew(struct control);

	c->loop = l;
	c->ops = *ops;
	c->fd = -1;
	for (size_t i = 0; i < PEERS_MAX; i++)
		c->peer[i].fd = -1;
	c->addr.sun_family = AF_UNIX;
	if (str_copy(c->addr.sun_path, sizeof(c->addr.sun_path), path) < 0) {
		free(c);
		return err_set_id(err, ERRID_START_SOCKET, "%s is too long for a socket",
				  path);
	}
	if (remove_stale(&c->addr, err) < 0) {
		free(c);
		return -1;
	}
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The umask is 077, so the file is ours alone from birth. */
	if (c->fd < 0 ||
	    bind(c->fd, (const struct sockaddr *)&c->addr, sizeof(c->addr)) < 0 ||
	    listen(c->fd, PEERS_MAX) < 0) {
		int r = err_sys_id(err, ERRID_START_SOCKET, "listen on %s", path);

		fd_close(&c->fd);
		free(c);
		return r;
	}
	c->io = loop_io_new(l, c->fd, LOOP_READ, on_accept, c);
	*ret = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < PEERS_MAX; i++)
		peer_close(&c->peer[i]);
	loop_io_free(c->io);
	fd_close(&c->fd);
	(void)unlink(c->addr.sun_path);
	free(c);
}
