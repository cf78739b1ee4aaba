/* SPDX-License-Identifier: Apache-2.0 */
/* A server of nine routes, its loop, and clients whose answers are collected as they come. */
#ifndef LYCH_TESTS_UNIT_COMMON_NET_HTTPD_BENCH_H
#define LYCH_TESTS_UNIT_COMMON_NET_HTTPD_BENCH_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/net/httpd.h"
#include "common/net/loop.h"
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

static inline void gone(void *arg)
{
	(void)arg;
	n_gone++;
}

static inline void ctx_free(void *ctx)
{
	free(ctx);
	n_freed++;
}

static inline int auth(struct httpd_req *req, void *arg, struct err *err)
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

static inline void hold(struct httpd_req *req, void *arg)
{
	(void)arg;
	httpd_req_on_gone(req, gone, NULL);
	held[n_held++] = req;
}

static inline void echo(struct httpd_req *req, void *arg)
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

static inline void fail(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;

	(void)arg;
	(void)err_set(&err, ERR_INTERNAL, "the secret path /home/x");
	httpd_reply_err(req, &err);
}

/* As many and as long fields as a server likes to send, and some that are none. */
static inline void flood(struct httpd_req *req, void *arg)
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

static inline void gap(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;

	(void)arg;
	(void)err_set_id(&err, ERRID_RUN_GAP, "no");
	httpd_reply_err_expected(req, &err, 77);
}

static inline void file(struct httpd_req *req, void *arg)
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

static inline void events(struct httpd_req *req, void *arg)
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

static inline void start(usec_t idle)
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

static inline void stop(void)
{
	httpd_free(server);
	loop_free(loop);
}

static inline void wake(void *arg)
{
	loop_stop(arg, 0);
}

static inline void turn(usec_t usec)
{
	struct loop_timer *t = loop_timer_new(loop, wake, loop);
	struct err err = ERR_INIT;

	loop_timer_arm(t, usec);
	cr_assert(loop_run(loop, &err) == 0);
	loop_timer_free(t);
}

static inline int dial(const char *request)
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
static inline void collect(int fd, struct buf *b, bool *ret_closed)
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

static inline void expect_answer(const char *request, const char *part1,
				 const char *part2)
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

#endif
