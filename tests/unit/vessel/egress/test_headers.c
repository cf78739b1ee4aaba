/* SPDX-License-Identifier: Apache-2.0 */
#include "common/str.h"
#include "vessel/egress/headers.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

struct bad {
	const struct header_offer offered[3];
};

static int out(const struct header_offer *o, size_t n, struct headers *ret)
{
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;
	int r = headers_out(o, n, ret, &why, &err);

	if (r < 0) {
		cr_assert_eq(why, REASON_HEADER);
		cr_assert_eq(err.id, ERRID_FETCH_REQUEST);
	}
	return r;
}

Test(headers, refuses_what_would_deceive_somebody)
{
	static const struct header_offer bad[][2] = {
		{{"Content-Length", "1"}, {"content-length", "2"}},
		{{"Content-Length", "1"}, {"Content-Length", "1"}},
		{{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}},
		{{"Transfer-Encoding", "chunked"}, {"transfer-encoding", "x"}},
		{{"Accept", "a"}, {"ACCEPT", "b"}},
		{{"X-Unknown", "a"}, {"x-unknown", "b"}},
		{{"Accept", "a\r\nHost: b"}, {"a", "b"}},
		{{"Accept", "a\nb"}, {"a", "b"}},
		{{"Accept", "a\x7f"}, {"a", "b"}},
		{{"Accept", "caf\xc3\xa9"}, {"a", "b"}},
		{{"Accept", "a\tb"}, {"a", "b"}},
		{{"X-Dropped", "a\rb"}, {"a", "b"}},
		{{"", "x"}, {"a", "b"}},
		{{"Accept ", "x"}, {"a", "b"}},
		{{"Acc ept", "x"}, {"a", "b"}},
		{{"Accept:", "x"}, {"a", "b"}},
		{{"Accept\r\nHost", "x"}, {"a", "b"}},
		{{"\xc3\x84", "x"}, {"a", "b"}},
	};
	static struct header_offer many[HEADERS_OFFERED_MAX + 1];
	static char names[HEADERS_OFFERED_MAX + 1][8];
	static char longer[HEADER_VALUE_MAX + 2];
	struct headers h = {NULL, 0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_lt(out(bad[i], 2, &h), 0, "took row %zu", i);
		cr_assert_null(h.h);
	}
	for (size_t i = 0; i <= HEADERS_OFFERED_MAX; i++) {
		cr_assert_eq(str_fmt(names[i], sizeof(names[i]), "x-%zu", i), 0);
		many[i] = (struct header_offer){names[i], "v"};
	}
	cr_assert_lt(out(many, HEADERS_OFFERED_MAX + 1, &h), 0);
	cr_assert_eq(out(many, HEADERS_OFFERED_MAX, &h), 0);
	cr_assert_eq(h.n, 0);
	memset(longer, 'x', sizeof(longer) - 1);
	cr_assert_lt(out(&(struct header_offer){"accept", longer}, 1, &h), 0);
}

Test(headers, drops_what_is_not_a_jobs_to_say)
{
	static const struct header_offer dropped[] = {
		{"Host", "127.0.0.1"},
		{"Authorization", "Bearer x"},
		{"x-api-key", "x"},
		{"api-key", "x"},
		{"Cookie", "a=b"},
		{"Proxy-Authorization", "x"},
		{"Proxy-Connection", "keep-alive"},
		{"Connection", "upgrade"},
		{"Keep-Alive", "1"},
		{"TE", "trailers"},
		{"Trailer", "x"},
		{"Transfer-Encoding", "chunked , x"},
		{"Upgrade", "websocket"},
		{"Expect", "100-continue"},
		{"Forwarded", "for=127.0.0.1"},
		{"X-Forwarded-For", "127.0.0.1"},
		{"X-Forwarded-Host", "127.0.0.1"},
		{"X-Real-IP", "127.0.0.1"},
		{"X-HTTP-Method-Override", "DELETE"},
		{"X-Method-Override", "DELETE"},
		{"Metadata-Flavor", "Google"},
		{"X-aws-ec2-metadata-token", "x"},
		{"X-aws-ec2-metadata-token-ttl-seconds", "1"},
		{"X-Google-Metadata-Request", "True"},
		{"Metadata", "true"},
		{"Accept-Encoding", "gzip"},
		{"Range", "bytes=0-"},
		{"Referer", "x"},
		{"Origin", "x"},
		{"User-Agent", "mine"},
		{"X-Anything", "x"},
		{"openai-organization", "x"},
	};
	cleanup_headers struct headers h = {NULL, 0};

	cr_assert_eq(out(dropped, sizeof(dropped) / sizeof(dropped[0]), &h), 0);
	cr_assert_eq(h.n, 0, "%s went out", h.n ? h.h[0].name : "");
}

