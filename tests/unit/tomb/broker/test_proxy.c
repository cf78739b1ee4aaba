/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker of a job against a vessel that is none: what the job sends, raw, on one
 * side, and on the other what came of it. Judged by the intents that arrive, by the bytes
 * that come back, and by what other jobs notice.
 */
#include "tomb/broker/proxy.h"
#include "tomb/broker/proxy_priv.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fdpass.h"
#include "common/mem.h"
#include "common/net/httpd.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"
#include "tests/support/turns.h"

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

/* ---- the vessel ---- */

static char seen_path[128], seen_body[4096], seen_job[64], seen_token[64];
static struct httpd_req *held[64];
static struct httpd_stream *stream;
static unsigned n_asked, n_closed, n_gone, n_drained;
/* What it does with the next request. */
static enum { ANSWER, HOLD, STREAM, REFUSE, REFUSE_RETRY, UPSTREAM_429, NO_CONTENT } mood;

static void closed(void *arg)
{
	(void)arg;
	n_closed++;
	stream = NULL;
}

static void drained(void *arg)
{
	(void)arg;
	n_drained++;
}

static void gone(void *arg)
{
	(void)arg;
	n_gone++;
}

static void keep(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text ? text : "-");
}

static void see(struct httpd_req *req)
{
	const char *dialect = httpd_req_query(req, "dialect");
	size_t len;
	const char *body = httpd_req_body(req, &len);

	(void)snprintf(seen_path, sizeof(seen_path), "%s%s%s", httpd_req_route(req)->path,
		       dialect ? "?" : "", dialect ? dialect : "");
	keep(seen_body, sizeof(seen_body), body);
	keep(seen_job, sizeof(seen_job), httpd_req_header(req, "Lychgate-Job"));
	keep(seen_token, sizeof(seen_token), httpd_req_header(req, "Lychgate-Token"));
}

static void start_stream(struct httpd_req *req)
{
	httpd_req_add_header(req, "Lychgate-Upstream-Status", "200");
	httpd_req_add_header(req, "x-upstream-request-id", "req_1");
	httpd_req_add_header(req, "Server", "hidden");
	stream = httpd_stream_start(req, 200, "text/event-stream", closed, NULL);
	httpd_stream_on_drain(stream, drained, NULL);
}

static void on_intent(struct httpd_req *req, void *arg)
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

static void vessel_up(void)
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

static struct proxy_config config(job_id_t job)
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
	};
}

static struct proxy *serve(const struct proxy_config *cfg, struct sockaddr_in *ret)
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

static void begin(void)
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

static void end(void)
{
	httpc_free(to_vessel);
	httpd_free(vessel);
	vessel_peer_done(&peer);
	loop_free(loop);
}

static void expect(const char *request, const char *part1, const char *part2)
{
	cleanup_buf struct buf b;
	int fd = turn_dial(&addr, request);

	buf_init(&b, 1 << 20);
	turn_until_text(loop, fd, &b, part2);
	cr_expect(strstr(buf_str(&b), part1), "%s: %s", request, buf_str(&b));
	close(fd);
}

static const char *post(const char *path, const char *headers, const char *body)
{
	static char text[65536];

	cr_assert(str_fmt(text, sizeof(text),
			  "POST %s HTTP/1.1\r\n" H "%sContent-Length: %zu\r\n\r\n%s",
			  path, headers, strlen(body), body) == 0);
	return text;
}

#define CHAT(body) post("/v1/chat/completions", BEARER, body)

/* ---- refusals ---- */

Test(proxy, without_the_jobs_key_nothing_is_asked)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect(post("/v1/chat/completions", "", "{}"), " 401 ",
	       "\"type\":\"authentication_error\"");
	expect(post("/v1/chat/completions", "Authorization: Bearer sk-real\r\n", "{}"),
	       " 401 ", "\"code\":\"LYCH-BROKER-020\"");
	expect(post("/v1/chat/completions", "Authorization: Bearer " KEY "x\r\n", "{}"),
	       " 401 ", "LYCH-BROKER-020");
	expect(post("/v1/messages", "X-Api-Key: lych-012345678x\r\n", "{}"), " 401 ",
	       "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"");
	expect("GET /v1/models HTTP/1.1\r\n" H "\r\n", " 401 ", "LYCH-BROKER-020");
	expect("GET /registry/npm/left-pad HTTP/1.1\r\n" H "\r\n", " 403 ",
	       "\"error_code\":\"LYCH-BROKER-021\"");
	cr_expect_eq(n_asked, 0);
	proxy_free(p);
	end();
}

