/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies in chunks: by the bytes alone, and by a server that takes them beside one that does not. */
#include "tests/unit/common/net/httpd_guest.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/str.h"

TestSuite(httpd_chunks, .timeout = 60);

#define MAX_BYTES 32

/* Fed in pieces; ret_used: of all. */
static int feed(const char *text, size_t step, struct buf *body, size_t *ret_used,
		struct err *err)
{
	size_t len = strlen(text), used = 0;
	struct gate_chunks c;
	int r = 0;

	gate_chunks_begin(&c, MAX_BYTES);
	buf_init(body, MAX_BYTES);
	*ret_used = 0;
	for (size_t at = 0; at < len && r == 0; at += step) {
		size_t n = len - at < step ? len - at : step;

		r = gate_chunks_feed(&c, text + at, n, body, &used, err);
		*ret_used += used;
	}
	cr_assert(buf_ok(body));
	return r;
}

/* However it is cut. */
static void expect_refused(const char *text, enum err_id id)
{
	struct err err = ERR_INIT;
	struct buf body;
	size_t used;

	for (size_t step = 1; step < 40; step += 3) {
		cr_expect_lt(feed(text, step, &body, &used, &err), 0, "%s", text);
		cr_expect_eq(err.id, id, "%s", text);
		buf_done(&body);
	}
}

