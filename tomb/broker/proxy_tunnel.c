/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See proxy_tunnel.h.
 */
#include "tomb/broker/proxy_tunnel.h"
#include "tomb/broker/proxy_git.h"

#include "common/cleanup.h"
#include "common/host.h"
#include "common/mem.h"
#include "common/str.h"
#include "tomb/tls/tls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_USEC (30 * USEC_PER_SEC)
#define REQUEST_USEC (120 * USEC_PER_SEC)
#define BODIES_MAX_BYTES ((size_t)16 << 20)
#define DROP_MAX_BYTES ((size_t)16 << 20)
#define HTTPS_PORT 443
/* Tunnels of one job at once; connections that wait are bounded by the front end. */
#define TUNNELS_MAX 32
#define TUNNEL_HOST_SIZE (HOST_NAME_BYTES_MAX + 1)
#define URL_ROOM_BYTES 16384
#define REFUSAL_MAX_BYTES ((size_t)128 << 10)
#define NAMED_SIZE (TUNNEL_HOST_SIZE + sizeof(":65535"))

static_assert(TUNNELS_MAX <= TLS_TUNNELS_MAX, "each has its place there");

struct proxy_tunnels {
	struct proxy *proxy;
	struct httpd *inner;
	struct httpd_route any;
	unsigned n;
};

struct tunnel {
	struct proxy_tunnels *all;
	struct httpd_guest guest;
	char host[TUNNEL_HOST_SIZE];
	char named[NAMED_SIZE]; /* "host:port" */
	const char *hosts[3];	/* what the Host inside may be */
	const char *origin;	/* of these: as it stands in a URL */
};

/* ---- CONNECT ---- */

/* "host:443" -> host and port. ERRID_TUNNEL_HOST. */
static int parse_authority(const char *authority, char host[TUNNEL_HOST_SIZE],
			   unsigned *ret_port, struct err *err)
{
	const char *colon = strrchr(authority, ':');
	struct err ignored = ERR_INIT;
	uint64_t port = 0;
	size_t n = colon ? (size_t)(colon - authority) : 0;

	if (!colon || parse_u64(colon + 1, 1, 65535, &port, &ignored) < 0)
		return err_set_id(err, ERRID_TUNNEL_HOST, "%.300s: no host:port",
				  authority);
	if (!host_is_name(authority, n))
		return err_set_id(err, ERRID_TUNNEL_HOST,
				  "%.300s: an address, or no name in lower case",
				  authority);
	memcpy(host, authority, n);
	host[n] = '\0';
	*ret_port = (unsigned)port;
	return 0;
}

static void tunnel_gone(void *arg)
{
	struct tunnel *u = arg;

	u->all->n--;
	free(u);
}

static struct tunnel *tunnel_new(struct proxy_tunnels *t, const char *host, unsigned port)
{
	struct tunnel *u = xnew(struct tunnel);
	int r = str_copy(u->host, sizeof(u->host), host);

	assert(r == 0);
	r = str_fmt(u->named, sizeof(u->named), "%s:%u", host, port);
	assert(r == 0);
	/* Of the port that https has by itself clients leave it out, or write it. */
	u->hosts[0] = u->named;
	u->hosts[1] = port == HTTPS_PORT ? u->host : NULL;
	u->origin = port == HTTPS_PORT ? u->host : u->named;
	u->all = t;
	u->guest = (struct httpd_guest){.hosts = u->hosts, .gone = tunnel_gone, .arg = u};
	return u;
}

static int may_open(const struct proxy_tunnels *t, struct err *err)
{
	const struct tls_job *tls = proxy_config_of(t->proxy)->tls;

	if (!tls)
		return err_set_id(err, ERRID_TUNNEL_NONE, "none for this sandbox");
	if (!tls_job_is_up(tls))
		return err_set_id(err, ERRID_TUNNEL_AWAY, "it ended");
	if (t->n >= TUNNELS_MAX)
		return err_set_id(err, ERRID_TUNNEL_MANY, "%u are open", t->n);
	return 0;
}

