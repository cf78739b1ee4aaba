/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own promises: who owns what when clients come and go. */
#include "common/net/httpd.h"
#include "common/net/httpd_priv.h"
#include "common/net/loop.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

TestSuite(httpd, .timeout = 30);

#define H "Host: lychgate\r\n"
#define FILE_SIZE ((size_t)3 << 20)

static struct loop *loop;
static struct httpd *server;
static char sock_path[64];
static struct httpd_req *held[8];
static unsigned n_held, n_gone, n_freed, n_auth, n_closed, n_drained;
static struct httpd_stream *stream;

static void gone(void *arg)
{
	(void)arg;
	n_gone++;
}

static void ctx_free(void *ctx)
{
	free(ctx);
	n_freed++;
}

static int auth(struct httpd_req *req, void *arg, struct err *err)
{
	uid_t uid = (uid_t)-1;
	pid_t pid = 0;
	const char *who = httpd_req_header(req, "authorization");

	(void)arg;
	n_auth++;
	httpd_req_peer(req, &uid, &pid);
	cr_assert_eq(uid, geteuid());
	cr_assert_eq(pid, getpid());
	httpd_req_set_ctx(req, xstrdup("me"), ctx_free);
	if (str_eq(who, "bad"))
		return err_set_id(err, ERRID_HTTP_PEER, "not you");
	return 0;
}

static void hold(struct httpd_req *req, void *arg)
{
	(void)arg;
	httpd_req_on_gone(req, gone, NULL);
	held[n_held++] = req;
}

static void echo(struct httpd_req *req, void *arg)
{
	char text[256];
	const char *q = httpd_req_query(req, "q");
	struct err err = ERR_INIT;

	(void)arg;
	if (httpd_req_check_query(req, (const char *const[]){"q", NULL}, &err) < 0) {
		httpd_reply_err(req, &err);
		return;
	}
	cr_assert(str_fmt(text, sizeof(text), "[%s][%s][%s][%s]",
			  httpd_req_param(req, "id"),
			  httpd_req_param(req, "n") ? httpd_req_param(req, "n") : "-",
			  q ? q : "-", (const char *)httpd_req_ctx(req)) == 0);
	httpd_req_add_header(req, "Lychgate-Size", "12");
	httpd_reply(req, 200, "text/plain", text, strlen(text));
}

static void fail(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;

	(void)arg;
	(void)err_set(&err, ERR_INTERNAL, "the secret path /home/x");
	httpd_reply_err(req, &err);
}

/* As many and as long fields as a server likes to send, and some that are none. */
static void flood(struct httpd_req *req, void *arg)
{
	char name[32], value[1025];
	unsigned n = 0;

	(void)arg;
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	cr_expect_not(httpd_req_pass_header(req, "x-a", "b\r\nset-cookie: c"));
	cr_expect_not(httpd_req_pass_header(req, "x-a: b\r\nc", "d"));
	cr_expect_not(httpd_req_pass_header(req, "x-a:", "b"));
	cr_expect_not(httpd_req_pass_header(req, "", "b"));
	for (unsigned i = 0; i < 64; i++) {
		cr_assert(str_fmt(name, sizeof(name), "x-ratelimit-%u", i) == 0);
		n += httpd_req_pass_header(req, name, value);
	}
	cr_expect_eq(n, 3);
	for (unsigned i = 0; i < 64; i++)
		n += httpd_req_pass_header(req, "x-b", "c");
	cr_expect_eq(n, 20);
	httpd_req_add_header(req, "Lychgate-Size", "12");
	httpd_reply(req, 200, "text/plain", "here", 4);
}

static void gap(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;

	(void)arg;
	(void)err_set_id(&err, ERRID_RUN_GAP, "no");
	httpd_reply_err_expected(req, &err, 77);
}

