/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming answers, and a listening socket that was handed in: judged from the
 * client's side of a real TCP connection on loopback.
 */
#include "common/net/httpd.h"
#include "common/net/loop.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/turns.h"

#include <arpa/inet.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

TestSuite(httpd_stream, .timeout = 60);

#define H "Host: 127.0.0.1:8787\r\n"
#define BACKLOG ((size_t)100000)

static struct loop *loop;
static struct httpd *server;
static struct sockaddr_in addr;
static struct httpd_stream *stream;
static struct httpd_req *held[16];
static unsigned n_held, n_gone, n_closed, n_drained;

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

static void open_stream(struct httpd_req *req, void *arg)
{
	(void)arg;
	httpd_req_add_header(req, "Lychgate-Upstream-Status", "200");
	stream = httpd_stream_start(req, 202, "text/plain", closed, NULL);
	httpd_stream_on_drain(stream, drained, NULL);
}

static void gone(void *arg)
{
	(void)arg;
	n_gone++;
}

static void hold(struct httpd_req *req, void *arg)
{
	(void)arg;
	httpd_req_on_gone(req, gone, NULL);
	held[n_held++] = req;
}

static void tail(struct httpd_req *req, void *arg)
{
	const char *path = httpd_req_param(req, "path");
	uid_t uid = 0;
	pid_t pid = 1;

	(void)arg;
	httpd_req_peer(req, &uid, &pid);
	cr_expect_eq(uid, (uid_t)-1);
	cr_expect_eq(pid, 0);
	httpd_reply(req, 200, "text/plain", path, strlen(path));
}

static void error_body(struct buf *b, const struct err *err, int status,
		       const char *request_id, const char *path, void *arg)
{
	(void)arg;
	cr_expect(*request_id);
	buf_addf(b, "{\"mine\":%d,\"code\":\"%s\",\"path\":\"%s\"}", status,
		 err_text(err), path ? path : "-");
}

static const struct httpd_route routes[] = {
	{HTTP_M_GET, "/stream", 0, 0, open_stream},
	{HTTP_M_POST, "/hold", 0, 1000, hold},
	{HTTP_M_GET, "/npm/{path...}", 0, 0, tail},
};