Test(proxy, what_is_no_request_of_ours_is_refused_in_the_sdks_words)
{
	static const struct {
		const char *body, *code;
	} bad[] = {
		{"", "LYCH-SPEC-001"},
		{"[]", "LYCH-SPEC-001"},
		{"{\"a\":1,\"a\":2}", "LYCH-SPEC-001"},
		{"{\"a\":NaN}", "LYCH-SPEC-001"},
		{"{\"a\":'b'}", "LYCH-SPEC-001"},
		{"{\"a\":1} x", "LYCH-SPEC-001"},
		{"{\"stream\":\"yes\"}", "LYCH-SPEC-003"},
	};
	struct proxy_config cfg;
	struct proxy *p;
	char deep[40000];

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect(CHAT(bad[i].body), " 400 ", bad[i].code);
	memset(deep, '[', sizeof(deep) - 1);
	memcpy(deep, "{\"a\":", 5);
	deep[sizeof(deep) - 1] = '\0';
	expect(CHAT(deep), " 400 ", "\"type\":\"invalid_request_error\"");
	expect("POST /v1/messages HTTP/1.1\r\n" H BEARER
	       "Content-Length: 4294967296\r\n\r\n",
	       " 413 ", "\"type\":\"request_too_large\"");
	expect("POST /v1/chat/completions HTTP/1.1\r\n" H BEARER
	       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	       " 400 ", "LYCH-HTTP-001");
	expect(post("/v1/responses", BEARER, "{}"), " 404 ",
	       "{\"error\":{\"message\":\"LYCH-HTTP-002");
	expect("DELETE /v1/models HTTP/1.1\r\n" H BEARER "\r\n", " 405 ",
	       "LYCH-HTTP-003");
	expect("GET /fetch?url=a&x=b HTTP/1.1\r\n" H "\r\n", " 400 ", "LYCH-HTTP-007");
	expect("GET /fetch HTTP/1.1\r\n" H "\r\n", " 400 ", "LYCH-HTTP-007");
	cr_expect_eq(n_asked, 0);
	proxy_free(p);
	end();
}

Test(proxy, refusal_of_the_vessel_is_told_in_the_dialect)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = REFUSE;
	expect(CHAT("{}"), "X-Should-Retry: false\r\n",
	       "\"code\":\"LYCH-RUN-003\"},\"request_id\":\"");
	expect(CHAT("{}"), " 410 ", "The lease is no longer held: why not. ");
	expect(post("/v1/messages", "x-api-key: " KEY "\r\n", "{}"), " 410 ",
	       "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\"");
	expect("GET /fetch?url=https://a.example/ HTTP/1.1\r\n" H "\r\n", " 410 ",
	       "\"error_code\":\"LYCH-RUN-003\"");
	mood = REFUSE_RETRY;
	expect(CHAT("{}"), "Retry-After: 9\r\n", "LYCH-RUN-003");
	proxy_free(p);
	end();
}

Test(proxy, vessel_that_is_away_is_a_typed_503)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	httpd_free(vessel);
	vessel = NULL;
	expect(CHAT("{}"), " 503 ", "\"code\":\"LYCH-BROKER-024\"");
	expect(post("/v1/messages", BEARER, "{}"), "Retry-After: 1\r\n",
	       "\"type\":\"overloaded_error\"");
	/* ... and comes back. */
	vessel_up();
	expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	proxy_free(p);
	end();
}

Test(proxy, fields_that_have_not_their_form_are_refused)
{
	static const char *const bad[] = {
		"Anthropic-Version: 2023-06-01\r\nanthropic-version: 2023-06-01\r\n",
		"Anthropic-Beta: a\r\nAnthropic-Beta: b\r\n",
		"Anthropic-Version: latest\r\n",
		"Anthropic-Beta: a b\r\n",
		"Anthropic-Beta: a@b.example\r\n",
	};
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char fields[256];

		cr_assert(str_fmt(fields, sizeof(fields), "X-Api-Key: " KEY "\r\n%s",
				  bad[i]) == 0);
		/* of two fields of a name no request is made at all */
		expect(post("/v1/messages", fields, "{}"), " 400 ",
		       i < 2 ? "LYCH-HTTP-001" : "LYCH-BROKER-002");
		cr_expect_str_eq(seen_path, "", "%s", bad[i]);
	}
	proxy_free(p);
	end();
}

/* ---- what goes through ---- */

Test(proxy, version_and_betas_go_on_and_no_other_field)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect(post("/v1/messages",
		    "X-Api-Key: " KEY "\r\nAnthropic-Version: 2023-06-01\r\n"
		    "anthropic-BETA: a-1 , b\r\nX-Stainless: 1\r\n",
		    "{}"),
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":1,\"dialect\":\"anthropic\",\"stream\":false,"
			 "\"version\":\"2023-06-01\",\"beta\":\"a-1,b\",\"request\":{}}");
	proxy_free(p);
	end();
}

