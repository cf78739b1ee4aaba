/* SPDX-License-Identifier: Apache-2.0 */
/* The client against our own server, on one loop, and against hostile peers. */
#include "common/net/httpc.h"
#include "common/net/httpd.h"
#include "common/net/loop.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

TestSuite(httpc, .timeout = 30);

static struct loop *loop;
static struct httpd *server;
static struct httpc *client;
static char sock_path[64];
static struct httpd_req *held;
static char seen[256];

static void echo(struct httpd_req *req, void *arg)
{
	const struct httpd_route *r = httpd_req_route(req);
	const char *x = httpd_req_header(req, "Lychgate-Job");
	const char *type = httpd_req_header(req, "Content-Type");
	const char *expect = httpd_req_header(req, "Expect");
	size_t len;

	(void)arg;
	(void)httpd_req_body(req, &len);
	cr_assert(str_fmt(seen, sizeof(seen), "%d job=%s type=%s expect=%s len=%zu",
			  (int)r->method, x ? x : "-", type ? type : "-",
			  expect ? expect : "-", len) == 0);
	httpd_reply(req, 200, "text/plain", seen, strlen(seen));
}

static void big(struct httpd_req *req, void *arg)
{
	static char data[100000];

	(void)arg;
	httpd_reply(req, 200, "text/plain", data, sizeof(data));
}

static void redirect(struct httpd_req *req, void *arg)
{
	(void)arg;
	httpd_req_add_header(req, "Location", "/echo");
	httpd_reply(req, 302, "text/plain", "", 0);
}

static void hold(struct httpd_req *req, void *arg)
{
	(void)arg;
	held = req;
}

static const struct httpd_route routes[] = {
	{HTTP_M_GET, "/echo", 0, 0, echo},
	{HTTP_M_POST, "/echo", 0, 4 << 20, echo},
	{HTTP_M_PUT, "/echo", 0, 4 << 20, echo},
	{HTTP_M_DELETE, "/echo", 0, 0, echo},
	{HTTP_M_GET, "/big", 0, 0, big},
	{HTTP_M_GET, "/redirect", 0, 0, redirect},
	{HTTP_M_GET, "/hold", 0, 0, hold},
};

struct answer {
	unsigned calls;
	int status;
	enum err_code code;
	char text[256];
};

static void done(const struct httpc_reply *reply, void *arg)
{
	struct answer *a = arg;

	a->calls++;
	a->status = reply->status;
	a->code = reply->err ? reply->err->code : ERR_NONE;
	(void)snprintf(a->text, sizeof(a->text), "%.200s",
		       reply->err ? reply->err->msg : reply->body);
	loop_stop(loop, 0);
}

static void begin(void)
{
	struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.max_connections = 8,
		.idle_usec = 5 * USEC_PER_SEC,
	};
	struct err err = ERR_INIT;

	cr_assert(str_copy(sock_path, sizeof(sock_path), scratch_socket()) == 0);
	cr_assert(loop_new(&loop, &err) == 0);
	cr_assert(httpd_new(loop, &cfg, &server, &err) == 0, "%s", err.msg);
	cr_assert(httpc_new(loop, sock_path, 2, &client, &err) == 0, "%s", err.msg);
}

static void end(void)
{
	httpc_free(client);
	httpd_free(server);
	loop_free(loop);
}

static struct answer ask(const struct httpc_request *rq)
{
	struct answer a = {0};
	struct err err = ERR_INIT;

	cr_assert(httpc_send(client, rq, done, &a, NULL, &err) == 0, "%s", err.msg);
	cr_assert_eq(a.calls, 0, "never from inside the call");
	cr_assert(loop_run(loop, &err) == 0);
	cr_assert_eq(a.calls, 1);
	return a;
}

#define RQ(...)                                                                          \
	(&(struct httpc_request){                                                        \
		.timeout_usec = 5 * USEC_PER_SEC, .reply_max_bytes = 1000, __VA_ARGS__})

Test(httpc, refuses)
{
	static const char *const targets[] = {"",	    "echo", "/a b",
					      "/a\r\nX: y", "/a#b", "http://x/"};
	struct err err = ERR_INIT;
	struct answer a;

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		cr_expect(httpc_send(client, RQ(.target = targets[i]), done, &a, NULL,
				     &err) < 0,
			  "%s", targets[i]);
	cr_expect(httpc_send(client,
			     RQ(.target = "/echo",
				.headers = (const char *const[]){"A: b\r\nC: d", NULL}),
			     done, &a, NULL, &err) < 0);
	a = ask(RQ(.target = "/big"));
	cr_expect_eq(a.code, ERR_TOO_LARGE);
	cr_expect_eq(a.status, 0);
	a = ask(&(struct httpc_request){
		.target = "/hold", .timeout_usec = 50000, .reply_max_bytes = 1000});
	cr_expect_eq(a.code, ERR_TIMEOUT);
	httpd_reply(held, 200, "text/plain", "", 0);
	a = ask(RQ(.target = "/redirect"));
	cr_expect_eq(a.status, 302, "not followed");
	end();
}

