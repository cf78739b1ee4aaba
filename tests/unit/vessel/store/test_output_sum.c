/* SPDX-License-Identifier: Apache-2.0 */
/* Stored output and its digests: what the disk changes is seen, and what a writer that died
 * left half-done is not taken for it. */
#include "common/attr.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "vessel/store/output.h"
#include "vessel/store/output_sum.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define TOTAL ((size_t)(3 * SUM_BLOCK_BYTES + 1000))

static char dir[] = "/tmp/test-sums-XXXXXX";
static int data_fd = -1;
static struct store_budget budget;
static struct output *o;
static struct err err;
static char text[TOTAL];

static void open_store(void)
{
	budget = (struct store_budget){.max = 1 << 26};
	cr_assert_eq(output_new(data_fd, &budget, 1 << 25, &o, &err), 0, "%s", err.msg);
}

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(dir));
	data_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	open_store();
	for (size_t i = 0; i < TOTAL; i++)
		text[i] = (char)('a' + i * 7 % 26);
}

static void tear_down(void)
{
	output_free(o);
	cr_assert_eq(fs_remove_beneath(data_fd, "output", &err), 0);
	fd_close(&data_fd);
	(void)rmdir(dir);
}

TestSuite(output_sum, .timeout = 30, .init = set_up, .fini = tear_down);

/* As a tomb sends it, in pieces of all sizes; a restart after each when asked for. */
static void store_all(bool restarts)
{
	static const size_t sizes[] = {1, 100, 16383, 1, 16384, 777, 2000};
	uint64_t at = 0;

	for (size_t i = 0; at < TOTAL; i++) {
		size_t n = sizes[i % ARRAY_SIZE(sizes)];
		uint64_t size;

		if (n > TOTAL - at)
			n = TOTAL - at;
		cr_assert_eq(output_append(o, 1, 1, OUTPUT_STDOUT, at, text + at, n,
					   &size, &err),
			     0, "%s", err.msg);
		cr_assert_eq(size, at + n);
		at += n;
		if (restarts) {
			output_free(o);
			open_store();
		}
	}
}

static void finish(void)
{
	struct output_end end = {.bytes = {TOTAL, 0}};
	uint64_t expected = 0;

	cr_assert_eq(output_finish(o, 1, 1, &end, &expected, &err), 0, "%s", err.msg);
}

/* What can be read, the damaged blocks as '?': how many there were. */
static unsigned read_all(char *out, size_t *ret_n)
{
	unsigned bad = 0;
	uint64_t at = 0;

	for (;;) {
		uint64_t next = 0;
		struct err why = ERR_INIT;
		size_t n;

		if (output_read(o, 1, 1, OUTPUT_STDOUT, at, out + at, TOTAL - at, &n,
				&next, &why) < 0) {
			cr_assert_eq(why.id, ERRID_STORE_DAMAGED, "%s", why.msg);
			cr_assert_gt(next, at);
			memset(out + at, '?', next - at);
			at = next;
			bad++;
			continue;
		}
		if (n == 0)
			break;
		at += n;
	}
	*ret_n = at;
	return bad;
}

static int open_file(const char *name, int flags)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "output/0/1.1/%s", name);
	fd = openat(data_fd, path, flags | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", path);
	return fd;
}

static void flip(const char *name, off_t at)
{
	cleanup_close int fd = open_file(name, O_RDWR);
	char c;

	cr_assert_eq(pread(fd, &c, 1, at), 1);
	c ^= 0x10;
	cr_assert_eq(pwrite(fd, &c, 1, at), 1);
}

static void cut(const char *name, off_t size)
{
	cleanup_close int fd = open_file(name, O_RDWR);

	cr_assert_eq(ftruncate(fd, size), 0);
}

static void expect_whole(void)
{
	cleanup_free char *got = xmalloc(TOTAL + 1);
	size_t n;

	cr_expect_eq(read_all(got, &n), 0);
	cr_assert_eq(n, TOTAL);
	cr_expect(memcmp(got, text, TOTAL) == 0);
}

Test(output_sum, pieces_of_all_sizes_with_restarts_between_are_read_back)
{
	store_all(true);
	expect_whole();
	cr_expect_eq(budget.used, TOTAL + sum_bytes(TOTAL));
	finish();
	expect_whole();
}

/* A changed byte costs its block, is named, and nothing of the block is given out. */
static void try_flip(const char *name, off_t at, size_t block)
{
	cleanup_free char *got = xmalloc(TOTAL + 1);
	uint64_t begin = block * SUM_BLOCK_BYTES, next = 0;
	size_t n, end = begin + SUM_BLOCK_BYTES < TOTAL ? begin + SUM_BLOCK_BYTES : TOTAL;
	char want[64];

	flip(name, at);
	cr_assert_eq(read_all(got, &n), 1, "%s %ld", name, (long)at);
	cr_assert_eq(n, TOTAL);
	for (size_t i = 0; i < TOTAL; i++)
		cr_assert_eq(got[i], i >= begin && i < end ? '?' : text[i], "%zu", i);
	cr_assert_lt(
		output_read(o, 1, 1, OUTPUT_STDOUT, begin + 5, got, 10, &n, &next, &err),
		0);
	(void)snprintf(want, sizeof(want), "bytes %zu to %zu are not those",
		       (size_t)begin, end - 1);
	cr_expect_not_null(strstr(err.msg, want), "%s", err.msg);
	flip(name, at);
}

