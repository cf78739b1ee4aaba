/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile requests, written raw to a real unix socket and judged from the
 * outside: by the statuses that come back, by the close, and by how often a
 * handler ran. A smuggled request would show as a second answer or call.
 */
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
#include <sys/socket.h>
#include <sys/un.h>

TestSuite(http_framing, .timeout = 60);

static unsigned calls;
static size_t body_bytes;
static char sock_path[64];

static void count(struct httpd_req *req, void *arg)
{
	size_t n;

	(void)arg;
	(void)httpd_req_body(req, &n);
	body_bytes += n;
	calls++;
	httpd_reply(req, 200, "text/plain", "ok", 2);
}

static const struct httpd_route routes[] = {
	{HTTP_M_GET, "/a", 0, 0, count},
	{HTTP_M_POST, "/a", 0, 1024, count},
	{HTTP_M_GET, "/a/{x}", 0, 0, count},
	{HTTP_M_POST, "/big", 0, 4 << 20, count},
};

struct client {
	int fd;
	struct loop *loop;
	struct buf got;
	bool closed;
};

static void client_cb(int fd, unsigned what, void *arg)
{
	struct client *c = arg;
	char tmp[4096];
	ssize_t n = recv(fd, tmp, sizeof(tmp), MSG_DONTWAIT);

	(void)what;
	if (n > 0) {
		buf_add(&c->got, tmp, (size_t)n);
	} else if (n == 0 || errno != EAGAIN) {
		c->closed = true;
		loop_stop(c->loop, 0);
	}
}

static void give_up(void *arg)
{
	loop_stop(arg, 0);
}

static int dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0);
	cr_assert(str_copy(a.sun_path, sizeof(a.sun_path), sock_path) == 0);
	cr_assert(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

static struct httpd *serve(struct loop *l, usec_t idle, unsigned max_connections)
{
	struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.max_connections = max_connections,
		.idle_usec = idle,
		.stream_backlog_max_bytes = 65536,
	};
	struct httpd *h = NULL;
	struct err err = ERR_INIT;

	cr_assert(str_copy(sock_path, sizeof(sock_path), scratch_socket()) == 0);
	cr_assert(httpd_new(l, &cfg, &h, &err) == 0, "%s", err.msg);
	return h;
}

/* Write the bytes (in pieces of `piece` bytes, 0: at once), collect answers. */
static void talk(const void *bytes, size_t len, size_t piece, usec_t wait,
		 struct client *c)
{
	struct loop *l;
	struct err err = ERR_INIT;
	struct httpd *h;
	struct loop_io *io;
	struct loop_timer *t;
	size_t at = 0;

