/* SPDX-License-Identifier: Apache-2.0 */
/* Streamed replies: against our own server on one loop, and against hostile peers. */
#include "common/net/httpc.h"
#include "common/net/httpd.h"
#include "common/net/loop.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"
#include "tests/support/turns.h"

#include <criterion/criterion.h>
#include <sys/socket.h>
#include <sys/un.h>

TestSuite(httpc_stream, .timeout = 60);

#define BACKLOG ((size_t)256 << 10)

static struct loop *loop;
static struct httpd *server;
static struct httpc *client;
static char sock_path[64];
static struct httpd_stream *stream;
static unsigned n_opened, n_closed;

static void closed(void *arg)
{
	(void)arg;
	n_closed++;
	stream = NULL;
}

static void open_stream(struct httpd_req *req, void *arg)
{
	(void)arg;
	httpd_req_add_header(req, "Retry-After", "7");
	n_opened++;
	stream = httpd_stream_start(req, 200, "text/event-stream", closed, NULL);
}

static void refuse(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;

	(void)arg;
	(void)err_set_id(&err, ERRID_RUN_STALE, "no");
	httpd_reply_err(req, &err);
}

static const struct httpd_route routes[] = {
	{HTTP_M_POST, "/stream", 0, 1000, open_stream},
	{HTTP_M_GET, "/refuse", 0, 0, refuse},
};

/* What a stream's owner saw. */
struct seen {
	struct httpc_call *call;
	unsigned heads, ends;
	int status;
	char retry_after[16];
	struct buf body;
	enum err_code code;
	bool pause_at_head, cancel_at_head, cancel_at_body, free_at_body;
};

static void on_head(struct httpc_call *call, int status, void *arg)
{
	struct seen *s = arg;
	const char *retry = httpc_header(call, "retry-after");

	cr_assert_eq(s->ends, 0);
	s->heads++;
	s->status = status;
	if (retry)
		cr_assert(str_copy(s->retry_after, sizeof(s->retry_after), retry) == 0);
	cr_expect_null(httpc_header(call, "nothing"));
	if (s->pause_at_head)
		httpc_pause(call);
	if (s->cancel_at_head)
		httpc_cancel(call);
}

static void on_body(struct httpc_call *call, const void *data, size_t len, void *arg)
{
	struct seen *s = arg;

	cr_assert_eq(s->heads, 1);
	cr_assert(len > 0 && len <= 65536);
	buf_add(&s->body, data, len);
	if (s->cancel_at_body)
		httpc_cancel(call);
	if (s->free_at_body) {
		httpc_free(client);
		client = NULL;
	}
}

static void on_end(const struct err *err, void *arg)
{
	struct seen *s = arg;

	s->ends++;
	s->code = err ? err->code : ERR_NONE;
}

static const struct httpc_stream_ops ops = {on_head, on_body, on_end};

static void begin(void)
{
	struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.max_connections = 8,
		.idle_usec = 20 * USEC_PER_SEC,
		.stream_backlog_max_bytes = BACKLOG,
	};
	struct err err = ERR_INIT;

	n_closed = 0;
	cr_assert(str_copy(sock_path, sizeof(sock_path), scratch_socket()) == 0);
	cr_assert(loop_new(&loop, &err) == 0);
	cr_assert(httpd_new(loop, &cfg, &server, &err) == 0, "%s", err.msg);
	cr_assert(httpc_new(loop, sock_path, 4, &client, &err) == 0, "%s", err.msg);
}

static void end(void)
{
	httpc_free(client);
	httpd_free(server);
	loop_free(loop);
}

static void ask_at(struct seen *s, const char *target, enum http_method method,
		   usec_t timeout, size_t max)
{
	struct httpc_request rq = {
		.target = target,
		.method = method,
		.timeout_usec = timeout,
		.reply_max_bytes = max,
	};
	struct err err = ERR_INIT;

	buf_init(&s->body, 32 << 20);
	stream = NULL;
	n_opened = 0;
	cr_assert(httpc_stream(client, &rq, &ops, s, &s->call, &err) == 0, "%s", err.msg);
	cr_assert_eq(s->heads + s->ends, 0, "never from inside the call");
}

