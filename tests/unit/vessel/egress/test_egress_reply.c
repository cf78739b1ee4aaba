/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a reply: what is refused, what is dropped, what is kept. */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/reply.h"
#include <criterion/criterion.h>

/* Feeds lines cut at \n; the last answer. */
static int feed(struct egress_reply *r, const char *text, struct err *err)
{
	int got = 0;

	while (*text && got == 0) {
		const char *nl = strchr(text, '\n');
		size_t n = nl ? (size_t)(nl - text) + 1 : strlen(text);

		got = egress_reply_line(r, text, n, err);
		text += n;
	}
	return got;
}

Test(egress_reply, what_is_ambiguous_or_encoded_is_refused)
{
	static const char *const bad[] = {
		"Content-Encoding: gzip\r\n",
		"content-encoding:br\r\n",
		"Content-Encoding: identity, gzip\r\n",
		"Transfer-Encoding: gzip, chunked\r\n",
		"Transfer-Encoding: chunked , x\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Content-Length: 1\r\nContent-Length: 1\r\n",
		"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
		"Content-Length: +1\r\n",
		"Content-Length: 1, 1\r\n",
		"Content-Length:\r\n",
		"Content-Length: 9999999999999999999\r\n",
		"Content-Length : 1\r\n",
		"no colon\r\n",
		": no name\r\n",
		"A: b\r\n folded\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct egress_reply r;
		struct err err = ERR_INIT;

		egress_reply_begin(&r, HEADERS_FETCH);
		cr_assert_eq(feed(&r, "HTTP/1.1 200 OK\r\n", &err), 0);
		cr_expect_eq(feed(&r, bad[i], &err), -1, "%s", bad[i]);
		cr_expect_eq(err.id, ERRID_EGRESS_REPLY);
		egress_reply_done(&r);
	}
}

Test(egress_reply, a_flood_of_1xx_and_an_upgrade_are_refused)
{
	struct egress_reply r;
	struct err err = ERR_INIT;

	egress_reply_begin(&r, HEADERS_FETCH);
	for (unsigned i = 0; i < EGRESS_REPLY_MAX_1XX; i++)
		cr_assert_eq(feed(&r, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n", &err), 0);
	cr_assert_eq(feed(&r, "HTTP/1.1 100 Continue\r\n", &err), -1);
	egress_reply_done(&r);
	egress_reply_begin(&r, HEADERS_FETCH);
	cr_assert_eq(feed(&r, "HTTP/1.1 101 Switching\r\n", &err), -1);
	cr_assert_eq(feed(&r, "HTTP/1.1 600 x\r\n", &err), -1);
	cr_assert_eq(feed(&r, "HTTP/1.1\r\n", &err), -1);
	egress_reply_done(&r);
}

Test(egress_reply, too_large_a_head_is_refused)
{
	struct egress_reply r;
	struct err err = ERR_INIT;
	char *big = xmalloc(EGRESS_REPLY_MAX_BYTES + 10);
	int got = 0;

	memset(big, 'a', EGRESS_REPLY_MAX_BYTES + 9);
	big[1] = ':';
	egress_reply_begin(&r, HEADERS_FETCH);
	cr_assert_eq(feed(&r, "HTTP/1.1 200 OK\r\n", &err), 0);
	cr_assert_eq(egress_reply_line(&r, big, EGRESS_REPLY_MAX_BYTES + 9, &err), -1);
	egress_reply_done(&r);
	egress_reply_begin(&r, HEADERS_FETCH);
	for (unsigned i = 0; got == 0 && i < 10000; i++)
		got = feed(&r, i ? "a: b\r\n" : "HTTP/1.1 200 OK\r\n", &err);
	cr_assert_eq(got, -1);
	egress_reply_done(&r);
	free(big);
}

Test(egress_reply, only_named_fields_are_kept_and_trailers_dropped)
{
	struct egress_reply r;
	struct err err = ERR_INIT;

	egress_reply_begin(&r, HEADERS_OPENAI);
	cr_assert_eq(feed(&r,
			  "HTTP/1.1 103 Early Hints\r\nRetry-After: 99\r\n\r\n"
			  "HTTP/1.1 429 Too Many\r\nContent-Type: application/json\r\n"
			  "Set-Cookie: a=b\r\nServer: x\r\nRetry-After: 7\r\n"
			  "WWW-Authenticate: Basic\r\nLocation: /x\r\n\r\n",
			  &err),
		     1);
	cr_assert_eq(r.status, 429u);
	cr_assert(r.has_retry_after);
	cr_assert_eq(r.retry_after, 7u);
	cr_assert_str_eq(r.location, "/x");
	for (size_t i = 0; i < r.n_kept; i++)
		cr_expect(str_eq(r.kept[i].name, "content-type") ||
				  str_eq(r.kept[i].name, "retry-after"),
			  "%s", r.kept[i].name);
	cr_assert_eq(r.n_kept, 2u);
	cr_assert_eq(feed(&r, "Content-Encoding: gzip\r\nX: y\r\n", &err), 0);
	cr_assert_eq(r.n_kept, 2u);
	egress_reply_done(&r);
}
