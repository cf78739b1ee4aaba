/* SPDX-License-Identifier: Apache-2.0 */
/* A job's broker between a vessel that does as it is told and a client of the job's. */
#ifndef LYCH_TESTS_UNIT_TOMB_BROKER_PROXY_BENCH_H
#define LYCH_TESTS_UNIT_TOMB_BROKER_PROXY_BENCH_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/mem.h"
#include "common/net/httpd.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"
#include "tests/support/turns.h"
#include "tomb/broker/proxy.h"
#include "tomb/broker/proxy_priv.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

TestSuite(proxy, .timeout = 120);

#define KEY "lych-0123456789"
#define H "Host: 127.0.0.1:8787\r\n"
#define BEARER "Authorization: Bearer " KEY "\r\n"

static struct loop *loop;
static struct httpd *vessel;
static struct httpc *to_vessel;
static struct vessel_peer peer;
static char sock_path[64];

static struct proxy_refused refused;

/* ---- the vessel ---- */

static char seen_path[128], seen_body[4096], seen_job[64], seen_token[64];
static struct httpd_req *held[64];
static struct httpd_stream *stream;
static unsigned n_asked, n_closed, n_gone, n_drained;
/* What it does with the next request. */
static enum {
	ANSWER,
	HOLD,
	STREAM,
	REFUSE,
	REFUSE_RETRY,
	FORBID,
	UNTHREAD,
	UPSTREAM_429,
	NO_CONTENT
} mood;

static inline void closed(void *arg)
{
	(void)arg;
	n_closed++;
	stream = NULL;
}

static inline void drained(void *arg)
{
	(void)arg;
	n_drained++;
}

static inline void gone(void *arg)
{
	(void)arg;
	n_gone++;
}

static inline void keep(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text ? text : "-");
}

static inline void see(struct httpd_req *req)
{
	const char *dialect = httpd_req_query(req, "dialect"),
		   *model = httpd_req_query(req, "model");
	size_t len;
	const char *body = httpd_req_body(req, &len);

	(void)snprintf(seen_path, sizeof(seen_path), "%s%s%s%s%s",
		       httpd_req_route(req)->path, dialect ? "?" : "",
		       dialect ? dialect : "", model ? " " : "", model ? model : "");
	keep(seen_body, sizeof(seen_body), body);
	keep(seen_job, sizeof(seen_job), httpd_req_header(req, "Lychgate-Job"));
	keep(seen_token, sizeof(seen_token), httpd_req_header(req, "Lychgate-Token"));
}

static inline void start_stream(struct httpd_req *req)
{
	httpd_req_add_header(req, "Lychgate-Upstream-Status", "200");
	httpd_req_add_header(req, "x-upstream-request-id", "req_1");
	httpd_req_add_header(req, "Server", "hidden");
	stream = httpd_stream_start(req, 200, "text/event-stream", closed, NULL);
	httpd_stream_on_drain(stream, drained, NULL);
}

static inline void on_intent(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;

	(void)arg;
	see(req);
	n_asked++;
	switch (mood) {
	case HOLD:
		httpd_req_on_gone(req, gone, NULL);
		held[(n_asked - 1) % ARRAY_SIZE(held)] = req;
		return;
	case STREAM:
		start_stream(req);
		return;
	case REFUSE_RETRY:
		httpd_req_add_header(req, "Retry-After", "9");
		/* fall through */
	case REFUSE:
		(void)err_set_id(&err, ERRID_RUN_STALE, "why not");
		httpd_reply_err(req, &err);
		return;
	case FORBID:
		(void)err_set_id(&err, ERRID_BROKER_FEATURE, "store");
		httpd_reply_err(req, &err);
		return;
	case UNTHREAD:
		(void)err_set_id(&err, ERRID_BROKER_THREAD, "thread");
		httpd_reply_err(req, &err);
		return;
	case UPSTREAM_429:
		httpd_req_add_header(req, "Lychgate-Upstream-Status", "429");
		httpd_req_add_header(req, "Retry-After", "2");
		httpd_req_add_header(req, "X-RateLimit-Remaining-Requests", "0");
		httpd_reply(req, 200, "application/json", "{\"theirs\":1}", 12);
		return;
	case NO_CONTENT:
		httpd_req_add_header(req, "Lychgate-Upstream-Status", "304");
		httpd_reply(req, 200, "text/plain", "", 0);
		return;
	case ANSWER:
		httpd_req_add_header(req, "Lychgate-Upstream-Status", "200");
		httpd_reply(req, 200, "application/json", "{\"ok\":true}", 11);
		return;
	}
}

