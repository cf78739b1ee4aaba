/* SPDX-License-Identifier: Apache-2.0 */
/* The body of git-upload-pack: what is none of git's is refused, with the reason. */
#include "common/buf.h"
#include "vessel/gate/git/git.h"
#include "vessel/gate/git/inflate.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

TestSuite(git_fetch, .timeout = 60);

#define ID "d37e568a7e406c8bb28067d1bee51988c311c1ee"
#define ID256 ID "000000000000000000000000"

/* Lines with blanks between: "0000" and "0001" are marks, what begins with '!' stands as it is, '~' is a blank. */
static void write_lines(const char *lines, struct buf *out)
{
	const char *at = lines;

	while (*at) {
		size_t n = strcspn(at, " ");

		if (n == 4 &&
		    (strncmp(at, "0000", 4) == 0 || strncmp(at, "0001", 4) == 0))
			buf_add(out, at, 4);
		else if (*at == '!')
			buf_add(out, at + 1, n - 1);
		else {
			buf_addf(out, "%04zx", n + 4);
			for (size_t i = 0; i < n; i++)
				buf_addc(out, at[i] == '~' ? ' ' : at[i]);
		}
		at += n + (at[n] == ' ');
	}
}

static int read_body(const struct buf *b, struct git_words *w, struct err *err)
{
	*err = (struct err)ERR_INIT;
	return git_read_fetch(b->data, b->len, w, err);
}

static const struct {
	const char *lines, *why;
} refused[] = {
	{"", "no command"},
	{"0000", "no command"},
	{"!000", "ends early"},
	{"!000g", "no number"},
	{"!000A______", "no number"},
	{"!0003", "no line is that long"},
	{"!0004", "no line is that long"},
	{"!0002", "no line is that long"},
	{"!fff1x", "no line is that long"},
	{"!0010short", "ends early"},
	{"hello 0000", "first want"},
	{"command=push 0000", "other than"},
	{"command=object-info 0001 size 0000", "other than"},
	{"command=fetch", "without its end"},
	{"command=fetch 0001", "without its end"},
	{"command=fetch 0001 0001 0000", "without its end"},
	{"command=fetch 0000 0000", "behind its end"},
	{"command=fetch 0001 done 0000 !x", "behind its end"},
	{"command=fetch server-option=secret 0000", "before a command's arguments"},
	{"command=fetch agent= 0000", "before a command's arguments"},
	{"command=fetch agent=two~words 0000", "before a command's arguments"},
	{"command=fetch object-format=md5 0000", "before a command's arguments"},
	{"command=fetch 0001 want~master 0000", "a command's arguments"},
	{"command=fetch 0001 want~" ID "0 0000", "a command's arguments"},
	{"command=fetch 0001 have~D37e568a7e406c8bb28067d1bee51988c311c1ee 0000",
	 "a command's arguments"},
	{"command=fetch 0001 deepen~-1 0000", "a command's arguments"},
	{"command=fetch 0001 deepen~2147483648 0000", "a command's arguments"},
	{"command=fetch 0001 deepen~007 0000", "a command's arguments"},
	{"command=fetch 0001 deepen~ 0000", "a command's arguments"},
	{"command=fetch 0001 deepen-since~9223372036854775808 0000",
	 "a command's arguments"},
	{"command=fetch 0001 deepen-since~99999999999999999999 0000",
	 "a command's arguments"},
	{"command=fetch 0001 packfile-uris~https 0000", "a command's arguments"},
	{"command=fetch 0001 peel 0000", "a command's arguments"},
	{"command=ls-refs 0001 want~" ID " 0000", "a command's arguments"},
	{"command=ls-refs 0001 ref-prefix~ 0000", "a command's arguments"},
	{"want~" ID, "without their end"},
	{"want~" ID " 0001", "without their end"},
	{"want~" ID "~evil 0000", "first want"},
	{"want~" ID "~agent=a~evil 0000", "first want"},
	{"want~" ID "x 0000", "first want"},
	{"want~" ID " want~" ID "~ofs-delta 0000", "what is wanted"},
	{"want~" ID " have~" ID " 0000", "what is wanted"},
	{"want~" ID " 0000 want~" ID, "what is there"},
	{"want~" ID " 0000 secret", "what is there"},
	{"want~" ID " 0000 done 0000", "behind its end"},
};

Test(git_fetch, what_git_does_not_send_is_refused)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct git_words w;
		struct buf b;
		struct err err;

		buf_init(&b, 1 << 17);
		write_lines(refused[i].lines, &b);
		cr_expect_lt(read_body(&b, &w, &err), 0, "%s", refused[i].lines);
		cr_expect(err.id == ERRID_GIT_REQUEST && strstr(err.msg, refused[i].why),
			  "%s: %s", refused[i].lines, err.msg);
		cr_expect_null(w.text.data);
		buf_done(&b);
	}
}