static void file(struct httpd_req *req, void *arg)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *data = xmalloc(FILE_SIZE);
	const char *off = httpd_req_query(req, "off");

	(void)arg;
	for (size_t i = 0; i < FILE_SIZE; i++)
		data[i] = (char)('a' + i % 26);
	cr_assert(write(fd, data, FILE_SIZE) == (ssize_t)FILE_SIZE);
	free(data);
	if (off)
		httpd_reply_file(req, 200, "application/octet-stream", fd, 1, FILE_SIZE);
	else
		httpd_reply_file(req, 200, "application/octet-stream", fd, 1,
				 FILE_SIZE - 1);
}

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

static void events(struct httpd_req *req, void *arg)
{
	(void)arg;
	stream = httpd_sse_start(req, closed, NULL);
	httpd_stream_on_drain(stream, drained, NULL);
	cr_assert(httpd_sse_send(stream, "7", "state", "{\"a\":1}", 7));
}

static const struct httpd_route routes[] = {
	{HTTP_M_GET, "/hold", 0, 0, hold},
	{HTTP_M_POST, "/hold", 0, 1 << 20, hold},
	{HTTP_M_GET, "/v1/jobs/{id}", 0, 0, echo},
	{HTTP_M_GET, "/v1/jobs/{id}/artifacts/{n}", 0, 0, echo},
	{HTTP_M_GET, "/fail", 0, 0, fail},
	{HTTP_M_GET, "/gap", 0, 0, gap},
	{HTTP_M_GET, "/flood", 0, 0, flood},
	{HTTP_M_GET, "/file", 0, 0, file},
	{HTTP_M_GET, "/events", 0, 0, events},
};

static void start(usec_t idle)
{
	struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.auth = auth,
		.max_connections = 3,
		.idle_usec = idle,
		.stream_backlog_max_bytes = 100000,
	};
	struct err err = ERR_INIT;
	struct stat st;

	n_held = n_gone = n_freed = n_auth = n_closed = n_drained = 0;
	cr_assert(str_copy(sock_path, sizeof(sock_path), scratch_socket()) == 0);
	cr_assert(loop_new(&loop, &err) == 0);
	cr_assert(httpd_new(loop, &cfg, &server, &err) == 0, "%s", err.msg);
	cr_assert(lstat(sock_path, &st) == 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
}

static void stop(void)
{
	httpd_free(server);
	loop_free(loop);
}

static void wake(void *arg)
{
	loop_stop(arg, 0);
}

static void turn(usec_t usec)
{
	struct loop_timer *t = loop_timer_new(loop, wake, loop);
	struct err err = ERR_INIT;

	loop_timer_arm(t, usec);
	cr_assert(loop_run(loop, &err) == 0);
	loop_timer_free(t);
}

static int dial(const char *request)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(str_copy(a.sun_path, sizeof(a.sun_path), sock_path) == 0);
	cr_assert(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	cr_assert(send(fd, request, strlen(request), MSG_NOSIGNAL) ==
		  (ssize_t)strlen(request));
	return fd;
}

/* What has come by now; *ret_closed: the server closed. */
static void collect(int fd, struct buf *b, bool *ret_closed)
{
	static char chunk[65536];
	ssize_t n;

	*ret_closed = false;
	for (int quiet = 0; quiet < 20;) {
		turn(2000);
		n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n > 0) {
			buf_add(b, chunk, (size_t)n);
			quiet = 0;
		} else if (n == 0 || errno != EAGAIN) {
			*ret_closed = true;
			return;
		} else {
			quiet++;
		}
	}
}

static void expect_answer(const char *request, const char *part1, const char *part2)
{
	cleanup_buf struct buf b = {0};
	bool is_closed;
	int fd = dial(request);

	buf_init(&b, 1 << 23);
	collect(fd, &b, &is_closed);
	cr_expect(strstr(buf_str(&b), part1), "%s: %s", request, buf_str(&b));
	cr_expect(strstr(buf_str(&b), part2), "%s: %s", request, buf_str(&b));
	close(fd);
	turn(5000);
}

