/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "vessel/store/output.h"
#include "vessel/store/output_sum.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char dir[] = "/tmp/test-output-XXXXXX";
static int data_fd = -1;
static struct store_budget budget;
static struct output *o;
static struct err err;

static void set_up(void)
{
	budget = (struct store_budget){.max = 1 << 20};
	cr_assert_not_null(mkdtemp(dir));
	data_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(output_new(data_fd, &budget, 1000, &o, &err), 0, "%s", err.msg);
}

static void tear_down(void)
{
	output_free(o);
	cr_assert_eq(fs_remove_beneath(data_fd, "output", &err), 0);
	fd_close(&data_fd);
	(void)rmdir(dir);
}

TestSuite(output, .timeout = 10, .init = set_up, .fini = tear_down);

static int put(job_id_t job, int64_t epoch, uint64_t at, const char *s, uint64_t *size)
{
	return output_append(o, job, epoch, OUTPUT_STDOUT, at, s, strlen(s), size, &err);
}

static void stored(job_id_t job, int64_t epoch, const char *want, bool want_final)
{
	char got[1100] = "";
	uint64_t size, next;
	size_t n;
	bool final;

	cr_assert_eq(output_size(o, job, epoch, OUTPUT_STDOUT, &size, &final, &err), 0);
	cr_assert_eq(size, strlen(want));
	cr_assert_eq(final, want_final);
	cr_assert_eq(output_read(o, job, epoch, OUTPUT_STDOUT, 0, got, sizeof(got) - 1,
				 &n, &next, &err),
		     0, "%s", err.msg);
	cr_assert_eq(n, size);
	cr_assert_str_eq(got, want);
}

Test(output, gap_is_refused_and_names_the_size)
{
	uint64_t size = 99;

	cr_assert_lt(put(1, 1, 1, "x", &size), 0);
	cr_assert_eq(err.id, ERRID_RUN_GAP);
	cr_assert_eq(size, 0);
	stored(1, 1, "", false);
}

Test(output, nothing_is_taken_after_the_end_but_repetitions)
{
	struct output_end end = {.bytes = {3, 0}};
	uint64_t size, expected = 0;

	cr_assert_eq(put(1, 1, 0, "abc", &size), 0);
	end.bytes[0] = 4;
	cr_assert_lt(output_finish(o, 1, 1, &end, &expected, &err), 0);
	cr_assert_eq(err.id, ERRID_RUN_GAP);
	cr_assert_eq(expected, 3);
	stored(1, 1, "abc", false);
	end.bytes[0] = 3;
	cr_assert_eq(output_finish(o, 1, 1, &end, &expected, &err), 0);
	cr_assert_eq(output_finish(o, 1, 1, &end, &expected, &err), 0);
	cr_assert_lt(put(1, 1, 3, "d", &size), 0);
	cr_assert_eq(err.id, ERRID_RUN_STATE);
	cr_assert_eq(put(1, 1, 1, "bc", &size), 0);
	stored(1, 1, "abc", true);
}

Test(output, a_truncated_stream_need_not_be_whole)
{
	struct output_end end = {.bytes = {5000, 0}, .truncated = {true, false}};
	uint64_t expected;

	cr_assert_eq(output_finish(o, 1, 1, &end, &expected, &err), 0, "%s", err.msg);
	stored(1, 1, "", true);
}

Test(output, stream_and_store_have_limits)
{
	char kilo[1001];
	uint64_t size, want;

	memset(kilo, 'x', 1000);
	kilo[1000] = '\0';
	cr_assert_eq(put(1, 1, 0, kilo, &size), 0);
	cr_assert_lt(put(1, 1, 1000, "y", &size), 0);
	cr_assert_eq(err.id, ERRID_STORE_LIMIT);
	/* three quarters of it */
	want = budget.used + SUM_SLOT_BYTES + 10;
	for (budget.max = want; budget.max - budget.max / 4 < want;)
		budget.max++;
	cr_assert_lt(put(2, 1, 0, "01234567890", &size), 0);
	cr_assert_eq(err.id, ERRID_STORE_LIMIT);
	cr_assert_eq(put(2, 1, 0, "0123456789", &size), 0);
}

Test(output, a_failed_write_leaves_the_file_as_it_was)
{
	struct rlimit lim = {100, 100}; /* more than the slot of a block */
	uint64_t size, used;
	char some[99];

	memset(some, 'a', sizeof(some) - 1);
	some[sizeof(some) - 1] = '\0';
	(void)signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(put(1, 1, 0, some, &size), 0);
	used = budget.used;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_assert_lt(put(1, 1, 98, "defgh", &size), 0);
	cr_assert_eq(err.id, ERRID_CORE_DISK_FULL, "%s", err.msg);
	cr_assert_eq(budget.used, used);
	stored(1, 1, some, false);
	cr_assert_eq(put(1, 1, 98, "de", &size), 0);
	cr_assert_eq(size, 100);
}

