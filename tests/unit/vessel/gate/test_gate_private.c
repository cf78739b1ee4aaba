/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/gate/private.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "vessel/broker/gate/client.h"
#include "vessel/broker/gate/private_store.h"
#include "vessel/gate/text/fold.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

TestSuite(gate_private, .timeout = 60);

static struct gate_private *p;

static void begin(void)
{
	p = gate_private_new();
}

static void end(void)
{
	gate_private_free(p);
}

static uint64_t add(enum private_kind kind, const char *text)
{
	struct err err = ERR_INIT;
	uint64_t id = 0;

	cr_assert_eq(gate_private_add(p, kind, "n", text, strlen(text), 0, &id, &err), 0,
		     "%s", err.msg);
	return id;
}

static bool on_hit(size_t offset, size_t len, void *arg)
{
	(void)offset;
	(void)len;
	++*(unsigned *)arg;
	return true;
}

static unsigned hits(const struct gate_private *in, const char *text)
{
	struct gate_folded f;
	unsigned n = 0;

	gate_fold(text, strlen(text), FOLD_SHAPES | FOLD_CASE, &f);
	gate_private_search(in, f.data, f.len, on_hit, &n);
	gate_folded_done(&f);
	return n;
}

Test(gate_private, what_cannot_be_registered, .init = begin, .fini = end)
{
	struct err err = ERR_INIT;
	uint64_t id;
	char name[200];

	cr_assert_lt(gate_private_add(p, PRIVATE_TERM, "n", "abc", 3, 0, &id, &err), 0);
	cr_assert_eq(err.id, ERRID_GATE_TERM);
	cr_assert_lt(gate_private_add(p, PRIVATE_TERM, "n", "  a \n b ", 8, 0, &id, &err),
		     0);
	cr_assert_lt(gate_private_add(p, PRIVATE_TERM, "", "abcd", 4, 0, &id, &err), 0);
	cr_assert_lt(gate_private_add(p, PRIVATE_TERM, "a\nb", "abcd", 4, 0, &id, &err),
		     0);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_assert_lt(gate_private_add(p, PRIVATE_TERM, name, "abcd", 4, 0, &id, &err), 0);
	(void)add(PRIVATE_TERM, "Abcd");
	cr_assert_lt(gate_private_add(p, PRIVATE_TERM, "n", " aBCD ", 6, 0, &id, &err),
		     0);
	cr_assert_lt(gate_private_remove(p, 77, &err), 0);
	cr_assert_eq(err.id, ERRID_GATE_NO_TERM);
}

Test(gate_private, terms_are_found_however_they_are_written, .init = begin, .fini = end)
{
	(void)add(PRIVATE_TERM, "Project Nachtigall");
	(void)add(PRIVATE_TERM, "Anna");
	cr_assert_eq(hits(p, "our PROJECT\n\tnachtigall."), 1);
	cr_assert_eq(hits(p, "projectnachtigall"), 0);
	cr_assert_eq(hits(p, "xProject Nachtigallx"), 1);
	cr_assert_eq(hits(p, "anna, Anna and ANNA"), 3);
	cr_assert_eq(hits(p, "annals of Joanna"), 0);
	cr_assert_eq(hits(p, "\xd0\x90nna"), 1); /* Cyrillic capital A */
	cr_assert_eq(hits(p, "a\xe2\x80\x8bnna"), 1);
	cr_assert_eq(hits(p, ""), 0);
}

/* Lines that differ, so that no passage is like another. */
static void fill(struct buf *b, unsigned lines)
{
	uint32_t s = 7;

	for (unsigned i = 0; i < lines; i++) {
		s = s * 1664525u + 1013904223u;
		buf_addf(b, "line %u says %08x and %u\n", i, s, s >> 7);
	}
}