Test(output_sum, every_changed_byte_is_seen)
{
	store_all(false);
	for (int final = 0; final < 2; final++) {
		for (size_t i = 0; i < TOTAL; i += 997)
			try_flip("stdout", (off_t)i, i / SUM_BLOCK_BYTES);
		/* of a slot: its length above all, its digest */
		for (size_t i = 0; i < sum_bytes(TOTAL); i += 3)
			if (final || i < sum_bytes(TOTAL) - SUM_SLOT_BYTES)
				try_flip("stdout.sum", (off_t)i, i / SUM_SLOT_BYTES);
		finish();
	}
	expect_whole();
}

Test(output_sum, bytes_that_are_missing_are_seen)
{
	cleanup_free char *got = xmalloc(TOTAL + 1);
	static const off_t sizes[] = {(off_t)TOTAL - 1,
				      3 * SUM_BLOCK_BYTES,
				      2 * SUM_BLOCK_BYTES + 5,
				      2 * SUM_BLOCK_BYTES,
				      1,
				      0};
	size_t n;

	store_all(false);
	for (int final = 0; final < 2; final++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			cleanup_close int fd = open_file("stdout", O_RDWR);

			cut("stdout", sizes[i]);
			cr_expect_gt(read_all(got, &n), 0, "%ld", (long)sizes[i]);
			cr_expect_eq(n, TOTAL, "%ld: its length is known",
				     (long)sizes[i]);
			cr_assert_eq(pwrite(fd, text, TOTAL, 0), (ssize_t)TOTAL);
		}
		expect_whole();
		finish();
	}
	cr_assert_eq(unlinkat(data_fd, "output/0/1.1/stdout", 0), 0);
	cr_assert_lt(
		output_read(o, 1, 1, OUTPUT_STDOUT, 0, got, 9, &n, &(uint64_t){0}, &err),
		0);
	cr_expect_eq(err.id, ERRID_STORE_DAMAGED);
}

/* Killed between the bytes and their slots: nobody was told of them, they come again. */
Test(output_sum, what_a_writer_that_died_left_is_as_never_written)
{
	uint64_t size;
	bool final;

	store_all(false);
	for (size_t back = 1; back <= 2 * SUM_BLOCK_BYTES; back += 4099) {
		size_t kept = TOTAL - back;
		cleanup_close int sums = open_file("stdout.sum", O_RDWR);
		uint8_t saved[8 * SUM_SLOT_BYTES];
		ssize_t n = pread(sums, saved, sizeof(saved), 0);

		/* as it was before its last piece, which lies there whole or in part */
		output_free(o);
		cr_assert_eq(fs_remove_beneath(data_fd, "output", &err), 0);
		open_store();
		cr_assert_eq(
			output_append(o, 1, 1, OUTPUT_STDOUT, 0, text, kept, &size, &err),
			0);
		cleanup_close int fd = open_file("stdout", O_RDWR);

		cr_assert_eq(pwrite(fd, text + kept, back / 2 + 1, (off_t)kept),
			     (ssize_t)(back / 2 + 1));
		output_free(o);
		open_store();
		cr_assert_eq(output_size(o, 1, 1, OUTPUT_STDOUT, &size, &final, &err), 0);
		cr_expect_eq(size, kept);
		cr_assert_eq(output_append(o, 1, 1, OUTPUT_STDOUT, kept, text + kept,
					   back, &size, &err),
			     0, "%s", err.msg);
		cr_expect_eq(size, TOTAL);
		cr_expect_eq(budget.used, TOTAL + sum_bytes(TOTAL));
		expect_whole();
		/* and its slots are those of one that was never killed */
		cleanup_close int again = open_file("stdout.sum", O_RDWR);
		uint8_t now[8 * SUM_SLOT_BYTES];

		cr_assert_eq(pread(again, now, sizeof(now), 0), n);
		cr_expect(memcmp(now, saved, (size_t)n) == 0);
	}
}

Test(output_sum, a_block_that_was_changed_is_not_gone_on_with)
{
	uint64_t size;

	cr_assert_eq(output_append(o, 1, 1, OUTPUT_STDOUT, 0, text, 100, &size, &err), 0);
	flip("stdout", 50);
	cr_assert_lt(
		output_append(o, 1, 1, OUTPUT_STDOUT, 100, text + 100, 100, &size, &err),
		0);
	cr_expect_eq(err.id, ERRID_STORE_DAMAGED, "%s", err.msg);
}

/* Output that an older release stored has no digests: it is shown as it is. */
Test(output_sum, what_an_older_release_stored_can_be_read)
{
	uint64_t size;

	store_all(false);
	cr_assert_eq(unlinkat(data_fd, "output/0/1.1/stdout.sum", 0), 0);
	expect_whole();
	cr_assert_eq(output_append(o, 1, 1, OUTPUT_STDOUT, TOTAL, text, 10, &size, &err),
		     0, "%s", err.msg);
	cr_expect_eq(size, TOTAL + 10);
}
