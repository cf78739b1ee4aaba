/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths a job's broker serves, under which names, and what it says of the others. */
#include "tests/unit/tomb/broker/proxy_bench.h"
#include "tomb/broker/proxy.h"

#define GET(path) "GET " path " HTTP/1.1\r\n" H BEARER "\r\n"

static void expect_refused(const char *request, const char *status, const char *part)
{
	expect(request, status, part);
	cr_expect_eq(n_asked, 0, "%s", request);
}

/* Without a key, and before a byte of a body: the reason is no secret. */
Test(proxy, what_is_known_and_not_served_says_so)
{
	static const struct {
		const char *path, *instead;
	} posts[] = {
		{"/v1/completions",
		 "POST /v1/chat/completions, with the text as a message"},
		{"/completions", "POST /v1/chat/completions"},
		{"/v1/responses/compact", "nothing is stored at a provider"},
		{"/v1/responses/resp_1/cancel", "nothing is stored at a provider"},
		{"/v1/conversations", "nothing is stored at a provider"},
		{"/responses/resp_1/cancel", "nothing is stored at a provider"},
		{"/conversations/c_1/items", "nothing is stored at a provider"},
		{"/files", "files, batches, pictures and sounds"},
		{"/v1/files", "files, batches, pictures and sounds"},
		{"/v1/uploads/u_1/parts", "files, batches, pictures and sounds"},
		{"/vector_stores", "files, batches, pictures and sounds"},
		{"/v1/batches/b_1/cancel", "files, batches, pictures and sounds"},
		{"/images/generations", "files, batches, pictures and sounds"},
		{"/v1/messages/batches", "files, batches, pictures and sounds"},
		{"/v1/audio/speech", "files, batches, pictures and sounds"},
		{"/v1beta/files", "this part of Gemini's API"},
		{"/v1beta/cachedContents", "this part of Gemini's API"},
		{"/v1alpha/models/g:generateContent", "/v1beta/models/MODEL"},
		{"/v1beta1/publishers/google/models/g:generateContent", "Vertex AI"},
		{"/upload/v1beta/files", "files, batches"},
		{"/api/chat", "Ollama's own API; its server has OpenAI's too"},
		{"/api/generate", "Ollama's own API"},
	};
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	for (size_t i = 0; i < ARRAY_SIZE(posts); i++) {
		expect_refused(post(posts[i].path, "", "{}"), " 400 ", posts[i].instead);
		expect_refused(post(posts[i].path, "", "{}"), " 400 ", "LYCH-BROKER-009");
	}
	expect_refused("GET /api/tags HTTP/1.1\r\n" H "\r\n", " 400 ",
		       "Ollama's own API");
	expect_refused(GET("/v1/responses/resp_1"), " 400 ", "nothing is stored");
	/* in the words of the path's dialect */
	expect_refused(post("/v1/completions", "", "{}"), " 400 ",
		       "{\"error\":{\"message\":\"LYCH-BROKER-009");
	expect_refused(
		post("/v1/messages/batches", "", "{}"), " 400 ",
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\"");
	expect_refused(post("/api/chat", "", "{}"), " 400 ",
		       "{\"error\":\"LYCH-BROKER-009");
	proxy_free(p);
	end();
}

/* By each method that its clients have for it. */
Test(proxy, what_is_not_served_is_so_with_any_query_and_by_delete)
{
	static const char *const deleted[] = {
		"/v1/responses/resp_1",	   "/responses/resp_1",
		"/v1/conversations/c_1",   "/v1/files/file_1",
		"/files/file_1",	   "/vector_stores/vs_1/files/f_1",
		"/v1/messages/batches/b_1"};
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect_refused(GET("/v1/responses/resp_1?stream=true"), " 400 ",
		       "nothing is stored");
	expect_refused(GET("/files?limit=2&purpose=batch"), " 400 ",
		       "files, batches, pictures and sounds");
	for (size_t i = 0; i < ARRAY_SIZE(deleted); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text),
			       "DELETE %s HTTP/1.1\r\n" H BEARER "\r\n", deleted[i]);
		expect_refused(text, " 400 ", "LYCH-BROKER-009");
	}
	/* what is served has its methods */
	expect_refused("DELETE /v1/chat/completions HTTP/1.1\r\n" H BEARER "\r\n",
		       " 405 ", "LYCH-HTTP-003");
	proxy_free(p);
	end();
}