Test(httpd, refusals)
{
	start(5 * USEC_PER_SEC);
	expect_answer("GET /nowhere HTTP/1.1\r\n" H "\r\n", " 404 ", "LYCH-HTTP-002");
	expect_answer("PUT /hold HTTP/1.1\r\n" H "\r\n", " 405 ", "LYCH-HTTP-003");
	cr_expect_eq(n_auth, 0);
	expect_answer("GET /hold HTTP/1.1\r\n" H "Authorization: bad\r\n\r\n", " 401 ",
		      "LYCH-HTTP-005");
	/* The body is declared, and neither awaited nor read. */
	expect_answer("POST /hold HTTP/1.1\r\n" H
		      "Authorization: bad\r\nContent-Length: 1000\r\n\r\n",
		      " 401 ", "Connection: close");
	cr_expect_eq(n_auth, 2);
	cr_expect_eq(n_freed, 2);
	cr_expect_eq(n_held, 0);
	expect_answer("GET /v1/jobs/4?x=1 HTTP/1.1\r\n" H "\r\n", " 400 ",
		      "LYCH-HTTP-007");
	expect_answer("GET /v1/jobs/4/artifacts HTTP/1.1\r\n" H "\r\n", " 404 ", "{");
	expect_answer("GET /v1/jobs HTTP/1.1\r\n" H "\r\n", " 404 ", "{");
	expect_answer("GET /gap HTTP/1.1\r\n" H "\r\n", " 409 ", "\"expected\":77");
	expect_answer("GET /fail HTTP/1.1\r\n" H "\r\n", " 500 ", "\"detail\":\"\"");
	expect_answer("GET /file?off=1 HTTP/1.1\r\n" H "\r\n", " 500 ", "LYCH-CORE-001");
	stop();
}

Test(httpd, parameters_query_headers)
{
	start(5 * USEC_PER_SEC);
	expect_answer("GET /v1/jobs/a%20b HTTP/1.1\r\n" H "\r\n", " 200 ",
		      "[a b][-][-][me]");
	expect_answer("GET /v1/jobs/4/artifacts/9?q=%2f+ HTTP/1.1\r\n" H "\r\n",
		      "Lychgate-Size: 12\r\n", "[4][9][/+][me]");
	stop();
}

Test(httpd, fields_from_outside_have_what_room_there_is)
{
	start(5 * USEC_PER_SEC);
	expect_answer("GET /flood HTTP/1.1\r\n" H "\r\n", "x-ratelimit-2: vvv",
		      "Lychgate-Size: 12\r\n");
	stop();
}

Test(httpd, connection_is_kept_for_the_next_request)
{
	cleanup_buf struct buf b = {0};
	bool is_closed;
	int fd;

	start(5 * USEC_PER_SEC);
	buf_init(&b, 65536);
	fd = dial("GET /v1/jobs/1 HTTP/1.1\r\n" H "\r\n");
	collect(fd, &b, &is_closed);
	cr_expect_not(is_closed);
	cr_assert(send(fd, "GET /v1/jobs/2 HTTP/1.1\r\n" H "\r\n", 43, 0) == 43);
	collect(fd, &b, &is_closed);
	cr_expect(strstr(buf_str(&b), "[1]") && strstr(buf_str(&b), "[2]"));
	cr_expect_not(is_closed);
	close(fd);
	stop();
}

Test(httpd, client_leaves_before_the_answer)
{
	struct buf json;

	start(5 * USEC_PER_SEC);
	for (unsigned i = 0; i < 5; i++) {
		close(dial("GET /hold HTTP/1.1\r\n" H "\r\n"));
		turn(20000);
		cr_expect_eq(n_held, i + 1);
		cr_expect_eq(n_gone, i + 1);
	}
	cr_expect_eq(n_freed, 0, "the requests are still ours");
	buf_init(&json, 10);
	httpd_reply(held[0], 200, "text/plain", "x", 1);
	httpd_reply_json(held[1], 200, &json);
	httpd_reply_file(held[2], 200, "text/plain",
			 open("/dev/null", O_RDONLY | O_CLOEXEC), 0, 0);
	cr_expect_null(httpd_sse_start(held[3], closed, NULL));
	stop();
	cr_expect_eq(n_gone, 5, "once each");
	/* also after the server itself has gone */
	httpd_reply(held[4], 200, "text/plain", "x", 1);
	cr_expect_eq(n_freed, 5);
	cr_expect_eq(n_closed, 0);
}

