/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/fetch.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#define BODY_MAX 16

static int read_intent(const char *text, struct fetch *f, enum reason *why,
		       struct err *err)
{
	cleanup_json struct json *j = NULL;

	cr_assert_eq(json_parse(text, strlen(text), JSON_DEPTH_DEFAULT, &j, err), 0, "%s",
		     err->msg);
	return fetch_read(j, BODY_MAX, f, why, err);
}

struct bad {
	enum reason why;
	char json[200];
};

ParameterizedTestParameters(fetch, refuses)
{
	static struct bad rows[] = {
		{REASON_NONE, "{\"method\":\"GET\"}"},
		{REASON_NONE, "{\"url\":\"https://a.example/\"}"},
		{REASON_NONE,
		 "{\"method\":\"GET\",\"url\":\"https://a.example/\",\"x\":1}"},
		{REASON_NONE, "{\"method\":\"GET\",\"url\":\"https://a.example/"
			      "\",\"headers\":[[\"a\"]]}"},
		{REASON_NONE, "{\"method\":\"GET\",\"url\":\"https://a.example/"
			      "\",\"headers\":[\"a\"]}"},
		{REASON_NONE, "{\"method\":\"GET\",\"url\":\"https://a.example/"
			      "\",\"headers\":[[\"a\",1]]}"},
		{REASON_NONE,
		 "{\"method\":\"POST\",\"url\":\"https://a.example/\",\"body\":\"a=\"}"},
		{REASON_SCHEME, "{\"method\":\"GET\",\"url\":\"file:///etc/passwd\"}"},
		{REASON_USERINFO,
		 "{\"method\":\"GET\",\"url\":\"https://x@a.example/\"}"},
		{REASON_METHOD, "{\"method\":\"TRACE\",\"url\":\"https://a.example/\"}"},
		{REASON_METHOD,
		 "{\"method\":\"CONNECT\",\"url\":\"https://a.example/\"}"},
		{REASON_METHOD, "{\"method\":\"get\",\"url\":\"https://a.example/\"}"},
		{REASON_METHOD,
		 "{\"method\":\"GET\",\"url\":\"https://a.example/\",\"body\":\"YQ==\"}"},
		{REASON_METHOD, "{\"method\":\"HEAD\",\"url\":\"https://a.example/"
				"\",\"body\":\"YQ==\"}"},
		{REASON_HEADER, "{\"method\":\"GET\",\"url\":\"https://a.example/\","
				"\"headers\":[[\"a\\r\\nHost\",\"b\"]]}"},
		{REASON_HEADER, "{\"method\":\"GET\",\"url\":\"https://a.example/\","
				"\"headers\":[[\"Accept\",\"b\\r\\nHost: c\"]]}"},
		{REASON_HEADER,
		 "{\"method\":\"POST\",\"url\":\"https://a.example/\",\"headers\":"
		 "[[\"Content-Length\",\"1\"],[\"Transfer-Encoding\",\"chunked\"]]}"},
		/* 17 and 40 bytes where 16 are allowed */
		{REASON_BODY_TOO_LARGE,
		 "{\"method\":\"POST\",\"url\":\"https://a.example/\","
		 "\"body\":\"MDEyMzQ1Njc4OWFiY2RlZmc=\"}"},
		{REASON_BODY_TOO_LARGE,
		 "{\"method\":\"POST\",\"url\":\"https://a.example/\",\"body\":"
		 "\"MDEyMzQ1Njc4OWFiY2RlZmcwMTIzNDU2Nzg5YWJjZGVmZzAxMjM0NQ==\"}"},
	};

	return cr_make_param_array(struct bad, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct bad *row, fetch, refuses)
{
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;
	struct fetch f = {.redirects = 77};

	cr_assert_lt(read_intent(row->json, &f, &why, &err), 0, "took %s", row->json);
	cr_assert_str_eq(reason_word(why), reason_word(row->why), "%s: %s", row->json,
			 err.msg);
	cr_assert_eq(f.redirects, 77);
	cr_assert(err_is_set(&err));
}

static void make(struct fetch *f, enum fetch_method m, const char *url)
{
	*f = (struct fetch){.method = m};
	cr_assert_eq(url_parse(url, strlen(url), &f->url, NULL, NULL), 0);
	if (m == FETCH_GET || m == FETCH_HEAD)
		return;
	cr_assert(headers_set(&f->headers, "content-type", "text/plain"));
	cr_assert(headers_set(&f->headers, "accept", "*/*"));
	f->body = xstrdup("body");
	f->body_len = 4;
}

Test(fetch, takes_an_intent)
{
	cleanup_fetch struct fetch f = {.redirects = 77};
	cleanup_buf struct buf b;
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;

	buf_init(&b, URL_BYTES_MAX);
	cr_assert_eq(
		read_intent(
			"{\"seq\":1,\"method\":\"POST\",\"url\":\"https://a.example?x\","
			"\"headers\":[[\"Cookie\",\"a\"],[\"ACCEPT\",\"text/html\"],"
			"[\"Host\",\"127.0.0.1\"]],\"body\":\"YWJj\"}",
			&f, &why, &err),
		0, "%s", err.msg);
	cr_assert_eq(f.method, FETCH_POST);
	cr_assert_eq(f.body_len, 3);
	cr_assert_str_eq(f.body, "abc");
	cr_assert_eq(f.headers.n, 2);
	cr_assert_str_eq(headers_get(&f.headers, "content-type"),
			 "application/octet-stream");
	cr_assert_eq(f.redirects, 0);
	fetch_target(&f, &b);
	cr_assert_str_eq(buf_str(&b), "https://a.example/?x");
}

Test(fetch, takes_what_changes_something)
{
	static const struct {
		const char *json;
		enum fetch_method method;
		const char *type; /* that goes out; NULL: none */
	} rows[] = {
		{"{\"method\":\"PUT\",\"url\":\"https://a.example/\",\"body\":\"YQ==\"}",
		 FETCH_PUT, "application/octet-stream"},
		{"{\"method\":\"PATCH\",\"url\":\"https://a.example/\",\"body\":\"YQ==\","
		 "\"headers\":[[\"content-type\",\"text/plain\"]]}",
		 FETCH_PATCH, "text/plain"},
		{"{\"method\":\"DELETE\",\"url\":\"https://a.example/\"}", FETCH_DELETE,
		 NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_fetch struct fetch f = {.body = NULL};
		struct err err = ERR_INIT;
		enum reason why = REASON_NONE;
		const char *type;

		cr_assert_eq(read_intent(rows[i].json, &f, &why, &err), 0, "%s", err.msg);
		cr_expect_eq(f.method, rows[i].method);
		type = headers_get(&f.headers, "content-type");
		cr_expect(str_eq(type, rows[i].type), "%zu: %s", i, type ? type : "-");
	}
}

struct hop {
	enum fetch_method method, then;
	unsigned status;
	int result;
	enum reason why;
	bool left, body;
	char location[64];
};

ParameterizedTestParameters(fetch, redirects)
{
	static struct hop rows[] = {
		/* 302 to a private address: the next request, which the ward refuses */
		{FETCH_GET, FETCH_GET, 302, 1, REASON_NONE, true, false,
		 "https://127.0.0.1/"},
		{FETCH_GET, FETCH_GET, 302, 1, REASON_NONE, false, false, "/next"},
		{FETCH_HEAD, FETCH_HEAD, 301, 1, REASON_NONE, false, false, "/next"},
		{FETCH_GET, FETCH_GET, 302, 1, REASON_NONE, true, false,
		 "https://a.example:444/"},
		{FETCH_GET, FETCH_GET, 302, 1, REASON_NONE, true, false,
		 "http://a.example/"},
		{FETCH_POST, FETCH_GET, 301, 1, REASON_NONE, false, false, "/next"},
		{FETCH_POST, FETCH_GET, 303, 1, REASON_NONE, true, false,
		 "https://b.example/"},
		{FETCH_POST, FETCH_POST, 307, 1, REASON_NONE, false, true, "/next"},
		{FETCH_POST, FETCH_POST, 308, 1, REASON_NONE, false, true, "/next"},
		{FETCH_POST, FETCH_POST, 307, -1, REASON_REDIRECT_METHOD, false, true,
		 "https://b.example/"},
		{FETCH_POST, FETCH_POST, 308, -1, REASON_REDIRECT_METHOD, false, true,
		 "https://a.example:444/"},
		/* what may have changed something is sent on nowhere */
		{FETCH_PUT, FETCH_PUT, 307, -1, REASON_REDIRECT_METHOD, false, true,
		 "/next"},
		{FETCH_PUT, FETCH_PUT, 303, -1, REASON_REDIRECT_METHOD, false, true,
		 "/next"},
		{FETCH_PATCH, FETCH_PATCH, 302, -1, REASON_REDIRECT_METHOD, false, true,
		 "https://b.example/"},
		{FETCH_DELETE, FETCH_DELETE, 301, -1, REASON_REDIRECT_METHOD, false, true,
		 "/next"},
		{FETCH_DELETE, FETCH_DELETE, 200, 0, REASON_NONE, false, true, "/next"},
		{FETCH_GET, FETCH_GET, 302, -1, REASON_REDIRECT_LOCATION, false, false,
		 "//127.0.0.1/"},
		{FETCH_GET, FETCH_GET, 302, -1, REASON_REDIRECT_LOCATION, false, false,
		 "\\\\127.0.0.1"},
		{FETCH_GET, FETCH_GET, 302, -1, REASON_REDIRECT_LOCATION, false, false,
		 "/x\r\nSet-Cookie: y"},
		{FETCH_GET, FETCH_GET, 302, -1, REASON_SCHEME, false, false,
		 "file:///etc/passwd"},
		{FETCH_GET, FETCH_GET, 302, -1, REASON_USERINFO, false, false,
		 "https://a@b.example/"},
		{FETCH_GET, FETCH_GET, 300, 0, REASON_NONE, false, false, "/next"},
		{FETCH_GET, FETCH_GET, 304, 0, REASON_NONE, false, false, "/next"},
		{FETCH_GET, FETCH_GET, 200, 0, REASON_NONE, false, false, "/next"},
		{FETCH_GET, FETCH_GET, 401, 0, REASON_NONE, false, false, "/next"},
	};

	return cr_make_param_array(struct hop, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct hop *row, fetch, redirects)
{
	cleanup_fetch struct fetch f = {.body = NULL};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;
	int r;

	make(&f, row->method, "https://a.example/dir/");
	r = fetch_redirect(&f, row->status, row->location, &why, &err);
	cr_assert_eq(r, row->result, "%u %s: %s", row->status, row->location, err.msg);
	cr_assert_str_eq(reason_word(why), reason_word(row->why));
	cr_assert_eq(f.redirects, r == 1 ? 1 : 0);
	cr_assert_eq(f.method, row->then);
	cr_assert_eq(f.left_origin, row->left);
	cr_assert_eq(f.body != NULL, row->body);
	if (row->method == FETCH_POST && !row->body)
		cr_assert_null(headers_get(&f.headers, "content-type"));
}

Test(fetch, three_redirects_and_no_more)
{
	cleanup_fetch struct fetch f = {.body = NULL};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;

	make(&f, FETCH_GET, "https://a.example/");
	for (unsigned i = 0; i < FETCH_REDIRECTS_MAX; i++)
		cr_assert_eq(fetch_redirect(&f, 302, "/x", &why, &err), 1);
	cr_assert_lt(fetch_redirect(&f, 302, "/x", &why, &err), 0);
	cr_assert_eq(why, REASON_REDIRECT_LIMIT);
	cr_assert_eq(err.id, ERRID_FETCH_REDIRECT);
	/* Away and back: the credential stays away. */
	f.redirects = 0;
	cr_assert_eq(fetch_redirect(&f, 302, "https://b.example/", &why, &err), 1);
	cr_assert_eq(fetch_redirect(&f, 302, "https://a.example/", &why, &err), 1);
	cr_assert(f.left_origin);
	cr_assert_eq(fetch_redirect(&f, 302, NULL, &why, &err), 0);
}

/* ---- replies ---- */

struct type {
	bool taken;
	char value[64], back[64];
};

ParameterizedTestParameters(fetch, types)
{
	static struct type rows[] = {
		{false, "image/png", ""},
		{false, "application/octet-stream", ""},
		{false, "application/zip", ""},
		{false, "application/pdf", ""},
		{false, "multipart/form-data; boundary=x", ""},
		{false, "text", ""},
		{false, "text/", ""},
		{false, "/html", ""},
		{false, "text/html/x", ""},
		{false, "", ""},
		{false, "te xt/html", ""},
		{false, "text/html; charset=utf-16", ""},
		{false, "text/html; charset=utf-7", ""},
		{false, "text/html; charset=shift_jis", ""},
		{false, "application/jsonx", ""},
		{false, "text/\"x\"", ""},
		{true, "text/html", "text/html; charset=utf-8"},
		{true, "Text/HTML; charset=\"UTF-8\"", "text/html; charset=utf-8"},
		{true, "text/plain;charset=ISO-8859-1", "text/plain; charset=utf-8"},
		{true, "application/json", "application/json; charset=utf-8"},
		{true, "application/vnd.api+json; x=y",
		 "application/vnd.api+json; charset=utf-8"},
		{true, "application/atom+xml", "application/atom+xml; charset=utf-8"},
		{true, "text/event-stream", "text/event-stream; charset=utf-8"},
	};

	return cr_make_param_array(struct type, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct type *row, fetch, types)
{
	cleanup_fetch_reply struct fetch_reply r = {.n_held = 0};
	const struct header_offer fields[] = {{"Content-Type", row->value},
					      {"Set-Cookie", "a=b"},
					      {"Retry-After", "3"},
					      {"WWW-Authenticate", "Basic"}};
	struct fetch f = {.method = FETCH_GET};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;

	if (!row->taken) {
		cr_assert_lt(fetch_reply_begin(&r, &f, 500, fields, 4, &why, &err), 0,
			     "took %s", row->value);
		cr_assert_eq(why, REASON_REPLY_TYPE);
		return;
	}
	cr_assert_eq(fetch_reply_begin(&r, &f, 500, fields, 4, &why, &err), 0, "%s",
		     err.msg);
	cr_assert_str_eq(headers_get(&r.headers, "content-type"), row->back);
	cr_assert_eq(r.headers.n, 2);
}

static int feed(const char *type, const void *data, size_t len, size_t step,
		struct buf *out)
{
	cleanup_fetch_reply struct fetch_reply r = {.n_held = 0};
	const struct header_offer field = {"content-type", type};
	struct fetch f = {.method = FETCH_GET};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;

	buf_reset(out);
	cr_assert_eq(fetch_reply_begin(&r, &f, 200, &field, 1, &why, &err), 0);
	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;

		if (fetch_reply_text(&r, (const char *)data + at, n, out, &why, &err) <
		    0) {
			cr_assert_eq(why, REASON_REPLY_TEXT);
			return -1;
		}
	}
	return fetch_reply_end(&r, &why, &err);
}

Test(fetch, only_text_goes_back)
{
	static const struct {
		const char *data;
		size_t len;
	} bad[] = {
		{"a\0b", 3},
		{"a\xff", 2},
		{"\xc0\x80", 2},
		{"\xed\xa0\x80", 3},
		{"\xf4\x90\x80\x80", 4},
		{"\xe2\x82", 2},
		{"\xe2\x82x", 3},
		{"\x80", 1},
		{"abc\xf0\x9f\x98", 6},
		{"\xf0\x9f\x98zzzz", 7},
	};
	static const char good[] = "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 end";
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	for (size_t step = 1; step <= 8; step++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			cr_assert_lt(
				feed("text/plain", bad[i].data, bad[i].len, step, &out),
				0, "row %zu by %zu", i, step);
		cr_assert_eq(feed("text/plain", good, sizeof(good) - 1, step, &out), 0);
		cr_assert_str_eq(buf_str(&out), good);
		cr_assert_eq(
			feed("text/plain; charset=latin1", "caf\xe9\xff", 5, step, &out),
			0);
		cr_assert_str_eq(buf_str(&out), "caf\xc3\xa9\xc3\xbf");
	}
}

/* By a rule with replies: binary. */
Test(fetch, any_bytes_go_back_as_they_are)
{
	static const struct {
		const char *type, *back;
	} types[] = {
		{NULL, "application/octet-stream"},
		{"", "application/octet-stream"},
		{"zip", "application/octet-stream"},
		{"te xt/html", "application/octet-stream"},
		{"application/zip", "application/zip"},
		{"Image/PNG; x=\"y\"", "Image/PNG; x=\"y\""},
		{"text/html; charset=shift_jis", "text/html; charset=shift_jis"},
		{"application/x-git-upload-pack-result",
		 "application/x-git-upload-pack-result"},
	};
	unsigned char all[512];
	struct fetch f = {.method = FETCH_GET};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;
	cleanup_buf struct buf out;

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)(255 - i);
	buf_init(&out, sizeof(all));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		cleanup_fetch_reply struct fetch_reply r = {.any_bytes = true};
		const struct header_offer field = {"Content-Type", types[i].type};

		cr_assert_eq(fetch_reply_begin(&r, &f, 200, &field, types[i].type != NULL,
					       &why, &err),
			     0, "%s", err.msg);
		cr_assert_str_eq(headers_get(&r.headers, "content-type"), types[i].back);
		buf_reset(&out);
		for (size_t at = 0; at < sizeof(all); at += 64)
			cr_assert_eq(fetch_reply_text(&r, all + at, 64, &out, &why, &err),
				     0);
		cr_assert_eq(fetch_reply_end(&r, &why, &err), 0);
		cr_assert(out.len == sizeof(all) && memcmp(out.data, all, out.len) == 0);
	}
	{
		/* two types are still one too many, and where no body may be there is none */
		const struct header_offer two[] = {{"Content-Type", "image/png"},
						   {"content-type", "image/gif"}};
		cleanup_fetch_reply struct fetch_reply r = {.any_bytes = true},
						       none = {.any_bytes = true};

		cr_assert_lt(fetch_reply_begin(&r, &f, 200, two, 2, &why, &err), 0);
		cr_assert_eq(why, REASON_REPLY_HEADERS);
		cr_assert_eq(fetch_reply_begin(&none, &f, 204, two, 1, &why, &err), 0);
		cr_assert_lt(fetch_reply_text(&none, "x", 1, &out, &why, &err), 0);
	}
}

Test(fetch, replies_without_a_body)
{
	const struct header_offer png = {"Content-Type", "image/png; x=\"y\""};
	const struct header_offer two[] = {{"Content-Type", "text/html"},
					   {"content-type", "image/png"}};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;
	cleanup_buf struct buf out;

	buf_init(&out, 10);
	for (unsigned i = 0; i < 3; i++) {
		cleanup_fetch_reply struct fetch_reply r = {.n_held = 0};
		struct fetch f = {.method = i == 0 ? FETCH_HEAD : FETCH_GET};

		cr_assert_eq(fetch_reply_begin(&r, &f,
					       i == 0	? 200
					       : i == 1 ? 204
							: 304,
					       &png, 1, &why, &err),
			     0);
		cr_assert_str_eq(headers_get(&r.headers, "content-type"), "image/png");
		cr_assert_lt(fetch_reply_text(&r, "x", 1, &out, &why, &err), 0);
		cr_assert_eq(fetch_reply_end(&r, &why, &err), 0);
	}
	{
		cleanup_fetch_reply struct fetch_reply r = {.n_held = 0};
		struct fetch f = {.method = FETCH_GET};

		cr_assert_lt(fetch_reply_begin(&r, &f, 200, two, 2, &why, &err), 0);
		cr_assert_eq(why, REASON_REPLY_HEADERS);
	}
}
