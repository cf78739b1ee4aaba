/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own promises: who owns what when clients come and go. */
#include "common/net/httpd_priv.h"
#include "tests/unit/common/net/httpd_bench.h"

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