	cr_assert(loop_new(&l, &err) == 0);
	h = serve(l, 20 * USEC_PER_SEC, 8);
	*c = (struct client){.fd = dial(), .loop = l};
	buf_init(&c->got, 1 << 20);
	io = loop_io_new(l, c->fd, LOOP_READ, client_cb, c);
	t = loop_timer_new(l, give_up, l);
	while (at < len && !c->closed) {
		size_t n = piece && piece < len - at ? piece : len - at;
		ssize_t w = send(c->fd, (const char *)bytes + at, n,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (w < 0 && errno != EAGAIN)
			break;
		if (w > 0)
			at += (size_t)w;
		loop_timer_arm(t, piece ? 0 : 1000);
		cr_assert(loop_run(l, &err) == 0);
	}
	loop_timer_arm(t, wait);
	cr_assert(c->closed || loop_run(l, &err) == 0);
	loop_timer_free(t);
	loop_io_free(io);
	close(c->fd);
	httpd_free(h);
	loop_free(l);
	cr_assert(access(sock_path, F_OK) < 0, "the socket is removed");
}

static unsigned answers(const struct buf *b)
{
	unsigned n = 0;

	for (const char *p = buf_str(b); (p = strstr(p, "HTTP/1.1 ")); p++)
		n++;
	return n;
}

struct row {
	const char *name;
	int status;
	unsigned calls;
	bool closed;
	const char *bytes;
	size_t len; /* 0: strlen */
};

#define H "Host: lychgate\r\n"
#define SMUGGLED "GET /a HTTP/1.1\r\n" H "\r\n"
#define ROW(name, status, calls, closed, bytes)                                          \
	{name, status, calls, closed, bytes, sizeof(bytes) - 1}

static const struct row rows[] = {
	ROW("two different Content-Length", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H
	    "Content-Length: 0\r\nContent-Length: 35\r\n\r\n" SMUGGLED),
	ROW("two equal Content-Length", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi"),
	ROW("Content-Length list", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 2, 2\r\n\r\nhi"),
	ROW("Content-Length and chunked", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H
	    "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
	ROW("chunked", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	ROW("gzip, chunked", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	ROW("chunk size overflow", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H
	    "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n" SMUGGLED),
	ROW("Transfer-Encoding with a tab", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n"),
	ROW("space before the colon of Host", 400, 0, true,
	    "GET /a HTTP/1.1\r\nHost : lychgate\r\n\r\n"),
	ROW("space before the colon of Content-Length", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length : 35\r\n\r\n" SMUGGLED),
	ROW("no Host", 400, 0, true, "GET /a HTTP/1.1\r\n\r\n"),
	ROW("two Hosts", 400, 0, true, "GET /a HTTP/1.1\r\n" H H "\r\n"),
	ROW("other Host", 400, 0, true, "GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
	ROW("repeated Authorization", 400, 0, true,
	    "GET /a HTTP/1.1\r\n" H "Authorization: x\r\nAUTHORIZATION: y\r\n\r\n"),
	ROW("Content-Length +5", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello"),
	ROW("Content-Length -5", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nhello"),
	ROW("Content-Length 0x5", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\nhello"),
	ROW("Content-Length 05", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 05\r\n\r\nhello"),
	ROW("empty Content-Length", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"),
	ROW("Content-Length overflow", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 18446744073709551617\r\n\r\nh"),
	ROW("NUL in a header", 400, 0, true, "GET /a HTTP/1.1\r\n" H "X: a\0b\r\n\r\n"),
	ROW("NUL in the target", 400, 0, true, "GET /a\0 HTTP/1.1\r\n" H "\r\n"),
	ROW("control byte in a header", 400, 0, true,
	    "GET /a HTTP/1.1\r\n" H "X: a\x01"
	    "b\r\n\r\n"),
	ROW("DEL in a header", 400, 0, true, "GET /a HTTP/1.1\r\n" H "X: \x7f\r\n\r\n"),
	ROW("byte above ASCII in a header", 400, 0, true,
	    "GET /a HTTP/1.1\r\n" H "X: \xff\r\n\r\n"),
	ROW("bare LF everywhere", 400, 0, true, "GET /a HTTP/1.1\nHost: lychgate\n\n"),
	ROW("bare LF once", 400, 0, true, "GET /a HTTP/1.1\r\n" H "X: a\nY: b\r\n\r\n"),
	ROW("bare CR", 400, 0, true, "GET /a HTTP/1.1\r\n" H "X: a\rY: b\r\n\r\n"),
	ROW("CR CR LF", 400, 0, true, "GET /a HTTP/1.1\r\r\n" H "\r\n"),
	ROW("folded header", 400, 0, true, "GET /a HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n"),
	ROW("folded first header", 400, 0, true,
	    "GET /a HTTP/1.1\r\n Host: lychgate\r\n\r\n"),
	ROW("%00 in the path", 400, 0, true, "GET /a%00b HTTP/1.1\r\n" H "\r\n"),
	ROW("%2f in the path", 400, 0, true, "GET /a%2fb HTTP/1.1\r\n" H "\r\n"),
	ROW("%2e%2e in the path", 400, 0, true, "GET /a/%2e%2e HTTP/1.1\r\n" H "\r\n"),
	ROW("dots in the path", 400, 0, true, "GET /a/../a HTTP/1.1\r\n" H "\r\n"),
	ROW("empty component", 400, 0, true, "GET //a HTTP/1.1\r\n" H "\r\n"),
	ROW("bad escape", 400, 0, true, "GET /%zz HTTP/1.1\r\n" H "\r\n"),
	ROW("half an escape", 400, 0, true, "GET /a%2 HTTP/1.1\r\n" H "\r\n"),
	ROW("overlong UTF-8 in the path", 400, 0, true,
	    "GET /a/%c0%ae HTTP/1.1\r\n" H "\r\n"),
	ROW("absolute target", 400, 0, true,
	    "GET http://lychgate/a HTTP/1.1\r\n" H "\r\n"),
	ROW("asterisk target", 400, 0, true, "OPTIONS * HTTP/1.1\r\n" H "\r\n"),
	ROW("two spaces", 400, 0, true, "GET  /a HTTP/1.1\r\n" H "\r\n"),
	ROW("space after the version", 400, 0, true, "GET /a HTTP/1.1 \r\n" H "\r\n"),
	ROW("HTTP/1.0", 400, 0, true, "GET /a HTTP/1.0\r\n" H "\r\n"),
	ROW("HTTP/0.9", 400, 0, true, "GET /a\r\n\r\n"),
	ROW("HTTP/2 preface", 400, 0, true, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	ROW("empty line first", 400, 0, true, "\r\nGET /a HTTP/1.1\r\n" H "\r\n"),
	ROW("TLS hello", 400, 0, true, "\x16\x03\x01\x02\x00\x01\x00"),
	ROW("no colon", 400, 0, true, "GET /a HTTP/1.1\r\n" H "nonsense\r\n\r\n"),
	ROW("empty name", 400, 0, true, "GET /a HTTP/1.1\r\n" H ": x\r\n\r\n"),
	ROW("unknown Expect", 400, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Expect: magic\r\n\r\n"),
	ROW("Upgrade", 400, 0, true, "GET /a HTTP/1.1\r\n" H "Upgrade: h2c\r\n\r\n"),
	ROW("a WebSocket", 426, 0, true,
	    "GET /a HTTP/1.1\r\n" H
	    "Connection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
	ROW("query without a value", 400, 0, true, "GET /a?x HTTP/1.1\r\n" H "\r\n"),
	ROW("repeated query name", 400, 0, true, "GET /a?x=1&x=2 HTTP/1.1\r\n" H "\r\n"),
	ROW("%00 in the query", 400, 0, true, "GET /a?x=%00 HTTP/1.1\r\n" H "\r\n"),
	ROW("1 GB declared", 413, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 1073741824\r\n\r\n"),
	ROW("one byte over the route's cap, body not sent", 413, 0, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 1025\r\n\r\n"),
	ROW("body on a route without one", 413, 0, true,
	    "GET /a HTTP/1.1\r\n" H "Content-Length: 35\r\n\r\n" SMUGGLED),
	ROW("unknown path", 404, 0, true, "GET /b HTTP/1.1\r\n" H "\r\n"),
	ROW("empty parameter", 404, 0, true, "GET /a/ HTTP/1.1\r\n" H "\r\n"),
	ROW("method not here", 405, 0, true, "PUT /a HTTP/1.1\r\n" H "\r\n"),
	ROW("unknown method", 405, 0, true, "BREW /a HTTP/1.1\r\n" H "\r\n"),
	ROW("lower-case method", 405, 0, true, "get /a HTTP/1.1\r\n" H "\r\n"),
	ROW("pipelined: the second gets no answer", 200, 1, true,
	    "GET /a HTTP/1.1\r\n" H "\r\n" SMUGGLED),
	ROW("pipelined behind a body", 200, 1, true,
	    "POST /a HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi" SMUGGLED),
	/* and what must work */
	ROW("plain GET", 200, 1, false, "GET /a HTTP/1.1\r\n" H "\r\n"),
	ROW("GET with a query", 200, 1, false, "GET /a?x=%2f&y= HTTP/1.1\r\n" H "\r\n"),
	ROW("host in other case, tab", 200, 1, false,
	    "GET /a HTTP/1.1\r\nhOST:\tLychgate \r\n\r\n"),
	ROW("parameter with an escape", 200, 1, false,
	    "GET /a/%41 HTTP/1.1\r\n" H "\r\n"),
	ROW("Connection: close", 200, 1, true,
	    "GET /a HTTP/1.1\r\n" H "Connection: foo, Close\r\n\r\n"),
	ROW("POST without a body", 200, 1, false, "POST /a HTTP/1.1\r\n" H "\r\n"),
};

static int status_of_answer(const struct buf *b)
{
	unsigned s = 0;

	if (b->len < 12 || sscanf(buf_str(b), "HTTP/1.1 %3u", &s) != 1)
		return 0;
	return (int)s;
}

static void check_rows(size_t piece)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		struct client c;

		/* Slowly, the second request follows the first answer: that is no
		 * pipelining. */
		if (piece && str_starts(r->name, "pipelined"))
			continue;
		calls = 0;
		talk(r->bytes, r->len, piece, r->closed ? 1000000 : 30000, &c);
		cr_expect_eq(status_of_answer(&c.got), r->status, "%s: %d\n%s", r->name,
			     status_of_answer(&c.got), buf_str(&c.got));
		cr_expect_eq(calls, r->calls, "%s: %u calls", r->name, calls);
		cr_expect_eq(answers(&c.got), 1, "%s: %u answers", r->name,
			     answers(&c.got));
		cr_expect_eq(c.closed, r->closed, "%s: closed %d", r->name, c.closed);
		cr_expect(strstr(buf_str(&c.got), "X-Request-Id: "), "%s", r->name);
		buf_done(&c.got);
	}
}

Test(http_framing, hostile_requests_at_once)
{
	check_rows(0);
}

Test(http_framing, hostile_requests_byte_by_byte)
{
	check_rows(1);
}

Test(http_framing, head_of_60_kib_is_refused)
{
	cleanup_buf struct buf b = {0};
	struct client c;

	buf_init(&b, 1 << 20);
	buf_adds(&b, "GET /a HTTP/1.1\r\n" H "X: ");
	for (int i = 0; i < 60 * 1024; i++)
		buf_addc(&b, 'a');
	buf_adds(&b, "\r\n\r\n");
	calls = 0;
	talk(b.data, b.len, 0, 1000000, &c);
	cr_expect_eq(status_of_answer(&c.got), 400);
	cr_expect(c.closed);
	cr_expect_eq(calls, 0);
	buf_done(&c.got);
}

Test(http_framing, sixty_five_headers_are_refused)
{
	cleanup_buf struct buf b = {0};
	struct client c;

	buf_init(&b, 1 << 20);
	buf_adds(&b, "GET /a HTTP/1.1\r\n" H);
	for (int i = 0; i < 64; i++)
		buf_addf(&b, "X%d: 1\r\n", i);
	buf_adds(&b, "\r\n");
	calls = 0;
	talk(b.data, b.len, 0, 1000000, &c);
	cr_expect_eq(status_of_answer(&c.got), 400);
	cr_expect_eq(calls, 0);
	buf_done(&c.got);
}

Test(http_framing, body_of_4_mib_arrives_whole)
{
	cleanup_buf struct buf b = {0};
	struct client c;

	buf_init(&b, 8 << 20);
	buf_addf(&b, "POST /big HTTP/1.1\r\n" H "Content-Length: %d\r\n\r\n", 4 << 20);
	for (int i = 0; i < 4 << 20; i++)
		buf_addc(&b, (char)i);
	calls = 0;
	body_bytes = 0;
	talk(b.data, b.len, 0, 200000, &c);
	cr_expect_eq(status_of_answer(&c.got), 200);
	cr_expect_eq(body_bytes, 4 << 20);
	cr_expect_eq(calls, 1);
	cr_expect_not(c.closed);
	buf_done(&c.got);
}

Test(http_framing, expect_continue_is_answered_before_the_body)
{
	static const char head[] = "POST /a HTTP/1.1\r\n" H
				   "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
	struct client c;

	calls = 0;
	talk(head, sizeof(head) - 1, 0, 50000, &c);
	cr_expect_eq(status_of_answer(&c.got), 100);
	cr_expect_eq(calls, 0);
	buf_done(&c.got);
}

Test(http_framing, path_decoding)
{
	static const struct {
		const char *raw, *out;
	} ok[] = {{"/", "/"},
		  {"/v1/a%20b", "/v1/a b"},
		  {"/%c3%a4", "/ä"},
		  {"/a%252f", "/a%2f"}};
	static const char *const bad[] = {"",	  "a",	   "/%",     "/%0a", "/%7f",
					  "/./a", "/%2E/", "/a/%2f", "/\xff"};
	char out[32];
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(ok); i++) {
		cr_expect(httpd_gate_path(ok[i].raw, false, out, sizeof(out), &err) == 0);
		cr_expect_str_eq(out, ok[i].out);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect(httpd_gate_path(bad[i], false, out, sizeof(out), &err) < 0,
			  "%s", bad[i]);
	cr_expect(httpd_gate_path("/0123456789012345678901234567890123", false, out,
				  sizeof(out), &err) < 0);
}