Test(output, a_failed_digest_leaves_nothing)
{
	struct rlimit lim = {20, 20}; /* the bytes fit, their slot does not */
	uint64_t size;

	(void)signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_assert_lt(put(1, 1, 0, "0123456789", &size), 0);
	cr_assert_eq(err.id, ERRID_CORE_DISK_FULL, "%s", err.msg);
	cr_assert_eq(budget.used, 0);
	stored(1, 1, "", false);
}

Test(output, parts_known_in_part_are_completed)
{
	uint64_t size;

	cr_assert_eq(put(1, 1, 0, "abc", &size), 0);
	cr_assert_eq(put(1, 1, 0, "abc", &size), 0);
	cr_assert_eq(size, 3);
	cr_assert_eq(put(1, 1, 2, "cde", &size), 0);
	cr_assert_eq(size, 5);
	stored(1, 1, "abcde", false);
	cr_assert_eq(budget.used, 5 + SUM_SLOT_BYTES);
}

Test(output, a_new_epoch_replaces_the_old_one)
{
	uint64_t size;

	cr_assert_eq(put(7, 1, 0, "old", &size), 0);
	cr_assert_eq(put(77, 1, 0, "other job", &size), 0);
	cr_assert_eq(output_latest(o, 7, 3), 1);
	cr_assert_eq(put(7, 3, 0, "new", &size), 0);
	cr_assert_eq(output_latest(o, 7, 5), 3);
	stored(7, 1, "", false);
	stored(7, 3, "new", false);
	stored(77, 1, "other job", false);
	cr_assert_eq(budget.used,
		     strlen("new") + strlen("other job") + 2 * SUM_SLOT_BYTES);
}

Test(output, removal_and_listing)
{
	job_id_t ids[2];
	uint64_t size;
	size_t n;

	for (job_id_t j = 1; j <= 3; j++)
		cr_assert_eq(put(j * 10, 1, 0, "x", &size), 0);
	cr_assert_eq(mkdirat(data_fd, "output/0/not-ours", 0700), 0);
	cr_assert_eq(output_jobs(o, 0, ids, 2, &n, &err), 0);
	cr_assert(n == 2 && ids[0] == 10 && ids[1] == 20);
	cr_assert_eq(output_jobs(o, 20, ids, 2, &n, &err), 0);
	cr_assert(n == 1 && ids[0] == 30);
	cr_assert_eq(output_remove(o, 20, &err), 0);
	cr_assert_eq(output_remove(o, 20, &err), 0);
	cr_assert_eq(output_jobs(o, 0, ids, 2, &n, &err), 0);
	cr_assert(n == 2 && ids[1] == 30);
	cr_assert_eq(budget.used, 2 + 2 * SUM_SLOT_BYTES);
	/* of one directory at a time */
	cr_assert_eq(put(1000, 3, 0, "x", &size), 0);
	cr_assert_eq(output_jobs(o, 10, ids, 2, &n, &err), 0);
	cr_assert(n == 1 && ids[0] == 30);
	cr_assert_eq(output_jobs(o, 30, ids, 2, &n, &err), 0);
	cr_assert(n == 1 && ids[0] == 1000);
	cr_assert_eq(output_jobs(o, 1000, ids, 2, &n, &err), 0);
	cr_assert_eq(n, 0);
	cr_assert_eq(output_remove(o, 1000, &err), 0);
	cr_assert_lt(faccessat(data_fd, "output/3", F_OK, 0), 0,
		     "an empty directory stays");
}

Test(output, what_is_stored_counts_after_a_restart)
{
	struct store_budget again = {.max = 1 << 20};
	struct output *second;
	uint64_t size;

	cr_assert_eq(put(1, 1, 0, "12345", &size), 0);
	cr_assert_eq(output_new(data_fd, &again, 1000, &second, &err), 0);
	cr_assert_eq(again.used, 5 + SUM_SLOT_BYTES);
	output_free(second);
}

Test(output, a_symlink_in_the_store_is_not_followed)
{
	uint64_t size, next;
	char got[8];
	size_t n;

	cr_assert_eq(mkdirat(data_fd, "output/0", 0700), 0);
	cr_assert_eq(mkdirat(data_fd, "output/0/5.1", 0700), 0);
	cr_assert_eq(symlinkat("/etc/passwd", data_fd, "output/0/5.1/stdout"), 0);
	cr_assert_lt(put(5, 1, 0, "x", &size), 0);
	cr_assert_lt(
		output_read(o, 5, 1, OUTPUT_STDOUT, 0, got, sizeof(got), &n, &next, &err),
		0);
}