Test(headers, what_goes_out)
{
	static const struct header_offer o[] = {
		{"ACCEPT", "  text/html, */* "},
		{"Content-Type", "application/json"},
		{"Anthropic-Version", "2023-06-01"},
		{"OpenAI-Beta", "x"},
		{"Cookie", "x"},
	};
	cleanup_headers struct headers f = {NULL, 0};

	cr_assert_eq(out(o, 5, &f), 0);
	cr_assert_eq(f.n, 2);
	cr_assert_str_eq(f.h[0].name, "accept");
	cr_assert_str_eq(f.h[0].value, "text/html, */*");
	cr_assert_str_eq(headers_get(&f, "Content-Type"), "application/json");
	cr_assert_null(headers_get(&f, "cookie"));
	cr_assert(headers_set(&f, "accept", "x"));
	cr_assert_eq(f.n, 2);
	cr_assert_not(headers_set(&f, "bad name", "x"));
	cr_assert_not(headers_set(&f, "accept", "x\ny"));
}

struct reply {
	char name[32], value[32];
	bool fetch, openai, anthropic;
};

ParameterizedTestParameters(headers, what_comes_back)
{
	static struct reply rows[] = {
		{"Set-Cookie", "a=b", false, false, false},
		{"Location", "https://x/", false, false, false},
		{"Alt-Svc", "h3=x", false, false, false},
		{"Server", "x", false, false, false},
		{"WWW-Authenticate", "Basic", false, false, false},
		{"Proxy-Authenticate", "Basic", false, false, false},
		{"Strict-Transport-Security", "x", false, false, false},
		{"Content-Encoding", "gzip", false, false, false},
		{"Transfer-Encoding", "chunked", false, false, false},
		{"Content-Length", "1", false, false, false},
		{"Link", "<x>", false, false, false},
		{"X-Trace", "x", false, false, false},
		{"x-ratelimit-", "x", false, false, false},
		{"content-type", "a\x01", false, false, false},
		{"content-type", "\xc3\xa9", false, false, false},
		{"content type", "a", false, false, false},
		{"Content-Type", "text/html", true, true, true},
		{"Retry-After", "30", true, true, true},
		{"x-request-id", "abc", true, true, true},
		{"Request-Id", "abc", true, true, true},
		{"retry-after-ms", "5", false, true, true},
		{"X-RateLimit-Remaining-Tokens", "5", false, true, false},
		{"anthropic-ratelimit-tokens-limit", "5", false, false, true},
	};

	return cr_make_param_array(struct reply, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Of a fetch, and of no provider. */
Test(headers, what_clients_keep_by)
{
	static const char *const names[] = {"ETag", "Last-Modified",
					    "Content-Disposition"};
	struct header h;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		static const enum headers_for others[] = {
			HEADERS_OPENAI, HEADERS_ANTHROPIC, HEADERS_GEMINI};

		for (size_t k = 0; k < 3; k++)
			cr_assert_not(headers_back(others[k], names[i], strlen(names[i]),
						   "x", 1, &h));
		cr_assert_not(headers_back(HEADERS_FETCH, names[i], strlen(names[i]),
					   "x\x01", 2, &h));
		cr_assert(headers_back(HEADERS_FETCH, names[i], strlen(names[i]), "x", 1,
				       &h));
	}
}

ParameterizedTest(struct reply *row, headers, what_comes_back)
{
	const bool want[] = {row->fetch, row->openai, row->anthropic};
	static const enum headers_for all[] = {HEADERS_FETCH, HEADERS_OPENAI,
					       HEADERS_ANTHROPIC};

	for (size_t i = 0; i < 3; i++) {
		struct header h;

		cr_assert_eq(headers_back(all[i], row->name, strnlen(row->name, 32),
					  row->value, strlen(row->value), &h),
			     want[i], "%s", row->name);
		/* Google's says nothing more than any server */
		cr_assert_eq(headers_back(HEADERS_GEMINI, row->name,
					  strnlen(row->name, 32), row->value,
					  strlen(row->value), &h),
			     row->fetch, "%s", row->name);
	}
}