Test(httpd_chunks, what_is_not_plain_is_refused)
{
	static const char *const bad[] = {
		"\r\n\r\n",
		" 5\r\nhello\r\n0\r\n\r\n",
		"5 \r\nhello\r\n0\r\n\r\n",
		"+5\r\nhello\r\n0\r\n\r\n",
		"-5\r\nhello\r\n0\r\n\r\n",
		"0x5\r\nhello\r\n0\r\n\r\n",
		"5h\r\nhello\r\n0\r\n\r\n",
		"5;x=y\r\nhello\r\n0\r\n\r\n",
		"5\nhello\r\n0\r\n\r\n",
		"5\r\r\nhello\r\n0\r\n\r\n",
		"5\r\nhello0\r\n\r\n",
		"5\r\nhello\n0\r\n\r\n",
		"5\r\nhello!\r\n0\r\n\r\n",
		"5\r\nhello\r\n\r\n0\r\n\r\n",
		"5\r\nhello\r\n0\r\nX: trailer\r\n\r\n",
		"5\r\nhello\r\n0\r\n\n",
		"000000005\r\nhello\r\n0\r\n\r\n",
		"fffffffffffffffff\r\n",
		"100000005\r\nhello\r\n0\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(bad[i], ERRID_HTTP_FRAMING);
}

Test(httpd_chunks, more_than_there_may_be_is_refused_before_it_is_read)
{
	static const char *const bad[] = {
		"21\r\n",
		"ffffffff\r\n",
		"10\r\n0123456789abcdef\r\n11\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(bad[i], ERRID_HTTP_BODY);
}

Test(httpd_chunks, what_clients_send_is_read)
{
	static const struct {
		const char *text, *body;
	} good[] = {
		{"0\r\n\r\n", ""},
		{"00000000\r\n\r\n", ""},
		{"5\r\nhello\r\n0\r\n\r\n", "hello"},
		{"00000005\r\nhello\r\n000\r\n\r\n", "hello"},
		{"2\r\n\r\n\r\n3\r\n0\r\n\r\n0\r\n\r\n", "\r\n0\r\n"},
		{"A\r\n0123456789\r\na\r\n0123456789\r\nC\r\n0123456789ab\r\n0\r\n\r\n",
		 "012345678901234567890123456789ab"},
	};
	static const char after[] = "GET / HTTP/1.1\r\n";
	struct err err = ERR_INIT;
	struct buf body;
	size_t used;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		for (size_t step = 1; step < 80; step++) {
			char text[256];
			int r = str_fmt(text, sizeof(text), "%s%s", good[i].text, after);

			cr_assert_eq(r, 0);
			cr_assert_eq(feed(text, step, &body, &used, &err), 1, "%s: %s",
				     good[i].text, err.msg);
			cr_expect_str_eq(buf_str(&body), good[i].body);
			/* what follows is not touched */
			cr_expect_eq(used, strlen(good[i].text), "%s by %zu",
				     good[i].text, step);
			buf_done(&body);
			/* and without its last byte it is not whole */
			text[strlen(good[i].text) - 1] = '\0';
			cr_expect_eq(feed(text, step, &body, &used, &err), 0);
			buf_done(&body);
		}
}

/* ---- by a server ---- */

static struct buf served; /* the bodies, one behind the other */
static unsigned n_served;

static void serve(struct httpd_req *req, void *arg UNUSED)
{
	size_t len = 0;
	const void *body = httpd_req_body(req, &len);

	buf_add(&served, body, len);
	n_served++;
	httpd_reply(req, 200, "text/plain", "ok", 2);
}

static void on_gone(void *arg UNUSED)
{
	loop_stop(guest_loop, 0);
}

static const char *say_to(const char *text, bool chunks_ok, size_t drop_max_bytes)
{
	static const char *const hosts[] = {"a.example", NULL};
	static const struct httpd_route any = {.body_max_bytes = MAX_BYTES,
					       .handler = serve};
	const struct httpd_config cfg = {.any = &any,
					 .max_connections = 1,
					 .idle_usec = USEC_PER_SEC * 20,
					 .bodies_max_bytes = MAX_BYTES + 1,
					 .chunks_ok = chunks_ok,
					 .drop_max_bytes = drop_max_bytes};
	const struct httpd_guest guest = {hosts, on_gone, NULL};

	n_served = 0;
	buf_done(&served);
	buf_init(&served, 1024);
	return guest_said(&cfg, &guest, text);
}

static const char *say(const char *text, bool chunks_ok)
{
	return say_to(text, chunks_ok, 0);
}

#define HEAD "PUT / HTTP/1.1\r\nHost: a.example\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n"

Test(httpd_chunks, a_server_that_takes_none_refuses_them)
{
	const char *got = say(CHUNKED "\r\n2\r\nhi\r\n0\r\n\r\n", false);

	cr_expect(str_starts(got, "HTTP/1.1 400") && strstr(got, "Transfer-Encoding"),
		  "%s", got);
	cr_expect_eq(n_served, 0);
}

Test(httpd_chunks, what_is_ambiguous_is_refused_where_they_are_taken)
{
	static const struct {
		const char *text, *answer;
	} bad[] = {
		{CHUNKED "Content-Length: 2\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "HTTP/1.1 400"},
		{CHUNKED "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400"},
		{HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		 "HTTP/1.1 400"},
		{HEAD "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
		 "HTTP/1.1 400"},
		{HEAD "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400"},
		{HEAD "Transfer-Encoding: identity\r\n\r\n", "HTTP/1.1 400"},
		{HEAD "Transfer-Encoding:\r\n\r\n", "HTTP/1.1 400"},
		{CHUNKED "\r\n2;a=b\r\nhi\r\n0\r\n\r\n", "HTTP/1.1 400"},
		{CHUNKED "\r\n2\r\nhi\r\n0\r\nHost: b.example\r\n\r\n", "HTTP/1.1 400"},
		{CHUNKED "\r\n21\r\n", "HTTP/1.1 413"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *got = say(bad[i].text, true);

		cr_expect(str_starts(got, bad[i].answer), "%s: %s", bad[i].text, got);
		cr_expect_null(strstr(got + 1, "HTTP/1.1"), "%s: %s", bad[i].text, got);
		cr_expect_eq(n_served, 0, "%s", bad[i].text);
	}
}

Test(httpd_chunks, a_server_that_takes_them_reads_the_body)
{
	const char *got = say(CHUNKED "Connection: close\r\n\r\n2\r\nhi\r\n1;\r\n", true);

	cr_expect_eq(n_served, 0, "%s", got);
	got = say(CHUNKED "Connection: close\r\n\r\n2\r\nhi\r\n6\r\n there\r\n0\r\n\r\n",
		  true);
	cr_expect(str_starts(got, "HTTP/1.1 200"), "%s", got);
	cr_expect_str_eq(buf_str(&served), "hi there");
	/* what hides behind is no request */
	got = say(CHUNKED
		  "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n",
		  true);
	cr_expect(str_starts(got, "HTTP/1.1 200"), "%s", got);
	cr_expect_eq(n_served, 1);
}

/* ---- one that is too large, by a server that answers behind it ---- */

#define DROP_MAX 100
#define FORTY "0123456789012345678901234567890123456789"
#define IN_CHUNKS CHUNKED "\r\n5\r\nhello\r\n28\r\n" FORTY "\r\n"
#define SMUGGLED "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n"

/* Its client is still sending: answered now, it would take the request for over. */
Test(httpd_chunks, a_refused_body_is_not_answered_before_its_end)
{
	static const char *const begun[] = {
		IN_CHUNKS,
		IN_CHUNKS "0\r\n",
		IN_CHUNKS "28\r\n" FORTY,
		HEAD "Content-Length: 80\r\n\r\n" FORTY
		     "012345678901234567890123456789012345678",
	};

	for (size_t i = 0; i < ARRAY_SIZE(begun); i++) {
		cr_expect_str_eq(say_to(begun[i], true, DROP_MAX), "", "%s", begun[i]);
		cr_expect_eq(n_served, 0, "%s", begun[i]);
	}
}

Test(httpd_chunks, a_refused_body_is_answered_once_and_for_all)
{
	static const char *const whole[] = {
		IN_CHUNKS "0\r\n\r\n",
		IN_CHUNKS "0\r\n\r\n" SMUGGLED,
		HEAD "Content-Length: 80\r\n\r\n" FORTY FORTY,
		HEAD "Content-Length: 80\r\n\r\n" FORTY FORTY SMUGGLED,
		/* more than is waited for */
		IN_CHUNKS "28\r\n" FORTY "\r\n28\r\n" FORTY,
		HEAD "Content-Length: 8000\r\n\r\n" FORTY FORTY FORTY,
		/* what is no body any more */
		IN_CHUNKS "no chunk",
		/* it waits for leave to send */
		HEAD "Expect: 100-continue\r\nContent-Length: 80\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		const char *got = say_to(whole[i], true, DROP_MAX);

		cr_expect(str_starts(got, "HTTP/1.1 413"), "%s: %s", whole[i], got);
		cr_expect_not_null(strstr(got, "Connection: close"), "%s", got);
		cr_expect_null(strstr(got + 1, "HTTP/1.1"), "%s: %s", whole[i], got);
		cr_expect_eq(n_served, 0, "%s", whole[i]);
	}
}