Test(proxy, a_websocket_is_refused_at_once_with_the_way_that_is_there)
{
	static const char upgrade[] =
		"GET /v1/responses HTTP/1.1\r\n" H BEARER
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
		"13\r\n"
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect_refused(upgrade, "HTTP/1.1 426 Upgrade Required\r\n",
		       "\"code\":\"LYCH-HTTP-010\"");
	expect_refused(upgrade, "Upgrade: HTTP/1.1\r\n", "POST to the same path");
	expect_refused(GET("/v1/responses"), " 400 ", "LYCH-BROKER-009");
	proxy_free(p);
	end();
}

static void expect_intent(const char *path, const char *intent)
{
	expect(post(path, BEARER, "{}"), " 200 ", "{\"ok\":true}");
	cr_expect_str_eq(seen_path, "/work/v1/ask");
	cr_expect(strstr(seen_body, intent), "%s: %s", path, seen_body);
}

Test(proxy, each_api_is_there_with_its_version_and_without)
{
	static const struct {
		const char *path, *intent;
	} apis[] = {
		{"/chat/completions", "\"dialect\":\"openai\",\"stream\""},
		{"/responses", "\"dialect\":\"openai\",\"api\":\"responses\",\"stream\""},
		{"/embeddings",
		 "\"dialect\":\"openai\",\"api\":\"embeddings\",\"stream\""},
		{"/messages", "\"dialect\":\"anthropic\",\"stream\""},
		{"/messages/count_tokens",
		 "\"dialect\":\"anthropic\",\"api\":\"count_tokens\",\"stream\""},
	};
	struct proxy_config cfg;
	struct proxy *p;
	char path[64];

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	for (size_t i = 0; i < ARRAY_SIZE(apis); i++) {
		cr_assert(str_fmt(path, sizeof(path), "/v1%s", apis[i].path) == 0);
		expect(post(path, "", "{}"), " 401 ", "LYCH-BROKER-020");
		expect_intent(path, apis[i].intent);
		expect_intent(apis[i].path, apis[i].intent);
	}
	expect(post("/v1/messages/count_tokens",
		    BEARER "anthropic-beta: token-counting-2024-11-01\r\n", "{}"),
	       " 200 ", "{\"ok\":true}");
	cr_expect(strstr(seen_body, "\"beta\":\"token-counting-2024-11-01\""));
	proxy_free(p);
	end();
}

#define GOOG "x-goog-api-key: " KEY "\r\n"
#define G "/v1beta/models/g-1.5"

Test(proxy, gemini_is_asked_by_its_path)
{
	static const struct {
		const char *path, *intent;
	} asked[] = {
		{G ":generateContent", "\"api\":\"generate\",\"stream\":false,\"model\":"
				       "\"g-1.5\",\"request\":{\"stream\":true}"},
		{G ":generateContent?alt=json", "\"stream\":false"},
		{"/models/g-1.5:generateContent", "\"model\":\"g-1.5\""},
		{G ":streamGenerateContent?alt=sse",
		 "\"api\":\"generate\",\"stream\":true,\"model\":\"g-1.5\""},
		{G ":countTokens", "\"api\":\"count_tokens\",\"stream\":false"},
		{"/v1beta/models/a%2Fb:x:countTokens", "\"model\":\"a/b:x\""},
	};
	static const struct {
		const char *path, *code, *part;
	} bad[] = {
		{G ":streamGenerateContent", "LYCH-BROKER-009", "alt=sse"},
		{G ":streamGenerateContent?alt=json", "LYCH-BROKER-009", "alt=sse"},
		{G ":generateContent?alt=sse", "LYCH-BROKER-002", "alt=sse"},
		{G ":embedContent", "LYCH-BROKER-009", "'embedContent'"},
		{G, "LYCH-BROKER-009", "countTokens"},
		{"/v1beta/models/:generateContent", "LYCH-BROKER-002", "no model"},
		{G ":generateContent?x=1", "LYCH-HTTP-007", "unknown parameter x"},
	};
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect_refused(post(G ":generateContent?key=" KEY, "", "{}"), " 401 ",
		       "in the URL it is not taken");
	expect_refused(post(G ":generateContent", "x-goog-api-key: AIza\r\n", "{}"),
		       " 401 ", "{\"error\":{\"code\":401,\"message\":\"LYCH-BROKER-020");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		expect_refused(post(bad[i].path, GOOG, "{}"), " 400 ", bad[i].code);
		expect_refused(post(bad[i].path, GOOG, "{}"), " 400 ", bad[i].part);
		expect_refused(post(bad[i].path, GOOG, "{}"), " 400 ",
			       "\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"@type\":"
			       "\"type.googleapis.com/google.rpc.ErrorInfo\"");
	}
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		expect(post(asked[i].path, GOOG, "{\"stream\":true}"), " 200 ",
		       "{\"ok\":true}");
		cr_expect_str_eq(seen_path, "/work/v1/ask");
		cr_expect(strstr(seen_body, "\"dialect\":\"gemini\""), "%s", seen_body);
		cr_expect(strstr(seen_body, asked[i].intent), "%s: %s", asked[i].path,
			  seen_body);
	}
	proxy_free(p);
	end();
}

