/* SPDX-License-Identifier: Apache-2.0 */
/* A job's broker: what goes through it, at whose pace, and what a client that leaves ends. */
#include "tests/unit/tomb/broker/proxy_bench.h"
#include "tomb/broker/proxy.h"

Test(proxy, version_and_betas_go_on_and_no_other_field)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect(post("/v1/messages",
		    "X-Api-Key: " KEY "\r\nAnthropic-Version: 2023-06-01\r\n"
		    "anthropic-BETA: a-1 , b\r\nX-Stainless: 1\r\n",
		    "{}"),
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":1,\"dialect\":\"anthropic\",\"stream\":false,"
			 "\"version\":\"2023-06-01\",\"beta\":\"a-1,b\",\"request\":{}}");
	proxy_free(p);
	end();
}

Test(proxy, intents_are_rebuilt_and_carry_the_lease)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect(CHAT(" {\"model\" : \"m\",\"t\":0.70, \"x\":\"\\u0041\\/\",\"n\":1e2}"),
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_path, "/work/v1/ask");
	cr_expect_str_eq(seen_job, "7");
	cr_expect_str_eq(seen_token, "00000000-0000-4000-8000-000000000001");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":1,\"dialect\":\"openai\",\"stream\":false,\"request\":"
			 "{\"model\":\"m\",\"t\":0.70,\"x\":\"A/\",\"n\":1e2}}");
	expect(post("/v1/messages?beta=true", "X-Api-Key: " KEY "\r\n",
		    "{\"stream\":true}"),
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":2,\"dialect\":\"anthropic\",\"stream\":true,"
			 "\"request\":{\"stream\":true}}");
	expect("GET /v1/models HTTP/1.1\r\n" H BEARER "\r\n", " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_path, "/work/v1/models?openai");
	expect("GET /v1/models?limit=5 HTTP/1.1\r\n" H "X-Api-Key: " KEY
	       "\r\nAnthropic-Version: 2023-06-01\r\n\r\n",
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_path, "/work/v1/models?anthropic");
	expect("GET /fetch?url=https://a.example/x%3Fy%26z HTTP/1.1\r\n" H
	       "Accept: */*\r\nAuthorization: Bearer mine\r\nConnection: keep-alive\r\n"
	       "\r\n",
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(
		seen_body,
		"{\"seq\":5,\"method\":\"GET\",\"url\":\"https://a.example/x?y&z\","
		"\"headers\":[[\"Accept\",\"*/*\"]],\"body\":\"\"}");
	expect(post("/fetch?url=https://a.example/", "", "abc"), " 200 ",
	       "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":6,\"method\":\"POST\",\"url\":\"https://a.example/\","
			 "\"headers\":[],\"body\":\"YWJj\"}");
	proxy_free(p);
	end();
}

Test(proxy, a_package_is_a_registry_a_path_and_of_pypi_a_form)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	cfg.packages = true;
	p = serve(&cfg, &addr);
	expect("GET /registry/npm/@s%2fp/-/p-1.tgz HTTP/1.1\r\n" H "\r\n", " 200 ",
	       "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":1,\"registry\":\"npm\",\"path\":\"@s/p/-/p-1.tgz\"}");
	expect("GET /registry/pypi/simple/six/ HTTP/1.1\r\n" H "\r\n", " 200 ",
	       "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":2,\"registry\":\"pypi\",\"path\":\"simple/six/\","
			 "\"accept\":\"html,json\"}");
	expect("GET /registry/pypi/simple/six/ HTTP/1.1\r\n" H
	       "ACCEPT: application/vnd.pypi.simple.v1+json, x/secret, "
	       "text/html;q=0.01\r\n\r\n",
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":3,\"registry\":\"pypi\",\"path\":\"simple/six/\","
			 "\"accept\":\"json,html\"}");
	expect("GET /registry/go/a.example/!m/@v/v2.0.0+incompatible.info HTTP/1.1\r\n" H
	       "Accept: text/html\r\n\r\n",
	       " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":4,\"registry\":\"go\","
			 "\"path\":\"a.example/!m/@v/v2.0.0+incompatible.info\"}");
	expect("GET /registry/cargo/config.json HTTP/1.1\r\n" H "\r\n", " 200 ",
	       "{\"ok\":true}");
	cr_expect_str_eq(seen_body,
			 "{\"seq\":5,\"registry\":\"cargo\",\"path\":\"config.json\"}");
	proxy_free(p);
	end();
}

Test(proxy, providers_own_answers_pass_with_their_status)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = UPSTREAM_429;
	expect(CHAT("{}"), "HTTP/1.1 429 ", "{\"theirs\":1}");
	expect(CHAT("{}"), "Retry-After: 2\r\n", "{\"theirs\":1}");
	expect(CHAT("{}"), "X-RateLimit-Remaining-Requests: 0\r\n", "{\"theirs\":1}");
	mood = NO_CONTENT;
	expect("GET /fetch?url=https://a.example/ HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 204 ",
	       "Content-Length: 0\r\n");
	proxy_free(p);
	end();
}

