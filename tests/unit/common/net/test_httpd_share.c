/* SPDX-License-Identifier: Apache-2.0 */
/* One client of many cannot take every place of a server, nor its memory. */
#include "common/net/httpd.h"
#include "common/net/loop.h"

#include "common/mem.h"
#include "common/str.h"
#include "tests/support/scratch_socket.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

TestSuite(httpd_share, .timeout = 30);

#define PLACES 6
#define MINE 4 /* of these for one client */
#define BODIES 100000
#define ANSWERS ((size_t)8 << 20)
#define H "Host: lychgate\r\n"

static struct loop *loop;
static struct httpd *server;
static char sock_path[64];
static struct httpd_share shares[2];
static struct httpd_req *held;

/* "a" and "b" are clients; whoever shows nothing is turned away. */
static int auth(struct httpd_req *req, void *arg UNUSED, struct err *err)
{
	const char *who = httpd_req_header(req, "authorization");

	if (!who)
		return err_set_id(err, ERRID_HTTP_PEER, "nobody");
	return httpd_req_charge(req, &shares[who[0] == 'b'], err);
}

static void hello(struct httpd_req *req, void *arg UNUSED)
{
	httpd_reply(req, 200, "text/plain", "hello", 5);
}

static void large(struct httpd_req *req, void *arg UNUSED)
{
	char *body = xmalloc(ANSWERS / 2 - 1);

	memset(body, 'x', ANSWERS / 2 - 1);
	httpd_reply(req, 200, "text/plain", body, ANSWERS / 2 - 1);
	free(body);
}

static void hold(struct httpd_req *req, void *arg UNUSED)
{
	held = req;
}

static const struct httpd_route routes[] = {
	{HTTP_M_GET, "/hello", 0, 0, hello},
	{HTTP_M_POST, "/hello", 0, BODIES, hello},
	{HTTP_M_POST, "/hold", 0, BODIES, hold},
	{HTTP_M_GET, "/large", 0, 0, large},
};

static void start(void)
{
	const struct httpd_config cfg = {
		.socket_path = sock_path,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.auth = auth,
		.max_connections = PLACES,
		.idle_usec = 10 * USEC_PER_SEC,
		.share_connections = MINE,
		.share_bodies_max_bytes = BODIES,
		.share_answers_max_bytes = ANSWERS,
	};
	struct err err = ERR_INIT;

	memset(shares, 0, sizeof(shares));
	held = NULL;
	cr_assert(str_copy(sock_path, sizeof(sock_path), scratch_socket()) == 0);
	cr_assert(loop_new(&loop, &err) == 0);
	cr_assert(httpd_new(loop, &cfg, &server, &err) == 0, "%s", err.msg);
}

static void wake(void *arg)
{
	loop_stop(arg, 0);
}

static void turn(void)
{
	struct loop_timer *t = loop_timer_new(loop, wake, loop);
	struct err err = ERR_INIT;

	loop_timer_arm(t, 20000);
	cr_assert(loop_run(loop, &err) == 0);
	loop_timer_free(t);
}

static void stop(void)
{
	turn();
	httpd_free(server);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		cr_expect_eq(shares[i].connections, 0);
		cr_expect_eq(shares[i].bodies, 0);
		cr_expect_eq(shares[i].answers, 0);
	}
	loop_free(loop);
}

static int dial(const char *request)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(str_copy(a.sun_path, sizeof(a.sun_path), sock_path) == 0);
	cr_assert(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	cr_assert(send(fd, request, strlen(request), MSG_NOSIGNAL) ==
		  (ssize_t)strlen(request));
	turn();
	return fd;
}

