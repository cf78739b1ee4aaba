/* SPDX-License-Identifier: Apache-2.0 */
/* CONNECT as the framing gate reads it, and a server that takes what comes by a way of its own. */
#include "tests/unit/common/net/httpd_guest.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"

TestSuite(httpd_connect, .timeout = 60);

/* ---- the head of a CONNECT ---- */

static int read_head(const char *text, struct gate_head *ret)
{
	static char head[GATE_HEAD_MAX_BYTES + 1];
	struct err err = ERR_INIT;

	cr_assert_eq(str_copy(head, sizeof(head), text), 0);
	return gate_parse_connect(head, strlen(head), ret, &err);
}

Test(httpd_connect, what_two_readers_could_take_for_two_things_is_refused)
{
	static const char *const bad[] = {
		"CONNECT a.example:443\r\n\r\n",
		"CONNECT a.example:443 HTTP/2\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1 \r\n\r\n",
		"CONNECT  HTTP/1.1\r\n\r\n",
		"CONNECT a.example:443 b HTTP/1.1\r\n\r\n",
		"CONNECT /a HTTP/1.1\r\n\r\n",
		"CONNECT a.example:443/ HTTP/1.1\r\n\r\n",
		"CONNECT https://a.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT u@a.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT a.example:443?x HTTP/1.1\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.exampl\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost:\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nhost: "
		"a.example:443\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 00\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nX : a\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
	};
	struct gate_head g;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_lt(read_head(bad[i], &g), 0, "%s", bad[i]);
}

Test(httpd_connect, what_clients_send_is_read)
{
	static const char *const good[] = {
		/* curl; Python before 3.12; one that names the host alone */
		"CONNECT a.example:443 HTTP/1.1\r\nHost: "
		"a.example:443\r\nProxy-Connection: Keep-Alive\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.0\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nhost: A.example\r\nContent-Length: "
		"0\r\n\r\n",
	};
	struct gate_head g;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cr_assert_eq(read_head(good[i], &g), 0, "%s", good[i]);
		cr_expect_str_eq(g.path, "a.example:443");
		cr_expect(g.is_connect && g.close);
	}
}

/* ---- a connection that was given ---- */

static const char *const hosts[] = {"a.example:8443", NULL};
static unsigned n_served, n_gone;
static char target[256], method[32];
static int whom;

static void serve(struct httpd_req *req, void *arg)
{
	struct buf b;

	(void)arg;
	buf_init(&b, sizeof(target));
	httpd_req_target(req, &b);
	cr_assert_eq(str_copy(target, sizeof(target), buf_str(&b)), 0);
	cr_assert_eq(str_copy(method, sizeof(method), httpd_req_method(req)), 0);
	cr_expect_eq(httpd_req_guest(req), &whom);
	buf_done(&b);
	n_served++;
	httpd_reply(req, 200, "text/plain", "ok", 2);
}

static void on_gone(void *arg)
{
	cr_expect_eq(arg, &whom);
	n_gone++;
	loop_stop(guest_loop, 0);
}

/* What it answers to this, up to the end of the connection. */
static const char *say(const char *text)
{
	static const struct httpd_route any = {.body_max_bytes = 16, .handler = serve};
	const struct httpd_config cfg = {
		.any = &any, .max_connections = 1, .idle_usec = USEC_PER_SEC * 20};
	const struct httpd_guest guest = {hosts, on_gone, &whom};
	const char *got;

	n_served = n_gone = 0;
	target[0] = '\0';
	got = guest_said(&cfg, &guest, text);
	cr_expect_eq(n_gone, 1);
	return got;
}

#define HOST "Host: a.example:8443\r\n"

Test(httpd_connect, only_its_own_host_is_served_there)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\nHost: lychgate\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET https://a.example:8443/ HTTP/1.1\r\n" HOST "\r\n",
		"CONNECT a.example:8443 HTTP/1.1\r\n" HOST "\r\n",
		"CONNECT / HTTP/1.1\r\n" HOST "\r\n",
		"METHODOFMANYLETTERS / HTTP/1.1\r\n" HOST "\r\n",
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 17\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *got = say(bad[i]);

		cr_expect(str_starts(got, "HTTP/1.1 4"), "%s: %s", bad[i], got);
		cr_expect_eq(n_served, 0, "%s", bad[i]);
	}
}

Test(httpd_connect, a_path_there_is_not_read)
{
	static const char *const paths[] = {"/", "/a//b/../%2f%00?x&y=%zz", "/?"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		char text[256];
		const char *got;

		cr_assert_eq(str_fmt(text, sizeof(text),
				     "PATCH %s HTTP/1.1\r\n" HOST
				     "Connection: close\r\n\r\n",
				     paths[i]),
			     0);
		got = say(text);
		cr_expect(str_starts(got, "HTTP/1.1 200"), "%s", got);
		cr_expect_str_eq(target, paths[i]);
		cr_expect_str_eq(method, "PATCH");
	}
}