static const struct {
	const char *lines, *text, *ids, *numbers;
} taken[] = {
	{"command=ls-refs 0000", "", "", ""},
	{"command=ls-refs agent=git/2.39.5 object-format=sha1 0001 peel symrefs unborn "
	 "ref-prefix~HEAD ref-prefix~refs/heads/ 0000",
	 "git/2.39.5\nHEAD\nrefs/heads/\n", "", ""},
	{"command=fetch agent=git/2.39.5 object-format=sha256 session-id=x 0001 "
	 "thin-pack "
	 "no-progress include-tag ofs-delta shallow~" ID " deepen~1 deepen-since~99 "
	 "deepen-not~refs/a deepen-relative filter~blob:none want~" ID256 " have~" ID
	 " want-ref~refs/b sideband-all wait-for-done done 0000",
	 "git/2.39.5\nx\nrefs/a\nblob:none\nrefs/b\n", ID ID256 ID, "1\n99\n"},
	/* --unshallow, and the last second that there is */
	{"command=fetch 0001 deepen~2147483647 deepen-since~9223372036854775807 0000", "",
	 "", "2147483647\n9223372036854775807\n"},
	{"want~" ID "~~multi_ack_detailed~no-done~side-band-64k~thin-pack~ofs-delta~"
	 "deepen-since~deepen-not~agent=git/2.39.5 want~" ID " shallow~" ID
	 " deepen~3 filter~tree:0 0000 have~" ID " 0000 have~" ID " done",
	 "git/2.39.5\ntree:0\n", ID ID ID ID ID, "3\n"},
	{"want~" ID " 0000", "", ID, ""},
};

Test(git_fetch, what_git_sends_becomes_words_and_ids)
{
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		struct git_words w;
		struct buf b;
		struct err err;

		buf_init(&b, 1 << 17);
		write_lines(taken[i].lines, &b);
		cr_assert_eq(read_body(&b, &w, &err), 0, "%zu: %s", i, err.msg);
		cr_expect_str_eq(buf_str(&w.text), taken[i].text);
		cr_expect_str_eq(buf_str(&w.ids), taken[i].ids);
		cr_expect_str_eq(buf_str(&w.numbers), taken[i].numbers);
		git_words_done(&w);
		/* every beginning of it is refused, and none reads past its end */
		for (size_t n = 0; n < b.len; n++) {
			char *copy = malloc(n + 1);

			memcpy(copy, b.data, n);
			if (git_read_fetch(copy, n, &w, &err) == 0)
				cr_expect(i == 4 && n > 60, "%zu: %zu bytes", i, n);
			git_words_done(&w);
			free(copy);
		}
		buf_done(&b);
	}
}

static void gzip(const void *data, size_t len, struct buf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
	unsigned char piece[4096];

	cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY),
		     Z_OK);
	for (int r = Z_OK; r == Z_OK;) {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		r = deflate(&z, Z_FINISH);
		buf_add(out, piece, sizeof(piece) - z.avail_out);
	}
	(void)deflateEnd(&z);
}

Test(git_fetch, gzip_is_one_stream_with_a_cap_and_nothing_else)
{
	struct buf plain, packed, bad;
	struct git_words w;
	struct err err;

	buf_init(&plain, 1 << 20);
	buf_init(&packed, 1 << 20);
	buf_init(&bad, 1 << 20);
	write_lines("command=ls-refs 0001 ref-prefix~HEAD 0000", &plain);
	gzip(plain.data, plain.len, &packed);
	cr_assert_eq(read_body(&packed, &w, &err), 0, "%s", err.msg);
	cr_expect_str_eq(buf_str(&w.text), "HEAD\n");
	git_words_done(&w);
	for (size_t n = 3; n < packed.len; n++) {
		struct buf cut = packed;

		cut.len = n;
		cr_expect_lt(read_body(&cut, &w, &err), 0, "%zu bytes of it", n);
	}
	/* each bit counts, but for the time, the extra flags and the system in its head */
	for (size_t i = 0; i < packed.len * 8; i++) {
		if (i / 8 >= 4 && i / 8 < 10)
			continue;
		packed.data[i / 8] = (char)(packed.data[i / 8] ^ 1 << i % 8);
		cr_expect_lt(read_body(&packed, &w, &err), 0, "bit %zu", i);
		packed.data[i / 8] = (char)(packed.data[i / 8] ^ 1 << i % 8);
	}
	buf_add(&bad, packed.data, packed.len);
	buf_add(&bad, packed.data, packed.len);
	cr_expect_lt(read_body(&bad, &w, &err), 0, "two members");
	cr_expect(strstr(err.msg, "behind it"), "%s", err.msg);
	buf_done(&plain);
	buf_done(&packed);
	buf_done(&bad);
}

Test(git_fetch, a_bomb_ends_at_the_cap)
{
	size_t len = GIT_REQUEST_MAX_BYTES + 1;
	char *zeros = calloc(1, len);
	struct buf packed, out;
	struct err err = ERR_INIT;

	buf_init(&packed, 1 << 20);
	gzip(zeros, len, &packed);
	buf_init(&out, GIT_REQUEST_MAX_BYTES);
	cr_expect_lt(git_gunzip(packed.data, packed.len, &out, &err), 0);
	cr_expect(strstr(err.msg, "more than is taken"), "%s", err.msg);
	buf_done(&out);
	buf_done(&packed);
	free(zeros);
}