Test(proxy, stream_comes_as_it_is_sent)
{
	cleanup_buf struct buf b;
	struct proxy_config cfg;
	struct proxy *p;
	int fd;

	begin();
	buf_init(&b, 1 << 20);
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = STREAM;
	fd = turn_dial(&addr, CHAT("{\"stream\":true}"));
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "data: 1\n\n", 9));
	turn_until_text(loop, fd, &b, "data: 1\n\n");
	cr_expect(strstr(buf_str(&b), "Content-Type: text/event-stream\r\n"));
	cr_expect(strstr(buf_str(&b), "X-Upstream-Request-Id: req_1\r\n"));
	cr_expect_null(strstr(buf_str(&b), "hidden"));
	cr_assert(httpd_stream_send(stream, "data: 2\n\n", 9));
	turn_until_text(loop, fd, &b, "data: 2\n\n");
	httpd_stream_end(stream);
	turn_until_text(loop, fd, &b, "\r\n0\r\n\r\n");
	/* The connection serves on. */
	mood = ANSWER;
	cr_assert(send(fd, CHAT("{}"), strlen(CHAT("{}")), 0) > 0);
	turn_until_text(loop, fd, &b, "{\"ok\":true}");
	close(fd);
	/* One that is cut at the vessel is seen to be cut in the job. */
	buf_reset(&b);
	mood = STREAM;
	stream = NULL;
	fd = turn_dial(&addr, CHAT("{\"stream\":true}"));
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "data: 1\n\n", 9));
	turn_until_text(loop, fd, &b, "data: 1\n\n");
	httpd_free(vessel);
	vessel = NULL;
	turn_until_text(loop, fd, &b, NULL);
	cr_expect_null(strstr(buf_str(&b), "\r\n0\r\n"));
	close(fd);
	proxy_free(p);
	end();
}

Test(proxy, client_that_leaves_is_cancelled_at_the_vessel)
{
	cleanup_buf struct buf b;
	struct proxy_config cfg;
	struct proxy *p;
	usec_t t0;
	int fd;

	begin();
	buf_init(&b, 1 << 20);
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = HOLD;
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, n_asked == 1);
	t0 = clock_boot_usec();
	close(fd);
	TURN_UNTIL(loop, n_gone == 1);
	cr_expect(clock_boot_usec() - t0 < USEC_PER_SEC);
	httpd_reply(held[0], 200, "text/plain", "", 0);
	mood = STREAM;
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, stream);
	cr_assert(httpd_stream_send(stream, "x", 1));
	turn_until_text(loop, fd, &b, "\r\nx\r\n");
	t0 = clock_boot_usec();
	close(fd);
	TURN_UNTIL(loop, n_closed == 1);
	cr_expect(clock_boot_usec() - t0 < USEC_PER_SEC);
	/* The job's end does the same. */
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, stream);
	mood = HOLD;
	close(turn_dial(&addr, ""));
	proxy_free(p);
	TURN_UNTIL(loop, n_closed == 2);
	close(fd);
	end();
}

Test(proxy, slow_reader_holds_the_vessel_back)
{
	static char part[50000];
	cleanup_buf struct buf b;
	struct proxy_config cfg;
	struct proxy *p;
	size_t sent = 0;
	int fd;

	begin();
	buf_init(&b, 64 << 20);
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = STREAM;
	memset(part, 'x', sizeof(part));
	fd = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, stream);
	/* The kernel's buffers grow while they are filled; that they are full shows when a
	 * backlog stays. */
	do {
		while (httpd_stream_backlog(stream) < 500000) {
			cr_assert(httpd_stream_send(stream, part, sizeof(part)));
			sent += sizeof(part);
			cr_assert(sent < (32 << 20), "nothing holds it back");
			turn_loop(loop, 500);
		}
		turn_loop(loop, 20000);
	} while (httpd_stream_backlog(stream) < 500000);
	httpd_stream_end(stream);
	turn_until_text(loop, fd, &b, "\r\n0\r\n\r\n");
	cr_expect(b.len > sent, "%zu of %zu", b.len, sent);
	close(fd);
	proxy_free(p);
	end();
}

Test(proxy, more_requests_than_may_be_under_way_wait)
{
	struct proxy_config cfg;
	struct proxy *p;
	int fd[10];

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = HOLD;
	for (int i = 0; i < 10; i++)
		fd[i] = turn_dial(&addr, CHAT("{}"));
	TURN_UNTIL(loop, n_asked == 4);
	turn_loop(loop, 50000);
	cr_expect_eq(n_asked, 4);
	for (unsigned i = 0; i < 10; i++) {
		TURN_UNTIL(loop, n_asked > i);
		httpd_reply(held[i], 200, "text/plain", "x", 1);
	}
	TURN_UNTIL(loop, n_asked == 10);
	for (int i = 0; i < 10; i++)
		close(fd[i]);
	proxy_free(p);
	end();
}
