/* SPDX-License-Identifier: Apache-2.0 */
/* What a tomb leaves for its successor. */
#include "tomb/queue/notes.h"

#include "common/cleanup.h"
#include "common/fs.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD 128

static char dir[] = "/tmp/lych-notes-XXXXXX";
static int at_fd;
static const struct uuid boot = {"00000000-0000-4000-8000-000000000001"};
static const struct uuid claim = {"00000000-0000-4000-8000-000000000002"};
static const struct uuid token = {"00000000-0000-4000-8000-000000000003"};

static void begin(void)
{
	cr_assert_not_null(mkdtemp(dir));
	at_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(at_fd, 0);
}

static void end(void)
{
	(void)unlinkat(at_fd, NOTES_FILE, 0);
	(void)rmdir(dir);
}

TestSuite(notes, .init = begin, .fini = end, .timeout = 30);

static struct notes *reopen(struct notes *n, bool proved)
{
	struct err err = ERR_INIT;

	notes_free(n);
	cr_assert_eq(notes_open(at_fd, &boot, proved, &n, &err), 0, "%s", err.msg);
	return n;
}

static size_t add(struct notes *n, job_id_t job)
{
	const struct lease_key key = {.job = job, .epoch = 7, .token = token};
	size_t number = notes_lease(n, &key);

	cr_assert_neq(number, 0);
	return number;
}

/* The jobs of the leases that are left, as a set of bits; claims are bit 0. */
static unsigned left(const struct notes *n)
{
	const struct note *note;
	unsigned set = 0;
	size_t number;

	for (size_t i = 0; (note = notes_left(n, i, &number)); i++) {
		if (note->kind == NOTE_CLAIM) {
			cr_assert_str_eq(note->boot.s, boot.s);
			cr_assert_str_eq(note->claim.s, claim.s);
			set |= 1u;
			continue;
		}
		cr_assert_eq(note->lease.epoch, 7);
		cr_assert_str_eq(note->lease.token.s, token.s);
		set |= 1u << note->lease.job;
	}
	return set;
}

Test(notes, what_is_not_ended_is_left_to_a_successor_with_a_proof)
{
	struct notes *n = reopen(NULL, true);
	struct stat st;
	size_t two;

	cr_assert_eq(left(n), 0);
	notes_claim(n, &claim);
	(void)add(n, 1);
	two = add(n, 2);
	(void)add(n, 3);
	notes_end(n, two);
	(void)add(n, 4); /* in the place of the second */
	cr_assert_eq(left(n), 0, "they are ours, not an earlier tomb's");
	n = reopen(n, true);
	cr_assert_eq(left(n), 1u | 1u << 1 | 1u << 3 | 1u << 4);
	cr_assert_eq(fstatat(at_fd, NOTES_FILE, &st, 0), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(st.st_size, 4 * RECORD);
	notes_free(n);
}

Test(notes, without_a_proof_nothing_is_left)
{
	struct notes *n = reopen(NULL, true);

	(void)add(n, 1);
	n = reopen(n, false);
	cr_assert_eq(left(n), 0);
	n = reopen(n, true);
	cr_assert_eq(left(n), 0, "and it is not there for the one after");
	notes_free(n);
}

Test(notes, what_was_not_handed_back_stays_for_the_one_after)
{
	struct notes *n = reopen(NULL, true);
	const struct lease_key recalled = {.job = 9, .epoch = 7, .token = token};
	size_t number = 0;

	(void)add(n, 1);
	(void)add(n, 2);
	n = reopen(n, true);
	(void)add(n, 3); /* its own, while it still hands back */
	notes_inherit(n, &recalled);
	cr_assert_eq(left(n), 1u << 1 | 1u << 2 | 1u << 9);
	while (notes_left(n, 0, &number)->lease.job != 1)
		notes_end(n, number);
	n = reopen(n, true);
	cr_assert_eq(left(n) & (1u << 1 | 1u << 3), 1u << 1 | 1u << 3);
	notes_free(n);
}

Test(notes, a_claim_takes_the_place_of_the_one_before)
{
	struct notes *n = reopen(NULL, true);
	const struct uuid other = {"00000000-0000-4000-8000-000000000009"};

	for (int i = 0; i < 100; i++)
		notes_claim(n, i < 99 ? &other : &claim);
	n = reopen(n, true);
	cr_assert_eq(left(n), 1u);
	notes_free(n);
}

Test(notes, a_record_that_is_torn_or_foreign_is_none)
{
	struct notes *n = reopen(NULL, true);
	cleanup_close int fd = -1;

	for (job_id_t i = 1; i <= 4; i++)
		(void)add(n, i);
	fd = openat(at_fd, NOTES_FILE, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, "\xff", 1, 20), 1); /* in the first */
	cr_assert_eq(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, 2 * RECORD - 8), 8); /* its sum */
	cr_assert_eq(ftruncate(fd, 4 * RECORD - 1), 0); /* half of the last */
	n = reopen(n, true);
	cr_assert_eq(left(n), 1u << 3);
	(void)add(n, 5); /* their places are free */
	n = reopen(n, true);
	cr_assert_eq(left(n), 1u << 3 | 1u << 5);
	notes_free(n);
}

Test(notes, a_file_that_others_can_read_is_refused)
{
	struct err err = ERR_INIT;
	struct notes *n = NULL;

	notes_free(reopen(NULL, true));
	cr_assert_eq(fchmodat(at_fd, NOTES_FILE, 0640, 0), 0);
	cr_assert_lt(notes_open(at_fd, &boot, true, &n, &err), 0);
	cr_assert_eq(unlinkat(at_fd, NOTES_FILE, 0), 0);
	cr_assert_eq(symlinkat("/etc/passwd", at_fd, NOTES_FILE), 0);
	cr_assert_lt(notes_open(at_fd, &boot, false, &n, &err), 0);
}