Test(proxy, models_and_one_of_them)
{
	static const struct {
		const char *request, *seen;
	} rows[] = {
		{GET("/v1/models"), "/work/v1/models?openai"},
		{GET("/v1/models?client_version=0.169.0"), "/work/v1/models?openai"},
		{GET("/models"), "/work/v1/models?openai"},
		{GET("/v1/models/m-1.5"), "/work/v1/models?openai m-1.5"},
		{GET("/models/vendor%2Fbig-1.5:free"),
		 "/work/v1/models?openai vendor/big-1.5:free"},
		{GET("/v1/models/a%26dialect=x%20%C3%BC"),
		 "/work/v1/models?openai a&dialect=x \xc3\xbc"},
		{"GET /v1/models/m HTTP/1.1\r\n" H
		 "anthropic-version: 2023-06-01\r\nX-Api-Key: " KEY "\r\n\r\n",
		 "/work/v1/models?anthropic m"},
		{"GET /v1beta/models?pageSize=5 HTTP/1.1\r\n" H GOOG "\r\n",
		 "/work/v1/models?gemini"},
		{"GET /v1beta/models/g HTTP/1.1\r\n" H GOOG
		 "anthropic-version: 2023-06-01\r\n\r\n",
		 "/work/v1/models?gemini g"},
	};
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	expect(GET("/v1/models?x=1"), " 400 ", "LYCH-HTTP-007");
	expect("GET /v1/models/m HTTP/1.1\r\n" H "\r\n", " 401 ", "LYCH-BROKER-020");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		expect(rows[i].request, " 200 ", "{\"ok\":true}");
		cr_expect_str_eq(seen_path, rows[i].seen);
	}
	proxy_free(p);
	end();
}

/* Agents say "wrong key" of a 403, and end. */
Test(proxy, what_the_rules_refuse_is_a_400_for_an_sdk)
{
	struct proxy_config cfg;
	struct proxy *p;

	begin();
	cfg = config(7);
	p = serve(&cfg, &addr);
	mood = FORBID;
	expect(post("/v1/responses", BEARER, "{}"), " 400 ",
	       "\"type\":\"invalid_request_error\",\"param\":null,"
	       "\"code\":\"LYCH-BROKER-003\"");
	expect(post("/v1/messages", BEARER, "{}"), " 400 ", "LYCH-BROKER-003");
	expect("GET /fetch?url=https://a.example/ HTTP/1.1\r\n" H "\r\n", " 403 ",
	       "LYCH-BROKER-003");
	/* Anthropic's SDK sends the whole conversation when it reads this */
	mood = UNTHREAD;
	expect(post("/v1/messages", BEARER, "{}"), " 400 ",
	       "\"code\":\"LYCH-BROKER-010\",\"details\":{\"error_code\":"
	       "\"thread_unsupported_request\",\"unsupported\":[\"thread\"]}");
	proxy_free(p);
	end();
}