Test(proxy, intents_are_rebuilt_and_carry_the_lease)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	cfg.packages = true;
	p = serve(&cfg, &addr);
	expect(CHAT(" {\"model\" : \"m\",\"t\":0.70, \"x\":\"\\u0041\\/\",\"n\":1e2}"),
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_path, "/work/v1/ask");
	cr_expect_str_eq(seen_job, "7");
	cr_expect_str_eq(seen_token, "00000000-0000-4000-8000-000000000001");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":1,\"dialect\":\"openai\",\"stream\":false,\"request\":"
			 "{\"model\":\"m\",\"t\":0.70,\"x\":\"A/\",\"n\":1e2}}");
	expect(post("/v1/messages?beta=true", "X-Api-Key: " KEY "\r\n",
		    "{\"stream\":true}"),
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":2,\"dialect\":\"anthropic\",\"stream\":true,"
			 "\"request\":{\"stream\":true}}");
	expect("GET /v1/models HTTP/1.1\r\n" H BEARER "\r\n", " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_path, "/work/v1/models?openai");
	expect("GET /v1/models?limit=5 HTTP/1.1\r\n" H "X-Api-Key: " KEY
	       "\r\nAnthropic-Version: 2023-06-01\r\n\r\n",
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_path, "/work/v1/models?anthropic");
	expect("GET /fetch?url=https://a.example/x%3Fy%26z HTTP/1.1\r\n" H
	       "Accept: */*\r\nAuthorization: Bearer mine\r\nConnection: keep-alive\r\n"
	       "\r\n",
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(
		seen_body,
		"{\"seq\":5,\"method\":\"GET\",\"url\":\"https://a.example/x?y&z\","
		"\"headers\":[[\"Accept\",\"*/*\"]],\"body\":\"\"}");
	expect(post("/fetch?url=https://a.example/", "", "abc"), " 200 ",
	       "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":6,\"method\":\"POST\",\"url\":\"https://a.example/\","
			 "\"headers\":[],\"body\":\"YWJj\"}");
	expect("GET /registry/npm/@s%2fp/-/p-1.tgz HTTP/1.1\r\n" H "\r\n", " 200 ",
	       "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":7,\"registry\":\"npm\",\"path\":\"@s/p/-/p-1.tgz\"}");
	expect("GET /registry/pypi/simple/six/ HTTP/1.1\r\n" H "\r\n", " 200 ",
	       "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":8,\"registry\":\"pypi\",\"path\":\"simple/six/\"}");
	proxy_free(p);
	end();
}

Test(proxy, providers_own_answers_pass_with_their_status)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = UPSTREAM_429;
	expect(CHAT("{}"), "HTTP/1.1 429 ", "{\"theirs\":1}");
	expect(CHAT("{}"), "Retry-After: 2\r\n", "{\"theirs\":1}");
	expect(CHAT("{}"), "X-RateLimit-Remaining-Requests: 0\r\n", "{\"theirs\":1}");
	mood = NO_CONTENT;
	expect("GET /fetch?url=https://a.example/ HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 204 ",
	       "Content-Length: 0\r\n");
	proxy_free(p);
	end();
}

Test(proxy, stream_comes_as_it_is_sent)
{
	cleanup_buf struct buf b;
	struct proxy_config cfg;
	struct proxy *p;
	int fd;

	begin();
	buf_init(&b, 1 << 20);
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = STREAM;
	fd = turn_dial(&addr, CHAT("{\"stream\":true}"));
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "data: 1\n\n", 9));
	turn_until_text(loop, fd, &b, "data: 1\n\n");
	cr_expect(strstr(buf_str(&b), "Content-Type: text/event-stream\r\n"));
	cr_expect(strstr(buf_str(&b), "X-Upstream-Request-Id: req_1\r\n"));
	cr_expect_null(strstr(buf_str(&b), "hidden"));
	cr_assert(httpd_stream_send(stream, "data: 2\n\n", 9));
	turn_until_text(loop, fd, &b, "data: 2\n\n");
	httpd_stream_end(stream);
	turn_until_text(loop, fd, &b, "\r\n0\r\n\r\n");
	/* The connection serves on. */
	mood = ANSWER;
	cr_assert(send(fd, CHAT("{}"), strlen(CHAT("{}")), 0) > 0);
	turn_until_text(loop, fd, &b, "{\"ok\":true}");
	close(fd);
	/* One that is cut at the vessel is seen to be cut in the job. */
	buf_reset(&b);
	mood = STREAM;
	stream = NULL;
	fd = turn_dial(&addr, CHAT("{\"stream\":true}"));
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "data: 1\n\n", 9));
	turn_until_text(loop, fd, &b, "data: 1\n\n");
	httpd_free(vessel);
	vessel = NULL;
	turn_until_text(loop, fd, &b, NULL);
	cr_expect_null(strstr(buf_str(&b), "\r\n0\r\n"));
	close(fd);
	proxy_free(p);
	end();
}