static const struct httpd_route routes[] = {
	{HTTP_M_POST, "/work/v1/ask", 0, 5 << 20, on_intent},
	{HTTP_M_POST, "/work/v1/fetch", 0, 5 << 20, on_intent},
	{HTTP_M_POST, "/work/v1/package", 0, 5 << 20, on_intent},
	{HTTP_M_GET, "/work/v1/models", 0, 0, on_intent},
};

static inline void vessel_up(void)
{
	const struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.max_connections = 200,
		.idle_usec = 60 * USEC_PER_SEC,
		.stream_backlog_max_bytes = 1 << 20,
	};
	struct err err = ERR_INIT;

	cr_assert(httpd_new(loop, &cfg, &vessel, &err) == 0, "%s", err.msg);
}

/* ---- a job's broker ---- */

static struct sockaddr_in addr;

static inline struct proxy_config config(job_id_t job)
{
	return (struct proxy_config){
		.loop = loop,
		.vessel = to_vessel,
		.peer = &peer,
		.key = {.job = job,
			.epoch = 3,
			.token = {"00000000-0000-4000-8000-000000000001"}},
		.phantom = KEY,
		.inflight_max = 4,
		.refused = &refused,
	};
}

static inline struct proxy *serve(const struct proxy_config *cfg, struct sockaddr_in *ret)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*ret);
	struct proxy *p = NULL;
	struct err err = ERR_INIT;

	*ret = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	cr_assert(bind(fd, (struct sockaddr *)ret, sizeof(*ret)) == 0);
	cr_assert(listen(fd, BROKER_BACKLOG) == 0);
	cr_assert(getsockname(fd, (struct sockaddr *)ret, &len) == 0);
	cr_assert(proxy_new_http(cfg, fd, &p, &err) == 0, "%s", err.msg);
	return p;
}

static inline void begin(void)
{
	struct err err = ERR_INIT;

	n_asked = n_closed = n_gone = n_drained = 0;
	stream = NULL;
	mood = ANSWER;
	cr_assert(str_copy(sock_path, sizeof(sock_path), scratch_socket()) == 0);
	cr_assert(loop_new(&loop, &err) == 0);
	vessel_up();
	cr_assert(vessel_peer_init(&peer, sock_path, "t1", "secret", 1, &err) == 0);
	cr_assert(httpc_new(loop, sock_path, 64, &to_vessel, &err) == 0);
}

static inline void end(void)
{
	httpc_free(to_vessel);
	httpd_free(vessel);
	vessel_peer_done(&peer);
	loop_free(loop);
}

static inline void expect(const char *request, const char *part1, const char *part2)
{
	cleanup_buf struct buf b;
	int fd = turn_dial(&addr, request);

	buf_init(&b, 1 << 20);
	turn_until_text(loop, fd, &b, part2);
	cr_expect(strstr(buf_str(&b), part1), "%s: %s", request, buf_str(&b));
	close(fd);
}

static inline const char *post(const char *path, const char *headers, const char *body)
{
	static char text[65536];

	cr_assert(str_fmt(text, sizeof(text),
			  "POST %s HTTP/1.1\r\n" H "%sContent-Length: %zu\r\n\r\n%s",
			  path, headers, strlen(body), body) == 0);
	return text;
}

#define CHAT(body) post("/v1/chat/completions", BEARER, body)

#endif
