/* SPDX-License-Identifier: Apache-2.0 */
/* The server's socket: what lies in its way, and what becomes of one that was removed. */
#include "tests/unit/common/net/httpd_bench.h"

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