static void ask(struct seen *s)
{
	ask_at(s, "/stream", HTTP_M_POST, 30 * USEC_PER_SEC, 32 << 20);
	TURN_UNTIL(loop, n_opened);
}

Test(httpc_stream, refusal_is_a_reply_too)
{
	struct seen s = {0};

	begin();
	ask_at(&s, "/refuse", HTTP_M_GET, 5 * USEC_PER_SEC, 1000);
	TURN_UNTIL(loop, s.ends);
	cr_expect_eq(s.status, 410);
	cr_expect_eq(s.code, ERR_NONE);
	cr_expect(strstr(buf_str(&s.body), "LYCH-RUN-003"));
	buf_done(&s.body);
	end();
}

Test(httpc_stream, parts_come_as_they_are_sent)
{
	struct seen s = {0};

	begin();
	ask(&s);
	TURN_UNTIL(loop, s.heads);
	cr_expect_eq(s.status, 200);
	cr_expect_str_eq(s.retry_after, "7");
	cr_assert(httpd_stream_send(stream, "one", 3));
	TURN_UNTIL(loop, s.body.len == 3);
	cr_assert(httpd_stream_send(stream, "two", 3));
	TURN_UNTIL(loop, s.body.len == 6);
	cr_expect_eq(s.ends, 0);
	httpd_stream_end(stream);
	TURN_UNTIL(loop, s.ends);
	cr_expect_eq(s.code, ERR_NONE);
	cr_expect_str_eq(buf_str(&s.body), "onetwo");
	turn_loop(loop, 5000);
	cr_expect_eq(s.ends, 1);
	buf_done(&s.body);
	end();
}

Test(httpc_stream, a_cut_reply_is_not_a_whole_one)
{
	struct seen s = {0};

	begin();
	ask(&s);
	cr_assert(httpd_stream_send(stream, "half", 4));
	httpd_stream_abort(stream);
	TURN_UNTIL(loop, s.ends);
	cr_expect_str_eq(buf_str(&s.body), "half");
	cr_expect_eq(s.code, ERR_UNAVAILABLE);
	buf_done(&s.body);
	end();
}

Test(httpc_stream, paused_reader_holds_the_sender_back)
{
	static char data[20000];
	struct seen s = {.pause_at_head = true};
	size_t sent = 0;

	begin();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)('a' + i % 26);
	ask(&s);
	while (httpd_stream_backlog(stream) < BACKLOG / 2) {
		cr_assert(httpd_stream_send(stream, data, sizeof(data)));
		sent += sizeof(data);
		cr_assert(sent < (16 << 20), "nothing holds it back");
		turn_loop(loop, 500);
	}
	cr_expect_eq(s.body.len, 0);
	cr_expect_eq(s.heads, 1);
	turn_loop(loop, 50000);
	cr_expect(httpd_stream_backlog(stream) > 0, "it waits in the sender");
	httpd_stream_end(stream);
	httpc_resume(s.call);
	TURN_UNTIL(loop, s.ends);
	cr_expect_eq(s.code, ERR_NONE);
	cr_assert_eq(s.body.len, sent);
	for (size_t i = 0; i < sent; i++)
		cr_assert_eq(s.body.data[i], data[i % sizeof(data)]);
	buf_done(&s.body);
	end();
}

Test(httpc_stream, caps_and_deadlines)
{
	struct seen s = {0}, t = {0};

	begin();
	ask_at(&s, "/stream", HTTP_M_POST, 20 * USEC_PER_SEC, 10);
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "0123456789a", 11));
	TURN_UNTIL(loop, s.ends);
	cr_expect_eq(s.code, ERR_TOO_LARGE);
	buf_done(&s.body);
	ask_at(&t, "/stream", HTTP_M_POST, 100 * USEC_PER_MSEC, 10);
	TURN_UNTIL(loop, t.ends);
	cr_expect_eq(t.code, ERR_TIMEOUT);
	TURN_UNTIL(loop, n_closed == 2);
	buf_done(&t.body);
	end();
}