Test(httpd, client_leaves_in_the_middle_of_a_body)
{
	start(5 * USEC_PER_SEC);
	close(dial("POST /hold HTTP/1.1\r\n" H "Content-Length: 100\r\n\r\nabc"));
	turn(20000);
	cr_expect_eq(n_held, 0);
	cr_expect_eq(n_freed, 1);
	stop();
}

Test(httpd, bytes_while_the_answer_is_pending_end_the_connection)
{
	cleanup_buf struct buf b = {0};
	bool is_closed;
	int fd;

	start(5 * USEC_PER_SEC);
	buf_init(&b, 65536);
	fd = dial("GET /hold HTTP/1.1\r\n" H "\r\n");
	turn(10000);
	cr_assert(send(fd, "GET /hold HTTP/1.1\r\n" H "\r\n", 38, 0) == 38);
	turn(10000);
	cr_assert_eq(n_held, 1);
	cr_expect_eq(n_gone, 0);
	httpd_reply(held[0], 200, "text/plain", "x", 1);
	collect(fd, &b, &is_closed);
	cr_expect(is_closed);
	cr_expect(strstr(buf_str(&b), "Connection: close"));
	cr_expect_eq(n_held, 1);
	close(fd);
	stop();
}

Test(httpd, ends_with_open_requests)
{
	cleanup_buf struct buf b = {0};
	char chunk[512];
	ssize_t n;
	int fd;

	start(5 * USEC_PER_SEC);
	buf_init(&b, 65536);
	fd = dial("GET /hold HTTP/1.1\r\n" H "\r\n");
	turn(10000);
	cr_assert_eq(n_held, 1);
	stop();
	cr_expect_eq(n_gone, 1);
	n = recv(fd, chunk, sizeof(chunk) - 1, MSG_DONTWAIT);
	cr_assert(n > 0);
	chunk[n] = '\0';
	cr_expect(str_starts(chunk, "HTTP/1.1 503 "));
	cr_expect_eq(recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT), 0, "and closed");
	httpd_reply(held[0], 200, "text/plain", "x", 1);
	close(fd);
}

Test(httpd, connections_are_capped)
{
	int fd[4];
	char chunk[512] = {0};

	start(5 * USEC_PER_SEC);
	for (int i = 0; i < 3; i++)
		fd[i] = dial("GET /hold HTTP/1.1\r\n" H "\r\n");
	turn(10000);
	cr_expect_eq(n_held, 3);
	fd[3] = dial("");
	turn(10000);
	cr_expect(recv(fd[3], chunk, sizeof(chunk) - 1, MSG_DONTWAIT) > 0);
	cr_expect(str_starts(chunk, "HTTP/1.1 503 "));
	close(fd[0]);
	turn(10000);
	cr_expect_eq(n_gone, 1);
	expect_answer("GET /v1/jobs/1 HTTP/1.1\r\n" H "\r\n", " 200 ", "[1]");
	for (int i = 1; i < 4; i++)
		close(fd[i]);
	turn(10000);
	for (int i = 0; i < 3; i++)
		httpd_reply(held[i], 200, "text/plain", "x", 1);
	stop();
}

Test(httpd, idle_and_slow_clients_are_closed)
{
	static const char *const parts[] = {"", "GET /hold HTT",
					    "POST /hold HTTP/1.1\r\n" H
					    "Content-Length: 9\r\n\r\nabc"};

	start(30 * USEC_PER_MSEC);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int fd = dial(parts[i]);
		char c;

		turn(100000);
		cr_expect_eq(recv(fd, &c, 1, MSG_DONTWAIT), 0, "%zu", i);
		close(fd);
	}
	/* A pending answer may take as long as it likes. */
	close(dial("GET /hold HTTP/1.1\r\n" H "\r\n"));
	int fd = dial("GET /hold HTTP/1.1\r\n" H "\r\n");

	turn(100000);
	cr_expect_eq(n_gone, 1);
	cr_expect_eq(n_held, 2);
	for (unsigned i = 0; i < n_held; i++)
		httpd_reply(held[i], 200, "text/plain", "x", 1);
	close(fd);
	stop();
}

