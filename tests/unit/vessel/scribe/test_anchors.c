/* SPDX-License-Identifier: Apache-2.0 */
/* Anchors: the one form of a line; a file that is none, or not ours alone, is refused; one that knows more
 * than the log is left as it is; one that fails is tried again, and what it has stays readable. */
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/unit/vessel/scribe/log_fixture.h"
#include "vessel/scribe/anchor_read.h"
#include "vessel/scribe/anchors.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

TestSuite(anchors, .init = begin, .fini = end, .timeout = 60);

static char path[128];

static struct seal seal_of(uint64_t size, uint8_t fill, unsigned kind)
{
	static const uint8_t seed[ED25519_SEED_SIZE] = {1};
	struct seal s = {.log = stream,
			 .size = size,
			 .epoch = 3,
			 .time = "2026-11-29T17:00:00.000Z",
			 .has_genesis = kind & 1,
			 .has_next = kind & 2};

	memset(s.root.b, fill, sizeof(s.root.b));
	memset(s.next, 7, s.has_next ? sizeof(s.next) : 0);
	if (s.has_genesis)
		ed25519_public(seed, s.genesis);
	seal_sign(&s, seed);
	return s;
}

static struct anchors *open_it(bool required, struct err *err)
{
	const struct anchor_want want = {path, required};
	struct anchors *a = NULL;

	(void)snprintf(path, sizeof(path), "%s/anchor.jsonl", dir);
	return anchors_open("/tmp", &want, 1, &a, err) < 0 ? NULL : a;
}

static struct anchors *must_open(void)
{
	struct err err = ERR_INIT;
	struct anchors *a = open_it(false, &err);

	cr_assert(a, "%s", err.msg);
	return a;
}

/* How it stands, as a record says it. */
static const char *told(struct anchors *a)
{
	static char text[4096];
	const struct err *why = NULL;
	cleanup_buf struct buf b;

	buf_init(&b, sizeof(text));
	if (!anchors_tell(a, &b, &why))
		return "";
	cr_expect(strstr(buf_str(&b), "\"ok\":true") ? !why : why != NULL);
	cr_assert(str_copy(text, sizeof(text), buf_str(&b)) == 0);
	return text;
}

static void store(const char *text)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static off_t size_of_it(void)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : st.st_size;
}

static char *line_of(const struct seal *s)
{
	struct buf b;

	buf_init(&b, ANCHOR_LINE_MAX);
	anchor_line_write(&b, s);
	cr_assert(buf_ok(&b));
	return buf_take(&b, NULL);
}

Test(anchors, a_line_reads_back_and_is_read_in_no_other_form)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		struct seal s = seal_of(42, 9, kind), back;
		cleanup_free char *line = line_of(&s);
		size_t len = strlen(line) - 1;

		cr_assert_eq(line[len], '\n');
		cr_assert(anchor_line_parse(line, len, &back, NULL) == 0);
		cr_expect(memcmp(&s, &back, sizeof(s)) == 0);
		cr_expect(anchor_line_parse(line, len + 1, &back, NULL) < 0, "a newline");
		for (size_t i = 0; i < len; i++) {
			cleanup_free char *other = xstrdup(line);

			cr_expect(anchor_line_parse(line, i, &back, NULL) < 0, "%zu", i);
			other[i] = other[i] == ' ' ? 'x' : ' ';
			cr_expect(anchor_line_parse(other, len, &back, NULL) < 0,
				  "a blank at %zu", i);
		}
	}
}

Test(anchors,
     what_is_no_file_of_ours_alone_is_refused_and_only_a_required_one_ends_the_start)
{
	struct err err = ERR_INIT;
	char other[160];

	(void)snprintf(other, sizeof(other), "%s/other", dir);
	for (unsigned i = 0; i < 6; i++) {
		struct anchors *a;
		struct seal s = seal_of(1, 1, 0);

		a = open_it(true, &err); /* where the name leads */
		anchors_free(a);
		cr_assert(a, "%s", err.msg);
		cr_assert_eq(unlink(path), 0);
		if (i == 0)
			cr_assert_eq(mkfifo(path, 0600), 0);
		else if (i == 1)
			cr_assert_eq(symlink(other, path), 0);
		else if (i == 2)
			cr_assert_eq(mkdir(path, 0700), 0);
		else
			store("");
		if (i == 3)
			cr_assert_eq(chmod(path, 0620), 0);
		if (i == 4)
			cr_assert_eq(link(path, other), 0);
		if (i == 5)
			cr_assert_eq(chmod(path, 0400), 0);
		cr_expect_null(open_it(true, &err), "case %u", i);
		cr_expect_eq(err.id, ERRID_AUDIT_ANCHOR);
		a = must_open();
		cr_expect(anchors_compare(a, NULL, &err) == 0);
		cr_expect(anchors_add(a, &s, &err) == 0);
		cr_expect(strstr(told(a), "\"ok\":false"), "case %u", i);
		cr_expect_str_eq(told(a), "", "once");
		cr_expect_leq(size_of_it(), i == 2 ? 100000 : 0, "case %u", i);
		anchors_free(a);
		cr_assert(i == 2 ? rmdir(path) == 0 : unlink(path) == 0);
		(void)unlink(other);
	}
}

