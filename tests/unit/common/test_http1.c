/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused of an answer, and that its pieces do not matter. */
#include "common/http1.h"

#include "common/attr.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define HEAD "HTTP/1.1 200 OK\r\n"

static struct http1 h;

static int take(const void *data, size_t len, void *arg, struct err *err)
{
	(void)err;
	cr_expect(len > 0 && len <= sizeof(h.in));
	buf_add(arg, data, len);
	return 0;
}

/* The other end has sent the text and gone. */
static int answer(const char *text, struct http1_head *head, struct buf *body,
		  struct err *err)
{
	int fds[2], r;

	cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	cr_assert(send(fds[1], text, strlen(text), MSG_NOSIGNAL) ==
		  (ssize_t)strlen(text));
	fd_close(&fds[1]);
	h = (struct http1){.fd = fds[0], .bad = ERRID_BROKER_ANSWER};
	r = http1_head(&h, head, NULL, NULL, err);
	if (r == 0)
		r = http1_body(&h, head, take, body, err);
	fd_close(&fds[0]);
	return r;
}

Test(http1, takes_a_whole_answer)
{
	static const struct {
		const char *text, *body;
		int status;
	} rows[] = {
		{HEAD "Content-Length: 5\r\n\r\nhello", "hello", 200},
		{HEAD "content-length:  5 \r\n\r\nhello and more", "hello", 200},
		{"HTTP/1.1 404\r\ncontent-length: 0\r\n\r\n", "", 404},
		{"HTTP/1.1 204 \r\n\r\n", "", 204},
		{HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
		      "A;x=y\r\n0123456789\r\n0\r\n\r\n",
		 "abc0123456789", 200},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_buf struct buf body;
		struct http1_head head;
		struct err err = ERR_INIT;

		buf_init(&body, 4096);
		cr_expect_eq(answer(rows[i].text, &head, &body, &err), 0, "%s: %s",
			     rows[i].text, err.msg);
		cr_expect_eq(head.status, rows[i].status);
		cr_expect_str_eq(buf_str(&body), rows[i].body);
	}
}

Test(http1, refuses_what_is_cut_or_no_answer)
{
	static const char *const rows[] = {
		"",
		"HTTP/1.1 200 OK\r\n",
		HEAD "Content-Length: 5\r\n\r\nhell",
		HEAD "Transfer-Encoding: chunked\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
		/* a head that two readers could read in two ways */
		HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		HEAD "Content-Length: +5\r\n\r\nhello",
		HEAD "Content-Length: 0x5\r\n\r\nhello",
		HEAD "Content-Length: -1\r\n\r\nhello",
		HEAD "Content-Length: 18446744073709551616\r\n\r\nhello",
		HEAD "Content-Length:\r\n\r\nhello",
		HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "0\r\n\r\n",
		/* chunks */
		HEAD "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n100000000\r\nabc\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n",
		/* lines */
		"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n",
		"HTTP/1.1 2000 Odd\r\ncontent-length: 0\r\n\r\n",
		"HTTP/1.1 20\r\ncontent-length: 0\r\n\r\n",
		"HTTP/2 200\r\ncontent-length: 0\r\n\r\n",
		"<html>",
		HEAD "Content-Length: 0\n\r\n",
		"HTTP/1.1 200 OK\ncontent-length: 0\n\n",
		HEAD "\r\nhello", /* until it is closed, or cut */
		HEAD "no colon\r\n\r\n",
		HEAD ": no name\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_buf struct buf body;
		struct http1_head head;
		struct err err = ERR_INIT;

		buf_init(&body, 4096);
		cr_expect_eq(answer(rows[i], &head, &body, &err), -1, "%s", rows[i]);
		cr_expect_eq(err.id, ERRID_BROKER_ANSWER, "%s: %s", rows[i], err.msg);
	}
}

static int answer_buf(struct buf *text, struct err *err)
{
	cleanup_buf struct buf body;
	struct http1_head head;

	buf_init(&body, 4096);
	buf_adds(text, "\r\n\r\n");
	cr_assert(buf_ok(text));
	return answer(buf_str(text), &head, &body, err);
}

Test(http1, a_head_is_bounded)
{
	cleanup_buf struct buf text;
	struct err err = ERR_INIT;

	buf_init(&text, 65536);
	buf_adds(&text, HEAD "content-length: 0");
	for (int i = 1; i < HTTP1_HEAD_LINES_MAX - 1; i++)
		buf_addf(&text, "\r\nx-%d: y", i);
	cr_expect_eq(answer_buf(&text, &err), 0, "%s", err.msg);

	buf_reset(&text);
	buf_adds(&text, HEAD "content-length: 0");
	for (int i = 0; i < HTTP1_HEAD_LINES_MAX; i++)
		buf_addf(&text, "\r\nx-%d: y", i);
	cr_expect_eq(answer_buf(&text, &err), -1, "one more line");

	buf_reset(&text);
	buf_adds(&text, HEAD "content-length: 0\r\nx: ");
	while (text.len < HTTP1_LINE_MAX_BYTES + 100)
		buf_adds(&text, "yyyyyyyyyyyyyyyy");
	cr_expect_eq(answer_buf(&text, &err), -1, "a long line");
}

static int asked;

static int give_up(short events, void *arg, struct err *err)
{
	(void)arg;
	asked = events;
	return err_set_id(err, ERRID_HTTP_AWAY, "enough");
}

Test(http1, who_waits_may_give_up)
{
	static char much[1 << 20];
	struct http1_head head;
	struct err err = ERR_INIT;
	int fds[2];

	cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	h = (struct http1){.fd = fds[0], .wait = give_up, .bad = ERRID_BROKER_ANSWER};
	cr_expect_eq(http1_head(&h, &head, NULL, NULL, &err), -1);
	cr_expect_eq(err.id, ERRID_HTTP_AWAY, "its own error");
	cr_expect_eq(asked, POLLIN);
	cr_expect_eq(http1_send(&h, "x", 1, &err), 0,
		     "what is taken at once waits for nobody");
	cr_expect_eq(http1_send(&h, much, sizeof(much), &err), -1);
	cr_expect_eq(asked, POLLOUT);
	fd_close(&fds[1]);
	cr_expect_eq(http1_send(&h, much, sizeof(much), &err), 0,
		     "gone: it may have answered");
	fd_close(&fds[0]);
}

static int enough(const void *data, size_t len, void *arg, struct err *err)
{
	(void)data, (void)len, (void)arg, (void)err;
	return 7;
}

Test(http1, who_takes_may_have_enough)
{
	static const char *const rows[] = {
		HEAD "Content-Length: 5\r\n\r\nhello",
		HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct http1_head head;
		struct err err = ERR_INIT;
		int fds[2];

		cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
		cr_assert(send(fds[1], rows[i], strlen(rows[i]), 0) > 0);
		h = (struct http1){.fd = fds[0], .bad = ERRID_BROKER_ANSWER};
		cr_assert_eq(http1_head(&h, &head, NULL, NULL, &err), 0);
		cr_expect_eq(http1_body(&h, &head, enough, NULL, &err), 7);
		fd_close(&fds[0]);
		fd_close(&fds[1]);
	}
}
