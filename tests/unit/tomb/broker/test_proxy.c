/* SPDX-License-Identifier: Apache-2.0 */
/* A job's broker: what it refuses, and what one job does leaves the others alone. */
#include "tests/unit/tomb/broker/proxy_bench.h"
#include "tomb/broker/proxy.h"

/* ---- refusals ---- */

Test(proxy, without_the_jobs_key_nothing_is_asked)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect(post("/v1/chat/completions", "", "{}"), " 401 ",
	       "\"type\":\"authentication_error\"");
	expect(post("/v1/chat/completions", "Authorization: Bearer sk-real\r\n", "{}"),
	       " 401 ", "\"code\":\"LYCH-BROKER-020\"");
	expect(post("/v1/chat/completions", "Authorization: Bearer " KEY "x\r\n", "{}"),
	       " 401 ", "LYCH-BROKER-020");
	expect(post("/v1/messages", "X-Api-Key: lych-012345678x\r\n", "{}"), " 401 ",
	       "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"");
	expect("GET /v1/models HTTP/1.1\r\n" H "\r\n", " 401 ", "LYCH-BROKER-020");
	expect("GET /registry/npm/left-pad HTTP/1.1\r\n" H "\r\n", " 403 ",
	       "\"error_code\":\"LYCH-BROKER-021\"");
	cr_expect_eq(n_asked, 0);
	/* The vessel's log has none of it: the job's result says how often. */
	cr_expect_eq(refused.count[ERRID_BROKER_KEY], 5);
	cr_expect_eq(refused.count[ERRID_BROKER_PACKAGES], 1);
	proxy_free(p);
	end();
}

Test(proxy, what_is_no_request_of_ours_is_refused_in_the_sdks_words)
{
	static const struct {
		const char *body, *code;
	} bad[] = {
		{"", "LYCH-SPEC-001"},
		{"[]", "LYCH-SPEC-001"},
		{"{\"a\":1,\"a\":2}", "LYCH-SPEC-001"},
		{"{\"a\":NaN}", "LYCH-SPEC-001"},
		{"{\"a\":'b'}", "LYCH-SPEC-001"},
		{"{\"a\":1} x", "LYCH-SPEC-001"},
		{"{\"stream\":\"yes\"}", "LYCH-SPEC-003"},
	};
	struct proxy_config cfg;
	struct proxy *p;
	char deep[40000];

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect(CHAT(bad[i].body), " 400 ", bad[i].code);
	memset(deep, '[', sizeof(deep) - 1);
	memcpy(deep, "{\"a\":", 5);
	deep[sizeof(deep) - 1] = '\0';
	expect(CHAT(deep), " 400 ", "\"type\":\"invalid_request_error\"");
	expect("POST /v1/messages HTTP/1.1\r\n" H BEARER
	       "Content-Length: 4294967296\r\n\r\n",
	       " 413 ", "\"type\":\"request_too_large\"");
	expect("POST /v1/chat/completions HTTP/1.1\r\n" H BEARER
	       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	       " 400 ", "LYCH-HTTP-001");
	expect(post("/v1/nothing", BEARER, "{}"), " 404 ",
	       "{\"error\":{\"message\":\"LYCH-HTTP-002");
	expect("DELETE /v1/models HTTP/1.1\r\n" H BEARER "\r\n", " 405 ",
	       "LYCH-HTTP-003");
	expect("GET /fetch?url=a&x=b HTTP/1.1\r\n" H "\r\n", " 400 ", "LYCH-HTTP-007");
	expect("GET /fetch HTTP/1.1\r\n" H "\r\n", " 400 ", "LYCH-HTTP-007");
	cr_expect_eq(n_asked, 0);
	cr_expect_eq(refused.count[ERRID_HTTP_ROUTE], 1);
	cr_expect_eq(refused.count[ERRID_HTTP_METHOD], 1);
	cr_expect_eq(refused.count[ERRID_HTTP_QUERY], 2);
	proxy_free(p);
	end();
}

Test(proxy, refusal_of_the_vessel_is_told_in_the_dialect)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = REFUSE;
	expect(CHAT("{}"), "X-Should-Retry: false\r\n",
	       "\"code\":\"LYCH-RUN-003\"},\"request_id\":\"");
	expect(CHAT("{}"), " 410 ", "The lease is no longer held: why not. ");
	expect(post("/v1/messages", "x-api-key: " KEY "\r\n", "{}"), " 410 ",
	       "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\"");
	expect("GET /fetch?url=https://a.example/ HTTP/1.1\r\n" H "\r\n", " 410 ",
	       "\"error_code\":\"LYCH-RUN-003\"");
	mood = REFUSE_RETRY;
	expect(CHAT("{}"), "Retry-After: 9\r\n", "LYCH-RUN-003");
	proxy_free(p);
	end();
}

Test(proxy, vessel_that_is_away_is_a_typed_503)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	httpd_free(vessel);
	vessel = NULL;
	expect(CHAT("{}"), " 503 ", "\"code\":\"LYCH-BROKER-024\"");
	expect(post("/v1/messages", BEARER, "{}"), "Retry-After: 1\r\n",
	       "\"type\":\"overloaded_error\"");
	/* ... and comes back. */
	vessel_up();
	expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	proxy_free(p);
	end();
}

Test(proxy, fields_that_have_not_their_form_are_refused)
{
	static const char *const bad[] = {
		"Anthropic-Version: 2023-06-01\r\nanthropic-version: 2023-06-01\r\n",
		"Anthropic-Beta: a\r\nAnthropic-Beta: b\r\n",
		"Anthropic-Version: latest\r\n",
		"Anthropic-Beta: a b\r\n",
		"Anthropic-Beta: a@b.example\r\n",
	};
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char fields[256];

		cr_assert(str_fmt(fields, sizeof(fields), "X-Api-Key: " KEY "\r\n%s",
				  bad[i]) == 0);
		/* of two fields of a name no request is made at all */
		expect(post("/v1/messages", fields, "{}"), " 400 ",
		       i < 2 ? "LYCH-HTTP-001" : "LYCH-BROKER-002");
		cr_expect_str_eq(seen_path, "", "%s", bad[i]);
	}
	proxy_free(p);
	end();
}

/* ---- hostile neighbours ---- */

Test(proxy, what_one_job_does_leaves_the_others_asks_alone)
{
	enum { N = 100 };
	struct proxy_config cfg, cfg2;
	struct sockaddr_in bad, good;
	struct proxy *p, *q;
	int fd[N];

	begin();
	cfg = config(7);
	cfg2 = config(8);
	p = serve(&cfg, &bad);
	q = serve(&cfg2, &good);
	/* Slow heads, bodies that never come, and connections that say nothing. */
	for (int i = 0; i < N; i++) {
		static const char *const what[] = {
			"GET /fetch?ur", "",
			"POST /v1/messages HTTP/1.1\r\n" H BEARER
			"Content-Length: 4000000\r\n\r\n{"};
		const char *s = what[i % 3];

		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(fd[i], (struct sockaddr *)&bad, sizeof(bad));
		(void)!send(fd[i], s, strlen(s), MSG_NOSIGNAL);
	}
	turn_loop(loop, 50000);
	cr_expect_eq(n_asked, 0);
	addr = good;
	for (int i = 0; i < 20; i++)
		expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_job, "8");
	cr_expect_eq(n_asked, 20);
	for (int i = 0; i < N; i++)
		close(fd[i]);
	proxy_free(p);
	/* The other job's broker is untouched by the end of this one. */
	expect(CHAT("{}"), " 200 ", "{\"ok\":true}");
	proxy_free(q);
	end();
}