Test(proxy, client_that_leaves_is_cancelled_at_the_vessel)
{
	cleanup_buf struct buf b;
	struct proxy_config cfg;
	struct proxy *p;
	usec_t t0;
	int fd;

	begin();
	buf_init(&b, 1 << 20);
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = HOLD;
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, n_asked == 1);
	t0 = clock_boot_usec();
	close(fd);
	TURN_UNTIL(loop, n_gone == 1);
	cr_expect(clock_boot_usec() - t0 < USEC_PER_SEC);
	httpd_reply(held[0], 200, "text/plain", "", 0);
	mood = STREAM;
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "x", 1));
	turn_until_text(loop, fd, &b, "\r\nx\r\n");
	t0 = clock_boot_usec();
	close(fd);
	TURN_UNTIL(loop, n_closed == 1);
	cr_expect(clock_boot_usec() - t0 < USEC_PER_SEC);
	/* The job's end does the same. */
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, stream);
	mood = HOLD;
	close(turn_dial(&addr, ""));
	proxy_free(p);
	TURN_UNTIL(loop, n_closed == 2);
	close(fd);
	end();
}

Test(proxy, slow_reader_holds_the_vessel_back)
{
	static char part[50000];
	cleanup_buf struct buf b;
	struct proxy_config cfg;
	struct proxy *p;
	size_t sent = 0;
	int fd;

	begin();
	buf_init(&b, 64 << 20);
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = STREAM;
	memset(part, 'x', sizeof(part));
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, stream);
	/* The kernel's buffers grow while they are filled; that they are full shows when a
	 * backlog stays. */
	do {
		while (httpd_stream_backlog(stream) < 500000) {
			cr_assert(httpd_stream_send(stream, part, sizeof(part)));
			sent += sizeof(part);
			cr_assert(sent < (32 << 20), "nothing holds it back");
			turn_loop(loop, 500);
		}
		turn_loop(loop, 20000);
	} while (httpd_stream_backlog(stream) < 500000);
	httpd_stream_end(stream);
	turn_until_text(loop, fd, &b, "\r\n0\r\n\r\n");
	cr_expect(b.len > sent, "%zu of %zu", b.len, sent);
	close(fd);
	proxy_free(p);
	end();
}

Test(proxy, more_requests_than_may_be_under_way_wait)
{
	struct proxy_config cfg;
	struct proxy *p;
	int fd[10];

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = HOLD;
	for (int i = 0; i < 10; i++)
		fd[i] = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, n_asked == 4);
	turn_loop(loop, 50000);
	cr_expect_eq(n_asked, 4);
	for (unsigned i = 0; i < 10; i++) {
		TURN_UNTIL(loop, n_asked > i);
		httpd_reply(held[i], 200, "text/plain", "x", 1);
	}
	TURN_UNTIL(loop, n_asked == 10);
	for (int i = 0; i < 10; i++)
		close(fd[i]);
	proxy_free(p);
	end();
}

/* ---- hostile neighbours ---- */

Test(proxy, what_one_job_does_leaves_the_others_asks_alone)
{
	enum { N = 100 };
	struct proxy_config cfg, cfg2;
	struct sockaddr_in bad, good;
	struct proxy *p, *q;
	int fd[N];

	begin();
	cfg = config(7);
	cfg2 = config(8);
	p = serve(&cfg, &bad);
	q = serve(&cfg2, &good);
	/* Slow heads, bodies that never come, and connections that say nothing. */
	for (int i = 0; i < N; i++) {
		static const char *const what[] = {
			"GET /fetch?ur", "",
			"POST /v1/messages HTTP/1.1\r\n" H BEARER
			"Content-Length: 4000000\r\n\r\n{"};
		const char *s = what[i % 3];

		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(fd[i], (struct sockaddr *)&bad, sizeof(bad));
		(void)!send(fd[i], s, strlen(s), MSG_NOSIGNAL);
	}
	turn_loop(loop, 50000);
	cr_expect_eq(n_asked, 0);
	addr = good;
	for (int i = 0; i < 20; i++)
		expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_job, "8");
	cr_expect_eq(n_asked, 20);
	for (int i = 0; i < N; i++)
		close(fd[i]);
	proxy_free(p);
	/* The other job's broker is untouched by the end of this one. */
	expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	proxy_free(q);
	end();
}
