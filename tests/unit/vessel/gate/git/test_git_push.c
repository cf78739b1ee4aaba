/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a push, before its pack: what is none of git's is refused, with the reason. */
#include "vessel/gate/git/git.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

TestSuite(git_push, .timeout = 60);

#define A "d37e568a7e406c8bb28067d1bee51988c311c1ee"
#define ZERO "0000000000000000000000000000000000000000"
#define MAKE ZERO " " A " refs/heads/a"
#define DROP A " " ZERO " refs/heads/a"

/* *caps NULL: none. tail: behind the flush; NULL: not even that. */
struct row {
	const char *line, *caps, *next, *tail, *says;
};

static void write_line(struct buf *b, const char *line, const char *caps)
{
	size_t n = strlen(line) + (caps ? strlen(caps) + 1 : 0);

	buf_addf(b, "%04zx%s", n + 4, line);
	if (caps) {
		buf_addc(b, '\0');
		buf_adds(b, caps);
	}
}

static int read_row(const struct row *row, struct git_words *w, const void **pack,
		    size_t *n, struct buf *b, struct err *err)
{
	buf_init(b, 1 << 16);
	*err = (struct err)ERR_INIT;
	if (row->line)
		write_line(b, row->line, row->caps);
	if (row->next)
		write_line(b, row->next, NULL);
	if (row->tail)
		buf_addf(b, "0000%s", row->tail);
	return git_read_push(b->data, b->len, w, pack, n, err);
}

static const struct row refused[] = {
	{NULL, NULL, NULL, NULL, "commands without their end"},
	{NULL, NULL, NULL, "PACK", "a pack that no command needs"},
	{"hello", NULL, NULL, "", "no command"},
	{MAKE, NULL, NULL, NULL, "without their end"},
	{ZERO " " A, NULL, NULL, "", "no command"},
	{ZERO " " A " ", NULL, NULL, "", "no command"},
	{ZERO " " A " two words", NULL, NULL, "", "no command"},
	{ZERO " master refs/heads/a", NULL, NULL, "", "no command"},
	{ZERO ZERO " " A " refs/heads/a", NULL, NULL, "", "no command"},
	{DROP, NULL, NULL, "PACK", "a pack that no command needs"},
	{MAKE, " push-options", NULL, "", "capability"},
	{MAKE, " object-format=sha256", NULL, "", "capability"},
	{MAKE, " secret", NULL, "", "capability"},
	{MAKE, " agent=", NULL, "", "capability"},
	{"push-cert", " report-status", NULL, "", "no command"},
	{MAKE, " report-status", "shallow " A, "", "no command"},
	{MAKE, " report-status", "hello", "", "no command"},
};

Test(git_push, what_git_does_not_send_is_refused)
{
	struct git_words w;
	const void *pack;
	struct buf b;
	struct err err;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		cr_expect_lt(read_row(&refused[i], &w, &pack, &n, &b, &err), 0, "%zu", i);
		cr_expect(err.id == ERRID_GIT_REQUEST && strstr(err.msg, refused[i].says),
			  "%zu: %s", i, err.msg);
		buf_done(&b);
	}
}

Test(git_push, commands_become_words_and_ids_and_the_pack_is_what_is_left)
{
	static const struct row rows[] = {
		{NULL, NULL, NULL, "", ""},
		{DROP, " report-status", NULL, "", "refs/heads/a\nreport-status\n"},
		{MAKE,
		 " report-status-v2 side-band-64k atomic object-format=sha1 agent=git/2",
		 A " " A " refs/tags/t", "PACK",
		 "refs/heads/a\nreport-status-v2\nside-band-64k\natomic\n"
		 "object-format=sha1\nagent=git/2\nrefs/tags/t\n"},
		{"shallow " A, NULL, MAKE, "PACK", "refs/heads/a\n"},
	};
	struct git_words w;
	const void *pack;
	struct buf b;
	struct err err;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cr_assert_eq(read_row(&rows[i], &w, &pack, &n, &b, &err), 0, "%zu: %s", i,
			     err.msg);
		cr_expect_str_eq(buf_str(&w.text), rows[i].says);
		cr_expect_eq(w.ids.len % 40, 0);
		if (i < 2)
			cr_expect(!pack && n == 0);
		else
			cr_expect(pack && n == 4 && memcmp(pack, "PACK", 4) == 0);
		git_words_done(&w);
		buf_done(&b);
	}
}

/* Not git itself, but other clients. */
Test(git_push, one_in_gzip_is_read_as_what_is_in_it)
{
	static const struct row row = {MAKE, " report-status", NULL, "PACK", ""};
	unsigned char packed[4096];
	struct git_words w;
	const void *pack;
	struct buf b;
	struct err err;
	size_t n;
	z_stream z = {.next_out = packed, .avail_out = sizeof(packed)};

	cr_assert_eq(read_row(&row, &w, &pack, &n, &b, &err), 0);
	git_words_done(&w);
	cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY),
		     Z_OK);
	z.next_in = (Bytef *)b.data;
	z.avail_in = (uInt)b.len;
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	cr_expect_lt(git_read_push(packed, z.total_out - 1, &w, &pack, &n, &err), 0);
	cr_expect(strstr(err.msg, "gzip: it is broken"), "%s", err.msg);
	err = (struct err)ERR_INIT;
	cr_assert_eq(git_read_push(packed, z.total_out, &w, &pack, &n, &err), 0, "%s",
		     err.msg);
	cr_expect_str_eq(buf_str(&w.text), "refs/heads/a\nreport-status\n");
	cr_expect(pack && n == 4 && memcmp(pack, "PACK", 4) == 0);
	git_words_done(&w);
	buf_done(&b);
}