static int listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	addr = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	cr_assert(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	cr_assert(listen(fd, 64) == 0);
	cr_assert(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
	return fd;
}

static struct httpd_config config(void)
{
	static const char *const hosts[] = {"127.0.0.1:8787", "localhost:8787", NULL};

	return (struct httpd_config){
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.max_connections = 4,
		.idle_usec = 5 * USEC_PER_SEC,
		.stream_backlog_max_bytes = BACKLOG,
		.hosts = hosts,
		.request_usec = 20 * USEC_PER_SEC,
		.bodies_max_bytes = 2000,
		.encoded_slash_ok = true,
		.error_body = error_body,
	};
}

static void start_on(int fd, struct httpd_config cfg)
{
	struct err err = ERR_INIT;

	n_held = n_gone = n_closed = n_drained = 0;
	cr_assert(loop_new(&loop, &err) == 0);
	cr_assert(httpd_new_adopted(loop, &cfg, fd, &server, &err) == 0, "%s", err.msg);
}

static void start_with(struct httpd_config cfg)
{
	start_on(listener(), cfg);
}

static void start(void)
{
	start_with(config());
}

static void stop(void)
{
	httpd_free(server);
	loop_free(loop);
}

static void expect_answer(const char *request, const char *part1, const char *part2)
{
	cleanup_buf struct buf b;
	int fd = turn_dial(&addr, request);

	buf_init(&b, 1 << 16);
	turn_until_text(loop, fd, &b, "\r\n\r\n");
	turn_until_text(loop, fd, &b, part2);
	cr_expect(strstr(buf_str(&b), part1), "%s: %s", request, buf_str(&b));
	close(fd);
}

Test(httpd_stream, only_a_loopback_listener_is_adopted)
{
	struct httpd_config cfg = config();
	struct httpd *h = NULL;
	struct err err = ERR_INIT;
	int pair[2];
	int fd;

	cr_assert(loop_new(&loop, &err) == 0);
	cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	cr_expect(httpd_new_adopted(loop, &cfg, pair[0], &h, &err) < 0);
	cr_expect_eq(err.id, ERRID_START_SOCKET);
	close(pair[1]);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	addr = (struct sockaddr_in){.sin_family = AF_INET};
	cr_assert(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	cr_assert(listen(fd, 1) == 0);
	cr_expect(httpd_new_adopted(loop, &cfg, fd, &h, &err) < 0, "every address");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	cr_expect(httpd_new_adopted(loop, &cfg, fd, &h, &err) < 0, "not listening");
	errno = 0;
	cr_expect(close(fd) < 0 && errno == EBADF, "taken in any case");
	loop_free(loop);
}

Test(httpd_stream, hosts_paths_and_errors_of_a_job)
{
	start();
	expect_answer("GET /npm/a HTTP/1.1\r\nHost: lychgate\r\n\r\n", " 400 ",
		      "{\"mine\":400,\"code\":\"LYCH-HTTP-001\",\"path\":\"-\"");
	expect_answer("GET /npm/a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", " 400 ",
		      "LYCH-HTTP-001");
	expect_answer("GET /npm HTTP/1.1\r\n" H "\r\n", " 404 ", "\"path\":\"/npm\"");
	expect_answer("GET /npm/ HTTP/1.1\r\n" H "\r\n", " 404 ", "LYCH-HTTP-002");
	expect_answer("GET /npm/%2f HTTP/1.1\r\n" H "\r\n", " 400 ", "LYCH-HTTP-001");
	expect_answer("GET /npm/a%2f..%2fb HTTP/1.1\r\n" H "\r\n", " 400 ",
		      "LYCH-HTTP-001");
	expect_answer("bad\n", " 400 ", "\"path\":\"-\"");
	expect_answer("GET /npm/@a%2fb/-/c.tgz HTTP/1.1\r\nHost: localhost:8787\r\n\r\n",
		      " 200 ", "@a/b/-/c.tgz");
	expect_answer("GET /npm/x HTTP/1.1\r\n" H "\r\n", " 200 ", "\r\n\r\nx");
	expect_answer("GET /npm/simple/x/ HTTP/1.1\r\n" H "\r\n", " 200 ", "simple/x/");
	stop();
}

Test(httpd_stream, chunks_arrive_and_the_connection_serves_on)
{
	static const char next[] = "GET /npm/next HTTP/1.1\r\n" H "\r\n";
	cleanup_buf struct buf b;
	int fd;

	start();
	buf_init(&b, 1 << 16);
	fd = turn_dial(&addr, "GET /stream HTTP/1.1\r\n" H "\r\n");
	TURN_UNTIL(loop, stream);
	turn_until_text(loop, fd, &b, "\r\n\r\n");
	cr_expect(str_starts(buf_str(&b), "HTTP/1.1 202 "));
	cr_expect(strstr(buf_str(&b), "Transfer-Encoding: chunked\r\n"));
	cr_expect(strstr(buf_str(&b), "Lychgate-Upstream-Status: 200\r\n"));
	cr_expect_null(strstr(buf_str(&b), "Content-Length"));
	cr_expect(httpd_stream_send(stream, "hello", 5));
	turn_until_text(loop, fd, &b, "\r\n\r\n5\r\nhello\r\n");
	cr_expect(httpd_stream_send(stream, "", 0), "no last chunk by accident");
	cr_expect(httpd_stream_send(stream, "0123456789abcdef", 16));
	httpd_stream_end(stream);
	turn_until_text(loop, fd, &b, "hello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
	cr_expect_eq(n_closed, 0);
	cr_assert(send(fd, next, strlen(next), 0) == (ssize_t)strlen(next));
	turn_until_text(loop, fd, &b, "\r\n\r\nnext");
	close(fd);
	stop();
}

Test(httpd_stream, abort_ends_without_a_last_chunk)
{
	cleanup_buf struct buf b;
	int fd;

	start();
	buf_init(&b, 1 << 16);
	fd = turn_dial(&addr, "GET /stream HTTP/1.1\r\n" H "\r\n");
	TURN_UNTIL(loop, stream);
	cr_expect(httpd_stream_send(stream, "half", 4));
	httpd_stream_abort(stream);
	turn_until_text(loop, fd, &b, NULL);
	cr_expect(str_ends(buf_str(&b), "\r\n4\r\nhalf\r\n"), "%s", buf_str(&b));
	close(fd);
	/* the same with nothing left to write */
	buf_reset(&b);
	stream = NULL;
	fd = turn_dial(&addr, "GET /stream HTTP/1.1\r\n" H "\r\n");
	TURN_UNTIL(loop, stream);
	turn_until_text(loop, fd, &b, "\r\n\r\n");
	turn_loop(loop, 5000);
	httpd_stream_abort(stream);
	turn_until_text(loop, fd, &b, NULL);
	cr_expect(str_ends(buf_str(&b), "\r\n\r\n"));
	close(fd);
	cr_expect_eq(n_closed, 0);
	stop();
}

Test(httpd_stream, reader_that_leaves_is_told_of_within_a_turn)
{
	int fd;

	start();
	fd = turn_dial(&addr, "GET /stream HTTP/1.1\r\n" H "\r\n");
	TURN_UNTIL(loop, stream);
	close(fd);
	TURN_UNTIL(loop, n_closed == 1);
	fd = turn_dial(&addr, "GET /stream HTTP/1.1\r\n" H "\r\n");
	TURN_UNTIL(loop, stream);
	stop();
	cr_expect_eq(n_closed, 2, "and when the server goes");
	close(fd);
}

Test(httpd_stream, slow_reader_fills_the_backlog_and_drains_it)
{
	static char data[20000], got[65536];
	size_t sent = 0, read_bytes = 0;
	unsigned before;
	int fd;

	start();
	memset(data, 'x', sizeof(data));
	fd = turn_dial(&addr, "GET /stream HTTP/1.1\r\n" H "\r\n");
	TURN_UNTIL(loop, stream);
	/* As a careful owner: never past the cap. The kernel's buffers grow while they
	 * are filled; that they are full shows when a backlog stays. */
	do {
		while (httpd_stream_backlog(stream) < BACKLOG / 2) {
			cr_assert(httpd_stream_send(stream, data, sizeof(data)));
			sent += sizeof(data);
			turn_loop(loop, 1000);
			cr_assert(sent < ((size_t)64 << 20));
		}
		turn_loop(loop, 20000);
	} while (httpd_stream_backlog(stream) < BACKLOG / 2);
	before = n_drained;
	while (n_drained == before && read_bytes < sent) {
		ssize_t n = recv(fd, got, sizeof(got), MSG_DONTWAIT);

		if (n > 0)
			read_bytes += (size_t)n;
		turn_loop(loop, 1000);
	}
	cr_expect(n_drained > before);
	cr_expect(httpd_stream_backlog(stream) <= BACKLOG / 2);
	/* One that does not care is cut off, and told from the loop. */
	while (httpd_stream_send(stream, data, sizeof(data)))
		;
	cr_expect_eq(n_closed, 0);
	cr_expect_not(httpd_stream_send(stream, "", 0));
	TURN_UNTIL(loop, n_closed == 1);
	close(fd);
	stop();
}

Test(httpd_stream, reader_that_takes_nothing_is_closed)
{
	struct httpd_config cfg = config();
	static char data[90000];
	int fd, small = 4096;

	cfg.idle_usec = 100 * USEC_PER_MSEC;
	start_with(cfg);
	fd = turn_dial(&addr, "GET /stream HTTP/1.1\r\n" H "\r\n");
	cr_assert(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
	TURN_UNTIL(loop, stream);
	while (stream && httpd_stream_backlog(stream) < BACKLOG / 2) {
		(void)httpd_stream_send(stream, data, 10000);
		turn_loop(loop, 100);
	}
	TURN_UNTIL(loop, n_closed == 1);
	close(fd);
	stop();
}

Test(httpd_stream, connections_over_the_cap_wait)
{
	cleanup_buf struct buf b;
	int fd[12];

	start();
	buf_init(&b, 1 << 16);
	for (int i = 0; i < 12; i++)
		fd[i] = turn_dial(&addr, "POST /hold HTTP/1.1\r\n" H
					 "Content-Length: 1\r\n\r\nx");
	TURN_UNTIL(loop, n_held == 4);
	turn_loop(loop, 100000);
	cr_expect_eq(n_held, 4, "the others are not even accepted");
	close(fd[0]);
	TURN_UNTIL(loop, n_gone == 1 && n_held == 5);
	for (int i = 1; i < 12; i++)
		close(fd[i]);
	TURN_UNTIL(loop, n_gone == 5 || n_gone == n_held);
	turn_loop(loop, 100000);
	for (unsigned i = 0; i < n_held; i++)
		httpd_reply(held[i], 200, "text/plain", "x", 1);
	expect_answer("GET /npm/x HTTP/1.1\r\n" H "\r\n", " 200 ", "x");
	stop();
}

Test(httpd_stream, bodies_together_are_capped)
{
	int fd[2];

	start();
	for (int i = 0; i < 2; i++)
		fd[i] = turn_dial(&addr, "POST /hold HTTP/1.1\r\n" H
					 "Content-Length: 900\r\n\r\nx");
	turn_loop(loop, 20000);
	cr_expect_eq(n_held, 0, "their bodies have not come");
	expect_answer("POST /hold HTTP/1.1\r\n" H "Content-Length: 500\r\n\r\n", " 503 ",
		      "LYCH-HTTP-006");
	close(fd[0]);
	turn_loop(loop, 20000);
	fd[0] = turn_dial(&addr,
			  "POST /hold HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc");
	TURN_UNTIL(loop, n_held == 1);
	httpd_reply(held[0], 200, "text/plain", "x", 1);
	close(fd[0]);
	close(fd[1]);
	stop();
}

Test(httpd_stream, body_that_trickles_is_closed)
{
	struct httpd_config cfg = config();
	int fd, sent = 0;

	cfg.request_usec = 200 * USEC_PER_MSEC;
	start_with(cfg);
	fd = turn_dial(&addr, "POST /hold HTTP/1.1\r\n" H "Content-Length: 900\r\n\r\n");
	/* Each byte is in time for the idle limit; the whole is not. */
	while (sent < 900 && send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
		turn_loop(loop, 10000);
		sent++;
	}
	cr_expect(sent < 900, "%d", sent);
	cr_expect_eq(n_held, 0);
	close(fd);
	stop();
}

/* The other end of a connection, in this very process; -1: not accepted yet. */
static int accepted_end(int client)
{
	struct sockaddr_in mine, theirs;
	socklen_t len = sizeof(mine);

	cr_assert(getsockname(client, (struct sockaddr *)&mine, &len) == 0);
	for (int fd = 3; fd < 256; fd++) {
		len = sizeof(theirs);
		if (getpeername(fd, (struct sockaddr *)&theirs, &len) == 0 &&
		    len == sizeof(theirs) && theirs.sin_family == AF_INET &&
		    theirs.sin_port == mine.sin_port)
			return fd;
	}
	return -1;
}

Test(httpd_stream, who_knocked_before_it_was_handed_in_waits_for_no_ack)
{
	int listening = listener(), early = turn_dial(&addr, "GET "), late, on = 0;
	socklen_t len = sizeof(on);

	start_on(listening, config());
	late = turn_dial(&addr, "GET ");
	TURN_UNTIL(loop, accepted_end(early) >= 0 && accepted_end(late) >= 0);
	cr_expect(getsockopt(accepted_end(early), IPPROTO_TCP, TCP_NODELAY, &on, &len) ==
			  0 &&
		  on);
	on = 0;
	cr_expect(getsockopt(accepted_end(late), IPPROTO_TCP, TCP_NODELAY, &on, &len) ==
			  0 &&
		  on);
	close(early);
	close(late);
	stop();
}