Test(anchors, a_name_that_the_log_cannot_say_is_refused)
{
	static const char *const names[] = {"/", "/tmp/", "/tmp/.hidden", "/tmp/a b",
					    "/tmp/a\"b"};
	const struct anchor_want twice[] = {{"/tmp/ly-none/a", false},
					    {"/var/tmp/ly-none/a", false}};
	struct anchors *a = NULL;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct anchor_want want = {names[i], false};

		cr_expect(anchors_open("/tmp", &want, 1, &a, &err) < 0, "%s", names[i]);
		cr_expect_eq(err.id, ERRID_AUDIT_ANCHOR);
	}
	cr_expect(anchors_open("/tmp", twice, 2, &a, &err) < 0, "two of one name");
}

Test(anchors, none_is_made_in_the_directory_of_the_log)
{
	struct anchor_want want = {path, true};
	struct anchors *a = NULL;
	struct err err = ERR_INIT;

	(void)snprintf(path, sizeof(path), "%s/anchor.jsonl", dir);
	cr_expect(anchors_open(dir, &want, 1, &a, &err) < 0);
	cr_expect(strstr(err.msg, "own directory"));
	cr_expect_eq(size_of_it(), -1);
}

Test(anchors, it_is_gone_on_with_and_a_torn_line_is_left_behind)
{
	struct seal s = seal_of(10, 1, 0), t = seal_of(12, 2, 2);
	cleanup_free char *first = line_of(&s), *second = line_of(&t);
	struct anchors *a = must_open();
	struct anchor_reader r;
	struct err err = ERR_INIT;
	struct stat st;

	cr_assert(anchors_compare(a, NULL, &err) == 0);
	cr_assert(anchors_add(a, &s, &err) == 0);
	cr_expect(strstr(told(a), "\"ok\":true,\"size\":10"));
	anchors_free(a);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	cr_expect_eq((size_t)st.st_size, strlen(first));
	cr_assert_eq(truncate(path, st.st_size - 5), 0);
	a = must_open();
	cr_assert(anchors_compare(a, &s, &err) == 0);
	cr_assert(anchors_add(a, &t, &err) == 0);
	cr_expect_eq((size_t)size_of_it(), strlen(first) - 4 + strlen(second));
	cr_expect(strstr(told(a), "\"ok\":true,\"size\":12"));
	anchors_free(a);
	anchor_reader_open(&r, path);
	cr_expect_eq(r.n, 1);
	cr_expect_eq(r.n_odd, 1);
	anchor_reader_done(&r);
}

