/* SPDX-License-Identifier: Apache-2.0 */
/* The note of what is being read (common/worker/reading.h): what is refused, and what outlives. */
#include "common/fs.h"
#include "common/str.h"
#include "common/worker/pulse.h"
#include "common/worker/reading.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY 4711u
#define NAME "reading"

static char dir[] = "/tmp/test-reading-XXXXXX";
static int dir_fd = -1;
static struct reading r;
static struct reading_note note;
static struct err err;

static void begin(void)
{
	cr_assert_not_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(dir_fd, 0);
}

static void end(void)
{
	reading_close(&r);
	(void)unlinkat(dir_fd, NAME, 0);
	(void)unlinkat(dir_fd, "other", 0);
	(void)close(dir_fd);
	cr_expect_eq(rmdir(dir), 0);
}

static void opened(void)
{
	cr_assert_eq(reading_open(dir_fd, NAME, KEY, &r, &err), 0, "%s", err.msg);
}

/* ---- what is no file for it ---- */

static void refused(void)
{
	err_clear(&err);
	cr_expect_lt(reading_open(dir_fd, NAME, KEY, &r, &err), 0);
	cr_expect_eq(err.id, ERRID_START_READING, "%s", err.msg);
	cr_expect(!r.page);
	(void)unlinkat(dir_fd, NAME, 0);
	(void)unlinkat(dir_fd, NAME, AT_REMOVEDIR);
}

static void make(mode_t mode)
{
	int fd = openat(dir_fd, NAME, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fchmod(fd, mode), 0);
	(void)close(fd);
}

Test(reading, only_a_plain_file_of_our_own_is_taken, .init = begin, .fini = end)
{
	int other;

	cr_assert_eq(mkdirat(dir_fd, NAME, 0700), 0);
	refused();
	cr_assert_eq(mkfifoat(dir_fd, NAME, 0600), 0);
	refused();
	cr_assert_eq(symlinkat("/dev/zero", dir_fd, NAME), 0);
	refused();
	other = openat(dir_fd, "other", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	cr_assert_geq(other, 0);
	(void)close(other);
	cr_assert_eq(symlinkat("other", dir_fd, NAME), 0);
	refused();
	cr_assert_eq(linkat(dir_fd, "other", dir_fd, NAME, 0), 0);
	refused();
	make(0640);
	refused();
	make(0606);
	refused();
	opened();
}

Test(reading, a_directory_that_takes_no_file_ends_the_start, .init = begin, .fini = end)
{
	cr_assert_eq(fchmod(dir_fd, 0500), 0);
	refused();
	cr_assert_eq(fchmod(dir_fd, 0700), 0);
}

Test(reading, the_file_is_private_and_has_its_size, .init = begin, .fini = end)
{
	char path[64];
	struct stat st;

	cr_assert_eq(str_fmt(path, sizeof(path), "%s/" NAME, dir), 0);
	opened();
	cr_assert_eq(fstatat(dir_fd, NAME, &st, AT_SYMLINK_NOFOLLOW), 0);
	cr_expect_eq(st.st_mode & 0777, 0600u);
	cr_expect_eq(st.st_size, 4096);
	cr_expect_gt(st.st_blocks, 0);
	reading_close(&r);
	/* one that was cut off is made anew */
	cr_assert_eq(truncate(path, 7), 0);
	opened();
	cr_expect_not(reading_get(&r, &note));
	cr_expect(reading_begin(&r, 1, 1, READING_REPLY));
}

/* ---- what is no note ---- */

Test(reading, bytes_that_do_not_fit_together_are_no_note, .init = begin, .fini = end)
{
	unsigned char good[sizeof(struct reading_page)];
	unsigned rng = 1;

	opened();
	cr_assert(reading_begin(&r, 42, 7, READING_TEXTS));
	memcpy(good, r.page, sizeof(good));
	cr_assert(reading_get(&r, &note));
	for (size_t bit = 0; bit < 8 * sizeof(good); bit++) {
		memcpy(r.page, good, sizeof(good));
		((unsigned char *)r.page)[bit / 8] ^= (unsigned char)(1u << bit % 8);
		cr_expect_not(reading_get(&r, &note), "bit %zu", bit);
	}
	for (unsigned n = 0; n < 200000; n++) {
		for (size_t i = 0; i < sizeof(good); i++) {
			rng = rng * 1103515245u + 12345u;
			((unsigned char *)r.page)[i] = (unsigned char)(rng >> 16);
		}
		cr_expect_not(reading_get(&r, &note));
	}
	memset(r.page, 0xff, sizeof(good));
	cr_expect_not(reading_get(&r, &note));
	reading_clear(&r);
	cr_expect_not(reading_get(&r, &note));
}

Test(reading, another_keys_note_is_none, .init = begin, .fini = end)
{
	opened();
	cr_assert(reading_begin(&r, 42, 7, READING_TEXTS));
	reading_close(&r);
	cr_assert_eq(reading_open(dir_fd, NAME, KEY + 1, &r, &err), 0);
	cr_expect_not(reading_get(&r, &note));
}

Test(reading, what_is_of_no_job_is_not_noted, .init = begin, .fini = end)
{
	opened();
	cr_expect_not(reading_begin(&r, 0, 7, READING_TEXTS));
	cr_expect_not(reading_begin(&r, -1, 7, READING_TEXTS));
	cr_expect_not(reading_begin(NULL, 1, 7, READING_TEXTS));
	reading_end(NULL, false);
	cr_expect_not(reading_get(&r, &note));
	cr_expect_not(reading_get(NULL, &note));
}

/* ---- what is one ---- */

Test(reading, it_stands_from_its_begin_to_its_end, .init = begin, .fini = end)
{
	bool began, within;

	opened();
	began = reading_begin(&r, 42, 7, READING_REQUEST);
	cr_expect(began);
	/* what is read within it is of the same job; the note stays */
	within = reading_begin(&r, 43, 8, READING_REPLY);
	cr_expect_not(within);
	reading_end(&r, within);
	cr_assert(reading_get(&r, &note));
	cr_expect(reading_is_of(&note, 42, 7));
	cr_expect_eq(note.what, READING_REQUEST);
	reading_end(&r, began);
	cr_expect_not(reading_get(&r, &note));
}

Test(reading, it_outlives_whoever_wrote_it, .init = begin, .fini = end)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (reading_open(dir_fd, NAME, KEY, &r, &err) < 0)
			_exit(1);
		(void)reading_begin(&r, 42, 7, READING_REPLY);
		(void)raise(SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	opened();
	cr_assert(reading_get(&r, &note));
	cr_expect(reading_is_of(&note, 42, 7));
	cr_expect_eq(note.what, READING_REPLY);
}

Test(reading, a_workers_page_is_seen_by_who_made_it)
{
	struct egress_pulse *p = NULL;
	int status;
	pid_t pid;

	cr_assert_eq(egress_pulse_new(&p, &err), 0);
	pid = fork();
	if (pid == 0) {
		(void)reading_begin(egress_pulse_reading(p), 5, 6, READING_TEXTS);
		(void)raise(SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(reading_get(egress_pulse_reading(p), &note));
	cr_expect(reading_is_of(&note, 5, 6));
	egress_pulse_free(p);
	cr_expect_null(egress_pulse_reading(NULL));
}
