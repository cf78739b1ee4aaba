/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "vessel/store/output.h"
#include "vessel/store/output_order.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/test-order-XXXXXX";
static int data_fd = -1;
static struct store_budget budget;
static struct output *o;
static struct err err;

static void set_up(void)
{
	uint64_t size;

	budget = (struct store_budget){.max = 1 << 20};
	cr_assert_not_null(mkdtemp(dir));
	data_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(output_new(data_fd, &budget, 1000, &o, &err), 0, "%s", err.msg);
	cr_assert_eq(output_append(o, 1, 1, OUTPUT_STDOUT, 0, "x", 1, &size, &err), 0);
	budget.used = 0;
}

static void tear_down(void)
{
	output_free(o);
	cr_assert_eq(fs_remove_beneath(data_fd, "output", &err), 0);
	fd_close(&data_fd);
	(void)rmdir(dir);
}

TestSuite(output_order, .timeout = 10, .init = set_up, .fini = tear_down);

static size_t notes(uint64_t from, struct output_piece *p, size_t max)
{
	size_t n = 77;

	cr_assert_eq(output_notes(o, 1, 1, from, p, max, &n, &err), 0, "%s", err.msg);
	return n;
}

static void is_piece(const struct output_piece *p, enum output_stream s, uint64_t end,
		     uint64_t sec)
{
	cr_expect_eq(p->stream, s);
	cr_expect_eq(p->end, end);
	cr_expect_eq(p->sec, sec);
}

Test(output_order, there_is_none_of_what_was_not_noted)
{
	struct output_piece p[4];
	size_t n = 77;

	cr_expect_eq(notes(0, p, 4), 0);
	cr_expect_eq(output_notes(o, 9, 9, 0, p, 4, &n, &err), 0);
	cr_expect_eq(n, 0);
	/* of an attempt that has no directory nothing is noted */
	output_note(o, 9, 9, OUTPUT_STDOUT, 5, 100);
	cr_expect_eq(output_notes(o, 9, 9, 0, p, 4, &n, &err), 0);
	cr_expect_eq(n, 0);
	cr_expect_eq(budget.used, 0);
}

Test(output_order, another_stream_or_another_second_is_another_piece)
{
	struct output_piece p[8];

	output_note(o, 1, 1, OUTPUT_STDOUT, 5, 100);
	output_note(o, 1, 1, OUTPUT_STDOUT, 9, 100);
	output_note(o, 1, 1, OUTPUT_STDOUT, 7, 101); /* sent again */
	output_note(o, 1, 1, OUTPUT_STDERR, 3, 100);
	output_note(o, 1, 1, OUTPUT_STDOUT, 12, 100);
	output_note(o, 1, 1, OUTPUT_STDOUT, 13, 102);
	cr_assert_eq(notes(0, p, 8), 4);
	is_piece(&p[0], OUTPUT_STDOUT, 9, 100);
	is_piece(&p[1], OUTPUT_STDERR, 3, 100);
	is_piece(&p[2], OUTPUT_STDOUT, 12, 100);
	is_piece(&p[3], OUTPUT_STDOUT, 13, 102);
	cr_expect_eq(budget.used, 4 * 16);
	/* in pages */
	cr_assert_eq(notes(1, p, 2), 2);
	is_piece(&p[0], OUTPUT_STDERR, 3, 100);
	cr_expect_eq(notes(4, p, 8), 0);
	cr_expect_eq(notes(UINT64_MAX, p, 8), 0);
}

Test(output_order, a_torn_note_and_a_full_store_lose_only_the_order)
{
	struct output_piece p[8];
	cleanup_close int fd = -1;

	output_note(o, 1, 1, OUTPUT_STDOUT, 5, 100);
	fd = openat(data_fd, "output/0/1.1/order", O_RDWR | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "torn", 4, 16), 4);
	cr_expect_eq(notes(0, p, 8), 1);
	output_note(o, 1, 1, OUTPUT_STDERR, 2, 100);
	cr_assert_eq(notes(0, p, 8), 2);
	is_piece(&p[1], OUTPUT_STDERR, 2, 100);
	budget.max = budget.used;
	output_note(o, 1, 1, OUTPUT_STDOUT, 8, 100);
	cr_expect_eq(notes(0, p, 8), 2);
	cr_expect_eq(budget.used, 2 * 16);
	/* a piece that goes on takes no room */
	output_note(o, 1, 1, OUTPUT_STDERR, 4, 100);
	cr_assert_eq(notes(0, p, 8), 2);
	is_piece(&p[1], OUTPUT_STDERR, 4, 100);
}

Test(output_order, there_is_an_end_to_the_notes)
{
	struct output_piece p[2];
	cleanup_close int fd = -1;
	struct stat st;

	output_note(o, 1, 1, OUTPUT_STDOUT, 5, 100);
	fd = openat(data_fd, "output/0/1.1/order", O_RDWR | O_CLOEXEC);
	cr_assert_eq(ftruncate(fd, (off_t)(OUTPUT_NOTES_MAX * 16)), 0);
	output_note(o, 1, 1, OUTPUT_STDERR, 2, 100);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_size, (off_t)(OUTPUT_NOTES_MAX * 16));
	cr_expect_eq(notes(OUTPUT_NOTES_MAX, p, 2), 0);
}