Test(anchors, one_that_does_not_go_with_the_log_is_left_as_it_is)
{
	struct seal there = seal_of(20, 1, 0), shorter = seal_of(19, 1, 0),
		    other_root = seal_of(20, 2, 0), other_log = seal_of(30, 1, 0),
		    good = seal_of(21, 3, 0);
	const struct {
		const struct seal *last;
		const char *why;
	} bad[] = {{&shorter, "was cut"},
		   {&other_root, "rewritten"},
		   {&other_log, "of log"},
		   {NULL, "of log"}};
	const char *const foreign[] = {"a8f2c1", "{\"v\":2", "{\"v\":1,\"log\":1}",
				       "{\n"};
	cleanup_free char *line = line_of(&there);
	struct err err = ERR_INIT;

	other_log.log = (struct uuid){"bbbbbbbb-1111-4222-8333-444444444444"};
	anchors_free(must_open());
	for (size_t i = 0; i < ARRAY_SIZE(bad) + 1; i++) {
		bool is_text = i == ARRAY_SIZE(bad);
		const struct seal *last = is_text ? &there : bad[i].last;
		struct anchors *a;

		store(is_text ? "what you like\n" : line);
		a = must_open();
		cr_assert(anchors_compare(a, last, &err) == 0);
		cr_assert(anchors_add(a, &good, &err) == 0);
		cr_expect(strstr(told(a), is_text ? "no checkpoint" : bad[i].why), "%zu",
			  i);
		cr_expect_eq((size_t)size_of_it(), is_text ? 14 : strlen(line));
		anchors_free(a);
		a = open_it(true, &err);
		cr_assert(a);
		cr_expect(anchors_compare(a, last, &err) < 0, "required, %zu", i);
		anchors_free(a);
	}
	/* what has no line's end, or no more than the beginning of our line: somebody's key, perhaps */
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		struct anchors *a;

		store(foreign[i]);
		a = must_open();
		cr_assert(anchors_compare(a, &there, &err) == 0);
		cr_assert(anchors_add(a, &good, &err) == 0);
		cr_expect(strstr(told(a), "no checkpoint"), "%s", foreign[i]);
		cr_expect_eq((size_t)size_of_it(), strlen(foreign[i]));
		anchors_free(a);
	}
	/* and the same, or older: it is gone on with */
	store(line);
	for (unsigned i = 0; i < 2; i++) {
		struct anchors *a = open_it(true, &err);

		cr_assert(a);
		cr_expect(anchors_compare(a, i ? &good : &there, &err) == 0, "%s",
			  err.msg);
		cr_expect(anchors_add(a, &good, &err) == 0);
		anchors_free(a);
	}
}

Test(anchors, a_full_disk_is_told_and_written_behind_later)
{
	struct seal s = seal_of(10, 1, 0), t = seal_of(12, 2, 0);
	struct anchors *a = must_open();
	struct rlimit lim = {.rlim_cur = 100, .rlim_max = RLIM_INFINITY};
	struct anchor_reader r;
	struct err err = ERR_INIT;

	cr_assert_neq(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_assert(anchors_add(a, &s, &err) == 0);
	cr_expect(strstr(told(a), "\"ok\":false"));
	cr_expect_eq(size_of_it(), 100);
	lim.rlim_cur = RLIM_INFINITY;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_assert(anchors_add(a, &t, &err) == 0);
	cr_expect(strstr(told(a), "\"ok\":true,\"size\":12"));
	anchors_free(a);
	anchor_reader_open(&r, path);
	anchor_on_seal(&r, &s, &(struct merkle_hash){{0}});
	cr_expect_eq(r.n_odd, 0, "the beginning of a line of this log is explained");
	anchor_reader_done(&r);
}

Test(anchors, one_that_is_taken_away_while_it_is_in_use_stands_no_more)
{
	struct seal s = seal_of(10, 1, 0), t = seal_of(12, 2, 0), u = seal_of(13, 3, 0);
	struct err err = ERR_INIT;
	struct stat st;

	for (unsigned removed = 0; removed < 2; removed++) {
		struct anchors *a = must_open();
		size_t left;

		cr_assert(anchors_compare(a, &s, &err) == 0);
		cr_assert(anchors_add(a, &s, &err) == 0);
		cr_expect(strstr(told(a), "\"ok\":true"));
		cr_assert_eq(stat(path, &st), 0);
		cr_assert_eq(removed ? unlink(path) : truncate(path, st.st_size - 1), 0);
		cr_assert(anchors_add(a, &t, &err) == 0);
		cr_expect(strstr(told(a), removed ? "was removed" : "was cut"));
		left = removed ? 0 : size_of_it();
		cr_assert(anchors_add(a, &u, &err) == 0);
		cr_expect_str_empty(told(a), "once");
		cr_expect_eq(left, removed ? 0 : (size_t)st.st_size - 1,
			     "it is left as it is");
		anchors_free(a);
		a = open_it(true, &err);
		cr_assert(a);
		cr_assert(anchors_compare(a, &s, &err) == 0);
		cr_assert(anchors_add(a, &t, &err) == 0);
		cr_assert_eq(unlink(path), 0);
		cr_expect(anchors_add(a, &u, &err) < 0, "a required one");
		anchors_free(a);
		err = (struct err)ERR_INIT;
	}
}