Test(httpc, methods_and_bodies)
{
	static char body[3 << 20];
	struct answer a;

	begin();
	a = ask(RQ(.target = "/echo",
		   .headers = (const char *const[]){"Lychgate-Job: 42", NULL}));
	cr_expect_eq(a.status, 200);
	cr_expect_str_eq(a.text, "0 job=42 type=- expect=- len=0");
	a = ask(RQ(.target = "/echo", .method = HTTP_M_POST));
	cr_expect_str_eq(a.text, "1 job=- type=- expect=- len=0");
	a = ask(RQ(.target = "/echo", .method = HTTP_M_POST, .body = body,
		   .body_len = sizeof(body)));
	cr_expect_str_eq(a.text, "1 job=- type=- expect=- len=3145728");
	a = ask(RQ(.target = "/echo", .method = HTTP_M_PUT, .body = "abc", .body_len = 3,
		   .headers = (const char *const[]){"Content-Type: a/b", NULL}));
	cr_expect_str_eq(a.text, "2 job=- type=a/b expect=- len=3");
	a = ask(RQ(.target = "/echo", .method = HTTP_M_DELETE));
	cr_expect_str_eq(a.text, "3 job=- type=- expect=- len=0");
	a = ask(RQ(.target = "/nowhere"));
	cr_expect_eq(a.status, 404);
	cr_expect(strstr(a.text, "LYCH-HTTP-002"));
	end();
}

Test(httpc, environment_has_no_say)
{
	static char proxy[] = "http_proxy=http://127.0.0.1:1";
	static char all[] = "ALL_PROXY=socks5://127.0.0.1:1";
	static char home[] = "HOME=/nonexistent";
	static char *env[] = {proxy, all, home, NULL};
	struct answer a;

	environ = env;
	begin();
	a = ask(RQ(.target = "/echo"));
	cr_expect_eq(a.status, 200, "%s", a.text);
	end();
}

Test(httpc, no_thread_and_no_descriptor_is_left)
{
	struct answer a;
	unsigned n = 0;
	DIR *d;

	begin();
	for (int i = 0; i < 20; i++) {
		a = ask(RQ(.target = "/echo"));
		cr_expect_eq(a.status, 200);
	}
	d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	cr_expect(n < 40, "%u descriptors", n);
	closedir(d);
	n = 0;
	d = opendir("/proc/self/task");
	while (readdir(d))
		n++;
	/* ".", "..", the test and Criterion's own */
	cr_expect(n <= 4, "%u tasks", n);
	closedir(d);
	end();
}

Test(httpc, server_restarts)
{
	struct answer a;

	begin();
	a = ask(RQ(.target = "/echo"));
	cr_expect_eq(a.status, 200);
	httpd_free(server);
	server = NULL;
	a = ask(RQ(.target = "/echo"));
	cr_expect_eq(a.status, 0);
	cr_expect_eq(a.code, ERR_UNAVAILABLE);
	httpc_free(client);
	loop_free(loop);
	begin();
	a = ask(RQ(.target = "/echo"));
	cr_expect_eq(a.status, 200);
	end();
}

static struct httpc_call *other;

static void cancel_other(const struct httpc_reply *reply, void *arg)
{
	httpc_cancel(other);
	done(reply, arg);
}

static void free_client(const struct httpc_reply *reply, void *arg)
{
	httpc_free(client);
	client = NULL;
	done(reply, arg);
}

static void send_again(const struct httpc_reply *reply, void *arg)
{
	struct err err = ERR_INIT;

	(void)reply;
	cr_assert(httpc_send(client, RQ(.target = "/echo"), done, arg, NULL, &err) == 0);
}

Test(httpc, callbacks_may_cancel_send_and_free)
{
	struct answer a = {0}, b = {0};
	struct err err = ERR_INIT;

	begin();
	cr_assert(httpc_send(client, RQ(.target = "/echo"), cancel_other, &a, NULL,
			     &err) == 0);
	cr_assert(httpc_send(client, RQ(.target = "/hold"), done, &b, &other, &err) == 0);
	cr_assert(loop_run(loop, &err) == 0);
	cr_expect_eq(a.calls, 1);
	cr_expect_eq(b.calls, 0);
	if (held)
		httpd_reply(TAKE_PTR(held), 200, "text/plain", "", 0);

	cr_assert(httpc_send(client, RQ(.target = "/echo"), send_again, &b, NULL, &err) ==
		  0);
	cr_assert(loop_run(loop, &err) == 0);
	cr_expect_eq(b.status, 200);

	cr_assert(httpc_send(client, RQ(.target = "/echo"), free_client, &a, NULL,
			     &err) == 0);
	for (int i = 0; i < 3; i++)
		cr_assert(httpc_send(client, RQ(.target = "/echo"), done, &b, NULL,
				     &err) == 0);
	cr_assert(loop_run(loop, &err) == 0);
	while (client)
		cr_assert(loop_run(loop, &err) == 0);
	end();
}

/* A peer that answers nonsense. */
static const char *nonsense;

static void answer_nonsense(int fd, unsigned what, void *arg)
{
	char chunk[4096];
	int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	(void)what;
	(void)arg;
	cr_assert(c >= 0);
	(void)!recv(c, chunk, sizeof(chunk), 0);
	(void)!send(c, nonsense, strlen(nonsense), MSG_NOSIGNAL);
	close(c);
}

Test(httpc, hostile_answers)
{
	static const char *const rows[] = {
		"",
		"\r\n\r\n",
		"hello\r\n\r\n",
		"HTTP/1.1 abc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
	};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct loop_io *io;
	int fd;

	begin();
	httpd_free(server);
	server = NULL;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(str_copy(addr.sun_path, sizeof(addr.sun_path), sock_path) == 0);
	cr_assert(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	cr_assert(listen(fd, 8) == 0);
	io = loop_io_new(loop, fd, LOOP_READ, answer_nonsense, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct answer a;

		nonsense = rows[i];
		a = ask(RQ(.target = "/echo"));
		cr_expect_eq(a.status, 0, "%s: %d", rows[i], a.status);
		cr_expect_neq(a.code, ERR_NONE, "%s", rows[i]);
	}
	loop_io_free(io);
	close(fd);
	(void)unlink(sock_path);
	end();
}