Test(httpd, file_goes_out_whole)
{
	cleanup_buf struct buf b = {0};
	bool is_closed;
	const char *body;
	int fd;

	start(5 * USEC_PER_SEC);
	buf_init(&b, 1 << 23);
	fd = dial("GET /file HTTP/1.1\r\n" H "\r\n");
	collect(fd, &b, &is_closed);
	body = strstr(buf_str(&b), "\r\n\r\n");
	cr_assert_not_null(body);
	body += 4;
	cr_assert_eq(b.len - (size_t)(body - b.data), FILE_SIZE - 1);
	for (size_t i = 0; i < FILE_SIZE - 1; i++)
		cr_assert_eq(body[i], 'a' + (char)((i + 1) % 26));
	cr_expect_not(is_closed);
	/* A client that leaves in the middle of one. */
	close(dial("GET /file HTTP/1.1\r\n" H "\r\n"));
	turn(20000);
	close(fd);
	stop();
}

Test(httpd, events_are_chunks_and_end_cleanly)
{
	cleanup_buf struct buf b = {0};
	bool is_closed;
	int fd;

	start(5 * USEC_PER_SEC);
	buf_init(&b, 65536);
	fd = dial("GET /events HTTP/1.1\r\n" H "\r\n");
	for (int i = 0; i < 200 && !n_drained; i++)
		turn(10000);
	cr_assert_not_null(stream);
	cr_expect_eq(httpd_stream_backlog(stream), 0);
	cr_expect(n_drained > 0);
	httpd_stream_end(stream);
	collect(fd, &b, &is_closed);
	cr_expect(is_closed);
	cr_expect(strstr(buf_str(&b), "Content-Type: text/event-stream\r\n"));
	cr_expect(strstr(buf_str(&b), "Transfer-Encoding: chunked\r\n"));
	cr_expect(strstr(buf_str(&b), "\r\n\r\n22\r\nid: 7\nevent: state\ndata: "
				      "{\"a\":1}\n\n\r\n0\r\n\r\n"),
		  "%s", buf_str(&b));
	cr_expect_eq(n_closed, 0);
	close(fd);
	stop();
}

Test(httpd, event_reader_leaves)
{
	start(5 * USEC_PER_SEC);
	close(dial("GET /events HTTP/1.1\r\n" H "\r\n"));
	turn(20000);
	cr_expect_eq(n_closed, 1);
	stop();
	cr_expect_eq(n_closed, 1);
}

Test(httpd, slow_event_reader_is_cut_off)
{
	static char data[9000];
	unsigned sent = 0;
	int fd;

	start(5 * USEC_PER_SEC);
	memset(data, 'x', sizeof(data));
	fd = dial("GET /events HTTP/1.1\r\n" H "\r\n");
	turn(10000);
	cr_assert_not_null(stream);
	while (sent < 10000 &&
	       httpd_sse_send(stream, NULL, "output", data, sizeof(data))) {
		cr_assert(httpd_stream_backlog(stream) <= 100000);
		if (++sent % 8 == 0)
			turn(100);
	}
	cr_expect(sent < 1000, "%u", sent);
	cr_expect_eq(n_closed, 0, "not from inside a call");
	cr_expect_not(httpd_sse_send(stream, NULL, "output", "{}", 2));
	turn(10000);
	cr_expect_eq(n_closed, 1);
	close(fd);
	/* cut off, then ended by its owner: no callback */
	fd = dial("GET /events HTTP/1.1\r\n" H "\r\n");
	turn(10000);
	while (httpd_sse_send(stream, NULL, "output", data, sizeof(data)))
		;
	httpd_stream_end(stream);
	turn(10000);
	cr_expect_eq(n_closed, 1);
	close(fd);
	stop();
}