Test(httpc_stream, cancel_reaches_the_server)
{
	struct seen rows[] = {
		{.cancel_at_head = true}, {.cancel_at_body = true}, {.retry_after = ""}};

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct seen *s = &rows[i];

		n_closed = 0;
		ask(s);
		if (s->cancel_at_body)
			cr_assert(stream && httpd_stream_send(stream, "x", 1));
		if (!s->cancel_at_body && !s->cancel_at_head)
			httpc_cancel(s->call);
		TURN_UNTIL(loop, n_closed == 1);
		turn_loop(loop, 2000);
		cr_expect_eq(s->ends, 0, "%zu", i);
		buf_done(&s->body);
	}
	end();
}

Test(httpc_stream, callbacks_may_free_the_client)
{
	struct seen s = {.free_at_body = true}, t = {0};

	begin();
	ask(&t);
	ask(&s);
	cr_assert(httpd_stream_send(stream, "x", 1));
	TURN_UNTIL(loop, !client);
	TURN_UNTIL(loop, n_closed == 2);
	cr_expect_eq(s.ends + t.ends, 0);
	buf_done(&s.body);
	buf_done(&t.body);
	end();
}

/* ---- a peer that answers nonsense ---- */

static const char *nonsense;
static int n_answers;

static void answer_nonsense(int fd, unsigned what, void *arg)
{
	char chunk[4096];
	int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	(void)what;
	(void)arg;
	cr_assert(c >= 0);
	n_answers++;
	(void)!recv(c, chunk, sizeof(chunk), 0);
	(void)!send(c, nonsense, strlen(nonsense), MSG_NOSIGNAL);
	close(c);
}

static const char *const hostile[] = {
	"",
	"\r\n\r\n",
	"HTTP/1.1 abc\r\n\r\n",
	"HTTP/1.1 700 X\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\nno length: cut or whole?",
	"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
	"HTTP/1.1 200 OK\r\nX: a\001b\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nnocolon\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
	"HTTP/1.1 100 Continue\r\n\r\n",
};

Test(httpc_stream, hostile_answers)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct loop_io *io;
	struct seen ok = {0};
	int fd;

	begin();
	httpd_free(server);
	server = NULL;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(str_copy(addr.sun_path, sizeof(addr.sun_path), sock_path) == 0);
	cr_assert(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	cr_assert(listen(fd, 8) == 0);
	io = loop_io_new(loop, fd, LOOP_READ, answer_nonsense, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		struct seen s = {0};

		nonsense = hostile[i];
		ask_at(&s, "/stream", HTTP_M_POST, 5 * USEC_PER_SEC, 1000);
		TURN_UNTIL(loop, s.ends);
		cr_expect_neq(s.code, ERR_NONE, "%s", hostile[i]);
		buf_done(&s.body);
	}
	n_answers = 0;
	for (int i = 0; i < 2; i++) {
		struct seen s = {0};

		/* kept open, then closed without an answer */
		nonsense = i == 0 ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" : "";
		ask_at(&s, "/stream", HTTP_M_POST, 5 * USEC_PER_SEC, 1000);
		TURN_UNTIL(loop, s.ends);
		cr_expect_eq(n_answers, i + 1, "sent once, not twice");
		buf_done(&s.body);
	}
	nonsense = "HTTP/1.1 103 Early\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\n"
		   "Retry-After: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
		   "3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n";
	ask_at(&ok, "/stream", HTTP_M_POST, 5 * USEC_PER_SEC, 1000);
	TURN_UNTIL(loop, ok.ends);
	cr_expect_eq(ok.code, ERR_NONE);
	cr_expect_eq(ok.status, 200);
	cr_expect_str_eq(ok.retry_after, "3");
	cr_expect_str_eq(buf_str(&ok.body), "abc");
	buf_done(&ok.body);
	loop_io_free(io);
	close(fd);
	(void)unlink(sock_path);
	end();
}
