/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * The broker as HTTP/1.1 on the job's own loopback. The job's side is hostile: what
 * common/net/httpd.h promises about framing, caps and deadlines is used to the full, a
 * key is checked before a byte of a body is read, and a flood waits in the backlog of its
 * own namespace.
 */
#include "tomb/broker/proxy_git.h"
#include "tomb/broker/proxy_priv.h"
#include "tomb/broker/proxy_routes.h"
#include "tomb/broker/proxy_tunnel.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/net/httpd.h"
#include "common/proto/broker_limits.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_USEC (30 * USEC_PER_SEC)
#define REQUEST_USEC (120 * USEC_PER_SEC)
#define BODIES_MAX_BYTES ((size_t)16 << 20)
#define REFUSAL_MAX_BYTES ((size_t)128 << 10)
#define LED_BACK_MAX 32 /* connections */

struct proxy_http {
	struct proxy *proxy;
	struct httpd *httpd;
	struct proxy_tunnels *tunnels;
	struct httpd *led_back; /* what came by CONNECT to the broker itself */
	struct httpd_guest guest;
	unsigned n_led_back;
};

static const char *const own_hosts[] = {BROKER_HOST, "localhost:8787", NULL};

/* One request, until its answer is out or its client gone. */
struct http_client {
	struct httpd_req *req;	     /* until the answer begins */
	struct httpd_stream *stream; /* from then on */
	struct exchange *exchange;
	int no_body; /* of this status, to HEAD: what comes is dropped; 0: it has one */
	char type[128]; /* of what is dropped */
	bool is_head;
	char within[300]; /* the tunnel that it came by; "": none */
	enum git_request git;
};

/* ---- answers ---- */

static void add_headers(struct httpd_req *req, const struct httpc_call *call)
{
	const char *name, *value, *as;
	size_t at = 0;

	for (int n = 0; n < 16 && httpc_header_next(call, &at, &name, &value);)
		if (strlen(name) + strlen(value) < 200 && proxy_header_passes(name, &as))
			n += httpd_req_pass_header(req, as, value);
}

void proxy_name_host(const char *within, struct proxy_refusal *r)
{
	size_t n = strlen(r->detail);

	if (within[0] && !strstr(r->detail, within))
		(void)snprintf(r->detail + n, sizeof(r->detail) - n, "%s%s",
			       n ? ": " : "", within);
}

static void client_refuse(void *arg, const struct proxy_refusal *refusal,
			  enum proxy_dialect d)
{
	struct http_client *c = arg;
	struct proxy_refusal named = *refusal, *r = &named;
	const char *type = "application/json";
	int status = r->status;
	cleanup_buf struct buf body;
	const void *asked;
	size_t asked_len = 0;

	proxy_name_host(c->within, r);
	buf_init(&body, REFUSAL_MAX_BYTES);
	asked = httpd_req_body(c->req, &asked_len);
	if (c->git != GIT_NONE)
		proxy_git_refusal(c->git, r, asked, asked_len, &body, &status, &type);
	else
		refusal_write(r, d, &body);
	if (r->retry_after[0])
		httpd_req_add_header(c->req, "Retry-After", r->retry_after);
	if (refusal_is_final(r))
		httpd_req_add_header(c->req, "X-Should-Retry", "false");
	if (c->is_head)
		httpd_reply_head_only(c->req, status, type);
	else
		httpd_reply(c->req, status, type, buf_str(&body), body.len);
	free(c);
}

static void on_close(void *arg)
{
	struct http_client *c = arg;

	exchange_abandon(c->exchange);
	free(c);
}

static void on_drain(void *arg)
{
	struct http_client *c = arg;

	exchange_drained(c->exchange);
}

static void client_head(void *arg, int status, const struct httpc_call *call)
{
	struct http_client *c = arg;
	const char *type = httpc_header(call, "Content-Type");

	add_headers(c->req, call);
	if (status == 204 || status == 304 || c->is_head) {
		c->no_body = status;
		(void)snprintf(c->type, sizeof(c->type), "%s",
			       type ? type : "text/plain");
		return;
	}
	/* The request ends here, and so does its on_gone. */
	c->stream = httpd_stream_start(c->req, status, type ? type : "text/plain",
				       on_close, c);
	c->req = NULL;
	assert(c->stream);
	httpd_stream_on_drain(c->stream, on_drain, c);
}