/* A shell's ^Z: it is there, and takes nothing. */
Test(httpd, an_event_reader_that_stops_is_waited_for)
{
	static char data[9000];
	char got[4096];
	int fd;

	start(50 * USEC_PER_MSEC);
	memset(data, 'x', sizeof(data));
	fd = dial("GET /events HTTP/1.1\r\n" H "\r\n");
	turn(10000);
	cr_assert_not_null(stream);
	cr_assert(httpd_sse_comment(stream));
	httpd_stream_set_mark(stream, 20000);
	while (httpd_stream_backlog(stream) < 30000) {
		cr_assert(httpd_sse_send(stream, NULL, "output", data, sizeof(data)));
		turn(1000);
	}
	turn(300000);
	cr_expect_eq(n_closed, 0, "cut off although it lives");
	n_drained = 0;
	for (int i = 0; i < 1000 && n_drained == 0; i++) {
		ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

		if (i == 0) {
			cr_assert_gt(n, 0);
			got[n] = '\0';
			cr_expect_not_null(strstr(got, "\r\n:\n\n\r\n"), "%s", got);
		}
		turn(100);
	}
	cr_expect_geq(n_drained, 1, "at the mark");
	cr_expect_leq(httpd_stream_backlog(stream), 20000);
	/* ended, it has what every other client has to take the rest */
	httpd_stream_end(stream);
	cr_expect_eq(server->n_conns, 1);
	turn(300000);
	cr_expect_eq(server->n_conns, 0);
	close(fd);
	stop();
}

Test(httpd, server_ends_under_a_stream)
{
	int fd;

	start(5 * USEC_PER_SEC);
	fd = dial("GET /events HTTP/1.1\r\n" H "\r\n");
	turn(10000);
	stop();
	cr_expect_eq(n_closed, 1);
	close(fd);
}

Test(httpd, socket_in_the_way)
{
	struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.max_connections = 1,
		.idle_usec = 1,
	};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct httpd *h = NULL;
	struct err err = ERR_INIT;
	int fd;

	start(5 * USEC_PER_SEC);
	cr_expect(httpd_new(loop, &cfg, &h, &err) < 0, "somebody answers");
	cr_expect_eq(err.id, ERRID_START_SOCKET);
	stop();
	cr_assert(access(sock_path, F_OK) < 0);

	cr_assert(loop_new(&loop, &err) == 0);
	fd = open(sock_path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	cr_expect(httpd_new(loop, &cfg, &h, &err) < 0, "a file is not removed");
	cr_assert(unlink(sock_path) == 0);

	/* A stale one, as a crash leaves it. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(str_copy(a.sun_path, sizeof(a.sun_path), sock_path) == 0);
	cr_assert(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	close(fd);
	cr_expect(httpd_new(loop, &cfg, &h, &err) == 0, "%s", err.msg);
	httpd_free(h);
	cfg.socket_path =
		"/tmp/0123456789012345678901234567890123456789012345678901234567890123"
		"45678901234567890123456789012345678901234567890123456789";
	cr_expect(httpd_new(loop, &cfg, &h, &err) < 0);
	loop_free(loop);
}

Test(httpd, a_socket_that_was_removed_is_made_anew)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct err err = ERR_INIT;
	int impostor;

	start(5 * USEC_PER_SEC);
	cr_expect_eq(httpd_renew(server, &err), 0);
	cr_assert(unlink(sock_path) == 0);
	cr_expect_eq(httpd_renew(server, &err), 1, "%s", err.msg);
	expect_answer("GET /v1/jobs/1 HTTP/1.1\r\n" H "\r\n", " 200 ", "[1]");
	/* somebody else's takes its place */
	cr_assert(unlink(sock_path) == 0);
	cr_assert(str_copy(a.sun_path, sizeof(a.sun_path), sock_path) == 0);
	impostor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(bind(impostor, (struct sockaddr *)&a, sizeof(a)) == 0);
	cr_assert(listen(impostor, 1) == 0);
	cr_expect_eq(httpd_renew(server, &err), 1, "%s", err.msg);
	expect_answer("GET /v1/jobs/2 HTTP/1.1\r\n" H "\r\n", " 200 ", "[2]");
	cr_expect_eq(httpd_renew(server, &err), 0);
	close(impostor);
	stop();
	cr_expect(access(sock_path, F_OK) < 0);
}