/* The status that came; 0: nothing yet; -1: closed. */
static int status(int fd)
{
	uint64_t code;
	char text[16] = "";
	ssize_t n = recv(fd, text, 12, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	return n == 12 && parse_u64(text + 9, 100, 599, &code, NULL) == 0 ? (int)code
									  : -1;
}

Test(httpd_share, who_has_not_said_who_it_is_makes_place_the_oldest_first)
{
	int fd[PLACES + 2];

	start();
	fd[0] = dial("GET /hello HTTP/1.1\r\n" H "Authorization: a\r\n\r\n");
	cr_expect_eq(status(fd[0]), 200);
	for (size_t i = 1; i < ARRAY_SIZE(fd); i++)
		fd[i] = dial("GET /h"); /* and never goes on */
	/* the first and second of them are gone; whoever is known stays */
	cr_expect_eq(status(fd[1]), -1);
	cr_expect_eq(status(fd[2]), -1);
	cr_expect_eq(status(fd[3]), 0);
	cr_expect_eq(shares[0].connections, 1);
	int late = dial("GET /hello HTTP/1.1\r\n" H "Authorization: b\r\n\r\n");
	cr_expect_eq(status(late), 200);
	cr_expect_eq(status(fd[3]), -1);
	close(late);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	stop();
}

Test(httpd_share, one_client_leaves_places_to_others)
{
	int fd[MINE + 1], other;

	start();
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = dial("GET /hello HTTP/1.1\r\n" H "Authorization: a\r\n\r\n");
	cr_expect_eq(status(fd[MINE - 1]), 200);
	cr_expect_eq(status(fd[MINE]), 503);
	other = dial("GET /hello HTTP/1.1\r\n" H "Authorization: b\r\n\r\n");
	cr_expect_eq(status(other), 200);
	/* one less, one more */
	close(fd[0]);
	turn();
	fd[0] = dial("GET /hello HTTP/1.1\r\n" H "Authorization: a\r\n\r\n");
	cr_expect_eq(status(fd[0]), 200);
	close(other);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	stop();
}

Test(httpd_share, a_connection_is_of_who_spoke_last_on_it)
{
	int fd;

	start();
	fd = dial("GET /hello HTTP/1.1\r\n" H "Authorization: a\r\n\r\n");
	cr_expect_eq(shares[0].connections, 1);
	cr_assert(send(fd, "GET /hello HTTP/1.1\r\n" H "Authorization: b\r\n\r\n", 57,
		       0) == 57);
	turn();
	cr_expect_eq(shares[0].connections, 0);
	cr_expect_eq(shares[1].connections, 1);
	close(fd);
	stop();
}

Test(httpd_share, declared_bodies_have_a_sum)
{
	int one, two, other;

	start();
	one = dial("POST /hello HTTP/1.1\r\n" H
		   "Authorization: a\r\nContent-Length: 60000\r\n\r\nx");
	two = dial("POST /hello HTTP/1.1\r\n" H
		   "Authorization: a\r\nContent-Length: 60000\r\n\r\nx");
	cr_expect_eq(status(one), 0);
	cr_expect_eq(status(two), 503);
	cr_expect_eq(shares[0].bodies, 60000);
	other = dial("POST /hello HTTP/1.1\r\n" H
		     "Authorization: b\r\nContent-Length: 60000\r\n\r\nx");
	cr_expect_eq(status(other), 0);
	close(one);
	close(two);
	close(other);
	stop();
}

Test(httpd_share, a_body_counts_until_its_handler_is_done_though_its_sender_left)
{
	struct err err = ERR_INIT;
	int fd;

	start();
	fd = dial("POST /hold HTTP/1.1\r\n" H
		  "Authorization: a\r\nContent-Length: 1\r\n\r\nx");
	cr_assert(held);
	close(fd);
	turn();
	cr_expect(httpd_req_is_gone(held));
	cr_expect_eq(shares[0].connections, 0);
	cr_expect_eq(shares[0].bodies, 1);
	(void)err_set_id(&err, ERRID_HTTP_AWAY, "gone");
	httpd_reply_err(held, &err);
	cr_expect_eq(shares[0].bodies, 0);
	stop();
}

Test(httpd_share, answers_that_are_not_taken_have_a_sum)
{
	int fd[3], other;

	start();
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = dial("GET /large HTTP/1.1\r\n" H "Authorization: a\r\n\r\n");
	cr_expect_eq(status(fd[1]), 200);
	cr_expect_eq(status(fd[2]), 503);
	cr_expect_eq(shares[0].answers, 2 * (ANSWERS / 2 - 1));
	other = dial("GET /large HTTP/1.1\r\n" H "Authorization: b\r\n\r\n");
	cr_expect_eq(status(other), 200);
	close(fd[0]);
	turn();
	cr_expect_eq(shares[0].answers, ANSWERS / 2 - 1);
	close(fd[1]);
	close(fd[2]);
	close(other);
	stop();
}