static void client_data(void *arg, const void *data, size_t len)
{
	struct http_client *c = arg;

	/* Cut off: on_close follows, and lets go of the exchange. */
	if (c->stream)
		(void)httpd_stream_send(c->stream, data, len);
}

static size_t client_backlog(void *arg)
{
	const struct http_client *c = arg;

	return c->stream ? httpd_stream_backlog(c->stream) : 0;
}

static void client_end(void *arg)
{
	struct http_client *c = arg;

	if (c->stream)
		httpd_stream_end(c->stream);
	else if (c->is_head)
		httpd_reply_head_only(c->req, c->no_body, c->type);
	else
		httpd_reply(c->req, 204, NULL, "", 0);
	free(c);
}

static void client_cut(void *arg)
{
	struct http_client *c = arg;

	if (c->stream)
		httpd_stream_abort(c->stream);
	else
		httpd_reply(c->req, 502, NULL, "", 0);
	free(c);
}

static const struct client_ops client_ops = {
	.refuse = client_refuse,
	.head = client_head,
	.data = client_data,
	.backlog = client_backlog,
	.end = client_end,
	.cut = client_cut,
};

/* ---- requests ---- */

static void on_gone(void *arg)
{
	struct http_client *c = arg;

	exchange_abandon(c->exchange);
	httpd_reply(c->req, 503, NULL, "", 0); /* into the void */
	free(c);
}

static void refuse(const struct proxy_http *h, struct httpd_req *req,
		   enum proxy_dialect d, const struct err *err)
{
	struct http_client *c = xnew(struct http_client);
	struct proxy_refusal r;
	struct request_id id;

	request_id_new(&random_real, &id);
	proxy_refuse(h->proxy, err, err_http_status(err), id.s, &r);
	c->req = req;
	client_refuse(c, &r, d);
}

void proxy_http_begin(struct proxy *p, struct httpd_req *req, struct ask *a)
{
	struct intent_header headers[64];
	struct http_client *c;

	if (proxy_takes_headers(a->what)) {
		while (a->n_headers < ARRAY_SIZE(headers) &&
		       httpd_req_header_at(req, a->n_headers, &headers[a->n_headers].name,
					   &headers[a->n_headers].value))
			a->n_headers++;
		a->headers = headers;
	}
	a->body = httpd_req_body(req, &a->len);
	c = xnew(struct http_client);
	c->req = req;
	if (a->within) {
		c->is_head = str_eq(a->method, "HEAD");
		(void)snprintf(c->within, sizeof(c->within), "%s", a->within);
		c->git = a->git;
	}
	c->exchange = exchange_begin(p, a, &client_ops, c);
	httpd_req_on_gone(req, on_gone, c);
}

static const struct proxy_route *route_of(const struct httpd_req *req)
{
	return &proxy_routes[httpd_req_route(req)->who];
}

static void on_request(struct httpd_req *req, void *arg)
{
	const struct proxy_http *h = arg;
	struct err err = ERR_INIT;
	const struct proxy_route *r = route_of(req);
	const char *url = httpd_req_query(req, "url"), *alt = httpd_req_query(req, "alt"),
		   *below = httpd_req_param(req, "path");
	struct ask a = {
		.what = r->what,
		.dialect = r->dialect,
		.method = proxy_method_name(r),
		.alt = alt ? alt : "",
		.url = r->what == FETCH && url ? url
		       : below		       ? below
					       : "",
	};

	/* Only their SDKs name a version. */
	if ((r->what == LIST_MODELS || r->what == SHOW_MODEL) &&
	    r->dialect != DIALECT_GEMINI && httpd_req_header(req, "anthropic-version"))
		a.dialect = DIALECT_ANTHROPIC;
	/* what is not served is so with any query */
	if (r->what != NOT_SERVED && httpd_req_check_query(req, r->params, &err) < 0)
		refuse(h, req, a.dialect, &err);
	else
		proxy_http_begin(h->proxy, req, &a);
}

static void led_back_gone(void *arg)
{
	struct proxy_http *h = arg;

	h->n_led_back--;
}

/* A client that takes no notice of NO_PROXY asks for a way to the broker: it has one, on which it goes
 * on as on any connection. */