Test(gate_private, each_passage_of_a_file_is_found, .init = begin, .fini = end)
{
	cleanup_buf struct buf b;
	char part[PRIVATE_PASSAGE_BYTES + 1];

	buf_init(&b, 1 << 20);
	fill(&b, 400);
	(void)add(PRIVATE_FILE, buf_str(&b));
	/* newlines are blanks: as long after it is normalised */
	for (size_t at = 0; at + PRIVATE_PASSAGE_BYTES < b.len; at += 37) {
		memcpy(part, b.data + at, PRIVATE_PASSAGE_BYTES);
		part[PRIVATE_PASSAGE_BYTES] = '\0';
		if (part[0] == '\n' || part[0] == ' ')
			continue;
		cr_expect_geq(hits(p, part), 1, "at %zu: %s", at, part);
	}
	cr_assert_eq(hits(p, "a text of another kind that is long enough to hold a "
			     "passage of it all"),
		     0);
	/* all of it is few hits */
	cr_assert_leq(hits(p, buf_str(&b)), 3);
}

Test(gate_private, bytes_and_back_hold_no_text, .init = begin, .fini = end)
{
	cleanup_private struct gate_private *q = NULL;
	cleanup_buf struct buf out;
	struct private_entry e;
	struct err err = ERR_INIT;
	uint64_t id;

	(void)add(PRIVATE_TERM, "first secret");
	id = add(PRIVATE_TERM, "second secret");
	cr_assert_eq(gate_private_remove(p, 1, NULL), 0);
	(void)add(PRIVATE_FILE, "a short file");
	buf_init(&out, 1 << 20);
	gate_private_write(p, &out);
	cr_assert_null(memmem(out.data, out.len, "secret", 6));
	cr_assert_null(memmem(out.data, out.len, "short", 5));
	cr_assert_eq(gate_private_read(out.data, out.len, &q, &err), 0, "%s", err.msg);
	cr_assert_eq(gate_private_count(q), 2);
	gate_private_at(q, 0, &e);
	cr_assert_eq(e.id, id);
	cr_assert_eq(hits(q, "a second secret"), 1);
	cr_assert_eq(hits(q, "the first secret"), 0);
	cr_assert_eq(hits(q, "it is a short file here"), 1);
	/* cut anywhere, or longer: refused */
	for (size_t n = 0; n < out.len; n++) {
		struct gate_private *bad = NULL;

		cr_assert_lt(gate_private_read(out.data, n, &bad, NULL), 0, "%zu", n);
	}
	buf_addc(&out, 'x');
	cr_assert_lt(gate_private_read(out.data, out.len, &q, &err), 0);
	cr_assert_eq(err.id, ERRID_GATE_STORE);
}

Test(gate_private, the_store_keeps_and_refuses_what_is_damaged)
{
	char dir[] = "/tmp/gate-private-XXXXXX";
	struct gate_client_config cfg = {.portal_threshold = 0.4,
					 .forbidden_threshold = 0.7};
	struct gate_client *client;
	struct private_store *s = NULL;
	struct loop *loop = NULL;
	struct err err = ERR_INIT;
	struct stat st;
	uint64_t id;
	int fd, file;

	cr_assert_not_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(loop_new(&loop, NULL), 0);
	cfg.loop = loop;
	client = gate_client_new(&cfg);
	cr_assert_eq(private_store_open(fd, client, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(private_store_add(s, PRIVATE_TERM, "n", "my secret", 9, &id, &err),
		     0);
	private_store_free(s);
	cr_assert_eq(fstatat(fd, "private", &st, 0), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(private_store_open(fd, client, &s, &err), 0, "%s", err.msg);
	cr_assert_eq(gate_private_count(private_store_get(s)), 1);
	private_store_free(s);
	file = openat(fd, "private", O_WRONLY | O_APPEND | O_CLOEXEC);
	cr_assert_eq(write(file, "x", 1), 1);
	(void)close(file);
	cr_assert_lt(private_store_open(fd, client, &s, &err), 0);
	cr_assert_eq(err.id, ERRID_GATE_STORE);
	cr_assert_eq(unlinkat(fd, "private", 0), 0);
	cr_assert_eq(rmdir(dir), 0);
	(void)close(fd);
	gate_client_free(client);
	loop_free(loop);
}