/* The client's connection leaves: from here on it hears nothing but TLS, or its end. */
static void open_tunnel(struct proxy_tunnels *t, struct httpd_req *req, const char *host,
			unsigned port)
{
	struct tls_job *tls = proxy_config_of(t->proxy)->tls;
	struct tunnel *u = tunnel_new(t, host, port);
	cleanup_close int client = httpd_req_take_fd(req);
	cleanup_close int theirs = -1;
	int pair[2];

	if (client < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				     0, pair) < 0) {
		free(u);
		return;
	}
	theirs = pair[1];
	if (tls_job_open(tls, u->host, client, theirs) < 0) {
		fd_close(&pair[0]);
		free(u);
		return;
	}
	t->n++;
	httpd_add(t->inner, pair[0], &u->guest);
}

void proxy_tunnels_connect(struct proxy_tunnels *t, struct httpd_req *req,
			   const char *authority)
{
	char host[TUNNEL_HOST_SIZE];
	struct err err = ERR_INIT;
	unsigned port = 0;

	if (parse_authority(authority, host, &port, &err) < 0 || may_open(t, &err) < 0)
		httpd_reply_err(req, &err);
	else
		open_tunnel(t, req, host, port);
}

/* ---- inside ---- */

static void on_request(struct httpd_req *req, void *arg)
{
	struct proxy_tunnels *t = arg;
	const struct tunnel *u = httpd_req_guest(req);
	struct buf b;
	size_t len = 0, at;
	char *url;
	struct ask a = {
		.what = FETCH,
		.dialect = DIALECT_PLAIN,
		.method = httpd_req_method(req),
		.within = u->named,
	};

	/* A head has room for no more than 8 KiB of it. */
	buf_init(&b, URL_ROOM_BYTES);
	buf_addf(&b, "https://%s", u->origin);
	at = b.len;
	httpd_req_target(req, &b);
	url = buf_take(&b, &len);
	assert(url);
	a.git = proxy_git_request(a.method, url + at);
	/* It is read until the intent is written, and the request lives as long. */
	httpd_req_set_ctx(req, url, free);
	a.url = url;
	proxy_http_begin(t->proxy, req, &a);
}

/* What the server refuses by itself. */
static void error_body(struct buf *b, const struct err *err, int status,
		       const char *request_id, const char *path UNUSED, void *arg)
{
	const struct proxy_tunnels *t = arg;
	struct proxy_refusal r;

	proxy_refuse(t->proxy, err, status, request_id, &r);
	refusal_write(&r, DIALECT_PLAIN, b);
}

/* To git, whose words for a status are a number. */
static bool refuse(struct httpd_req *req, const struct err *err, int status,
		   const char *request_id, void *arg)
{
	const struct proxy_tunnels *t = arg;
	const struct tunnel *u = httpd_req_guest(req);
	cleanup_buf struct buf target, body;
	enum git_request git;
	struct proxy_refusal r;
	const char *type;
	const void *asked;
	size_t asked_len = 0;

	buf_init(&target, URL_ROOM_BYTES);
	buf_init(&body, REFUSAL_MAX_BYTES);
	httpd_req_target(req, &target);
	git = proxy_git_request(httpd_req_method(req), buf_str(&target));
	if (git == GIT_NONE)
		return false;
	proxy_refuse(t->proxy, err, status, request_id, &r);
	proxy_name_host(u->named, &r);
	asked = httpd_req_body(req, &asked_len);
	proxy_git_refusal(git, &r, asked, asked_len, &body, &status, &type);
	httpd_reply(req, status, type, buf_str(&body), body.len);
	return true;
}

/* ---- life ---- */

struct proxy_tunnels *proxy_tunnels_new(struct proxy *p)
{
	struct proxy_tunnels *t = xnew(struct proxy_tunnels);
	const struct httpd_config cfg = {
		.any = &t->any,
		.arg = t,
		.max_connections = TUNNELS_MAX,
		.idle_usec = IDLE_USEC,
		.stream_backlog_max_bytes = PROXY_BACKLOG_MAX_BYTES,
		.request_usec = REQUEST_USEC,
		.bodies_max_bytes = BODIES_MAX_BYTES,
		.chunks_ok = true,
		.drop_max_bytes = DROP_MAX_BYTES,
		.error_body = error_body,
		.refuse = refuse,
	};

	t->any = (struct httpd_route){.body_max_bytes = INTENT_FETCH_BODY_MAX_BYTES,
				      .handler = on_request};
	t->proxy = p;
	t->inner = httpd_new_inner(proxy_config_of(p)->loop, &cfg);
	return t;
}

void proxy_tunnels_free(struct proxy_tunnels *t)
{
	if (!t)
		return;
	httpd_free(t->inner);
	assert(t->n == 0);
	free(t);
}