static void lead_back(struct proxy_http *h, struct httpd_req *req)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct err err = ERR_INIT;
	int fd;

	if (h->n_led_back >= LED_BACK_MAX) {
		(void)err_set_id(&err, ERRID_TUNNEL_MANY, "%u to the broker are open",
				 h->n_led_back);
		httpd_reply_err(req, &err);
		return;
	}
	fd = httpd_req_take_fd(req);
	if (fd < 0)
		return;
	if (send(fd, established, sizeof(established) - 1, MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(established) - 1) {
		fd_close(&fd);
		return;
	}
	h->n_led_back++;
	httpd_add(h->led_back, fd, &h->guest);
}

static void on_connect(struct httpd_req *req, const char *authority, void *arg)
{
	struct proxy_http *h = arg;

	for (size_t i = 0; own_hosts[i]; i++)
		if (str_eq(authority, own_hosts[i])) {
			lead_back(h, req);
			return;
		}
	proxy_tunnels_connect(h->tunnels, req, authority);
}

#define ROUTES_MAX 256
#define PATTERN_SIZE 64

/* The table as httpd has it; the same for every job. */
static const struct httpd_route *routes(void)
{
	static struct httpd_route all[ROUTES_MAX];
	static char pattern[ROUTES_MAX][PATTERN_SIZE];

	assert(proxy_n_routes <= ROUTES_MAX);
	for (size_t i = 0; i < proxy_n_routes; i++) {
		const struct proxy_route *r = &proxy_routes[i];
		bool is_below = r->path[strlen(r->path) - 1] == '/';
		int done = str_fmt(pattern[i], PATTERN_SIZE, "%s%s", r->path,
				   is_below ? "{path...}" : "");

		assert(done == 0);
		all[i] = (struct httpd_route){
			.method = r->method,
			.path = pattern[i],
			.who = (unsigned)i,
			.body_max_bytes = proxy_body_max(r),
			.handler = on_request,
		};
	}
	return all;
}

static int auth(struct httpd_req *req, void *arg, struct err *err)
{
	const struct proxy_http *h = arg;
	const char *key = httpd_req_header(req, "X-Api-Key");

	return proxy_admit(h->proxy, route_of(req),
			   httpd_req_header(req, "Authorization"),
			   key ? key : httpd_req_header(req, "X-Goog-Api-Key"), err);
}

/* What httpd refuses by itself, in the words of the path's dialect. */
static void error_body(struct buf *b, const struct err *err, int status,
		       const char *request_id, const char *path, void *arg)
{
	const struct proxy_http *h = arg;
	struct proxy_refusal r;

	proxy_refuse(h->proxy, err, status, request_id, &r);
	refusal_write(&r, proxy_dialect_of(path), b);
}

int proxy_http_new(struct proxy *p, int listen_fd, struct proxy_http **ret,
		   struct err *err)
{
	struct proxy_http *h = xnew(struct proxy_http);
	const unsigned most = proxy_config_of(p)->inflight_max;
	struct httpd_config cfg = {
		.routes = routes(),
		.n_routes = proxy_n_routes,
		.auth = auth,
		.arg = h,
		/* more than may be under way and wait: some are told that they are too many */
		.max_connections = most + broker_waiting_max(most) + most,
		.idle_usec = IDLE_USEC,
		.stream_backlog_max_bytes = PROXY_BACKLOG_MAX_BYTES,
		.hosts = own_hosts,
		.request_usec = REQUEST_USEC,
		.bodies_max_bytes = BODIES_MAX_BYTES,
		.encoded_slash_ok = true,
		.error_body = error_body,
		.connect = on_connect,
	};

	h->proxy = p;
	if (httpd_new_adopted(proxy_config_of(p)->loop, &cfg, listen_fd, &h->httpd, err) <
	    0) {
		free(h);
		return -1;
	}
	h->tunnels = proxy_tunnels_new(p);
	h->guest =
		(struct httpd_guest){.hosts = own_hosts, .gone = led_back_gone, .arg = h};
	cfg.connect = NULL;
	cfg.max_connections = LED_BACK_MAX;
	h->led_back = httpd_new_inner(proxy_config_of(p)->loop, &cfg);
	*ret = h;
	return 0;
}

void proxy_http_free(struct proxy_http *h)
{
	if (!h)
		return;
	proxy_tunnels_free(h->tunnels);
	httpd_free(h->led_back);
	assert(h->n_led_back == 0);
	httpd_free(h->httpd);
	free(h);
}
