/* SPDX-License-Identifier: Apache-2.0 */
/* What a server says before a push: the first line with no-thin in it, whatever the pieces; else refused. */
#include "common/str.h"
#include "vessel/broker/intents/git_refs.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(git_refs, .timeout = 60);

#define ID "d37e568a7e406c8bb28067d1bee51988c311c1ee"
#define BEGIN "001f# service=git-receive-pack\n0000"
#define REST "003a" ID " refs/heads/b\n0000"

/* In pieces of so many bytes. */
static int feed(const char *data, size_t len, size_t step, struct buf *out,
		struct err *err)
{
	struct git_refs r = {.is_written = false};
	enum reason why = REASON_NONE;
	bool is_refused;

	buf_init(out, 1 << 20);
	*err = (struct err)ERR_INIT;
	for (size_t at = 0; at < len; at += step)
		git_refs_feed(&r, data + at, len - at < step ? len - at : step, out, &why,
			      err);
	git_refs_end(&r, out, &why, err);
	is_refused = err_is_set(err);
	cr_expect(is_refused ? why == REASON_REPLY_TEXT && err->id == ERRID_FETCH_REPLY
			     : why == REASON_NONE);
	git_refs_done(&r);
	return is_refused ? -1 : 0;
}

#define TEXT(s) s, sizeof(s) - 1

Test(git_refs, the_first_line_is_written_anew)
{
	static const struct {
		const char *in;
		size_t in_len;
		const char *out;
		size_t out_len;
	} rows[] = {
		{TEXT(BEGIN "004d" ID " refs/heads/a\0 report-status a=b\n" REST),
		 TEXT(BEGIN "0055" ID
			    " refs/heads/a\0 report-status a=b no-thin\n" REST)},
		{TEXT(BEGIN "000eversion 1\n"
			    "0048" ID " refs/heads/a\0report-status\n0000"),
		 TEXT(BEGIN "000eversion 1\n"
			    "0051" ID " refs/heads/a\0 report-status no-thin\n0000")},
		{TEXT(BEGIN "0090" ID
			    " capabilities^{}\0push-options quiet push-cert=nonce "
			    "no-thin object-format=sha1 delete-refs ofs-delta0000"),
		 TEXT(BEGIN "0075" ID " capabilities^{}\0 quiet object-format=sha1 "
			    "delete-refs ofs-delta no-thin\n0000")},
	};
	struct buf out;
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step <= rows[i].in_len; step++) {
			cr_assert_eq(feed(rows[i].in, rows[i].in_len, step, &out, &err),
				     0, "%zu: %s", i, err.msg);
			cr_expect(out.len == rows[i].out_len &&
					  memcmp(out.data, rows[i].out, out.len) == 0,
				  "%zu, by %zu", i, step);
			buf_done(&out);
		}
}

/* A whole answer with one line, which git shows; nothing of what came. */
static void expect_told(const struct buf *out, const char *why)
{
	char digits[5] = "";
	const char *line = buf_str(out) + strlen(BEGIN);

	cr_assert_gt(out->len, strlen(BEGIN) + 4);
	cr_expect(memcmp(out->data, BEGIN, strlen(BEGIN)) == 0);
	cr_assert_eq(str_fmt(digits, sizeof(digits), "%04zx", out->len - strlen(BEGIN)),
		     0);
	cr_expect(memcmp(line, digits, 4) == 0 &&
			  str_starts(line + 4, "ERR LYCH-FETCH-") && strstr(line, why),
		  "%s", line);
}

Test(git_refs, what_is_no_such_beginning_is_refused)
{
	static const struct {
		const char *in;
		size_t len;
		const char *why;
	} rows[] = {
		{TEXT(""), "ends early"},
		{TEXT("<html>"), "does not begin"},
		{TEXT("001e# service=git-upload-pack\n0000"), "does not begin"},
		{TEXT(BEGIN), "ends early"},
		{TEXT(BEGIN "0000"), "does not begin"},
		{TEXT(BEGIN "zzzz"), "does not begin"},
		{TEXT(BEGIN "fff1x"), "does not begin"},
		{TEXT(BEGIN "0052" ID), "ends early"},
		{TEXT(BEGIN "0010ERR go away\n"), "no first line"},
		{TEXT(BEGIN "003a" ID " refs/heads/b\n"), "no first line"},
		{TEXT(BEGIN "004d" ID " refs/heads/a\0 report-\x01tatus a=b\n"), "none"},
		{TEXT(BEGIN "004d" ID " refs/heads/a\0 object-format=md5\n"), "SHA-1"},
		{TEXT(BEGIN "0078" ID "000000000000000000000000"
			    " capabilities^{}\0report-status object-format=sha256\n"),
		 "SHA-1"},
	};
	struct buf out;
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step <= rows[i].len + 1; step += 7) {
			cr_expect_lt(feed(rows[i].in, rows[i].len, step, &out, &err), 0,
				     "%zu", i);
			cr_expect(strstr(err.msg, rows[i].why), "%zu: %s", i, err.msg);
			expect_told(&out, rows[i].why);
			buf_done(&out);
		}
}
