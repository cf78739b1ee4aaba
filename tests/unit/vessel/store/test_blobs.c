/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/proto.h"
#include "common/str.h"
#include "vessel/store/incoming.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static char dir[] = "/tmp/test-blobs-XXXXXX";
static int data_fd = -1;
static struct store_budget budget;
static struct blobs *b;
static struct incoming *in;
static struct loop *loop;
static struct err err;
static char id[UPLOAD_ID_SIZE];

static void set_up(void)
{
	budget = (struct store_budget){.max = 1 << 20};
	cr_assert_not_null(mkdtemp(dir));
	data_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(blobs_new(data_fd, &budget, &b, &err), 0, "%s", err.msg);
	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(incoming_new(loop, data_fd, &budget, b, &in, &err), 0, "%s",
		     err.msg);
	cr_assert_eq(incoming_begin(in, "owner", &random_real, id, &err), 0);
}

static void tear_down(void)
{
	incoming_free(in);
	blobs_free(b);
	loop_free(loop);
	cr_assert_eq(fs_remove_beneath(data_fd, "blobs", &err), 0);
	cr_assert_eq(fs_remove_beneath(data_fd, "uploads", &err), 0);
	fd_close(&data_fd);
	(void)rmdir(dir);
}

TestSuite(blobs, .timeout = 10, .init = set_up, .fini = tear_down);

static int put(const char *owner, uint64_t at, const char *s, uint64_t *size)
{
	return incoming_append(in, owner, id, at, s, strlen(s), size, &err);
}

static const char *sha_of(const char *s)
{
	static char hex[SHA256_HEX_SIZE];
	uint8_t raw[SHA256_SIZE];

	sha256_of(s, strlen(s), raw);
	hex_encode(raw, sizeof(raw), hex);
	return hex;
}

static unsigned answers;
static bool failed;

static void on_commit(const struct err *why, void *arg)
{
	answers++;
	failed = why != NULL;
	if (why)
		err = *why;
	loop_stop(arg, 0);
}

static int commit_as(const char *owner, const char *what, const char *sha, uint64_t size)
{
	struct err ignored = ERR_INIT;

	if (incoming_commit(in, owner, what, sha, size, on_commit, loop, &err) < 0)
		return -1;
	cr_assert_eq(loop_run(loop, &ignored), 0);
	return failed ? -1 : 0;
}

static int commit(const char *s)
{
	return commit_as("owner", id, sha_of(s), strlen(s));
}

Test(blobs, known_hash)
{
	cr_assert_str_eq(sha_of("abc"), "ba7816bf8f01cfea414140de5dae2223"
					"b00361a396177a9cb410ff61f20015ad");
}

Test(blobs, names_are_not_paths)
{
	uint64_t size;

	for (size_t i = 0; i < 4; i++) {
		static const char *const bad[] = {"", "../../../../../../../../etc/pass",
						  "0123456789ABCDEF0123456789ABCDEF",
						  "00000000000000000000000000000000"};
		cr_assert_lt(incoming_append(in, "owner", bad[i], 0, "x", 1, &size, &err),
			     0);
		cr_assert_eq(err.id, ERRID_STORE_UPLOAD);
	}
	cr_assert_lt(blobs_open(b, "../uploads", &size, &err), 0);
	cr_assert_lt(blobs_open(b, sha_of("never"), &size, &err), 0);
	cr_assert_eq(err.id, ERRID_STORE_BLOB);
}

Test(blobs, a_hash_that_is_none_is_a_mistake_with_a_name)
{
	static const char *const bad[] = {"", "x", "../../../../../../../../etc/pass",
					  "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B9"
					  "34CA495991B7852B855"};

	for (size_t i = 0; i < 4; i++) {
		err = (struct err)ERR_INIT;
		cr_assert_lt(commit_as("owner", id, bad[i], 0), 0);
		cr_assert_eq(err.id, ERRID_SPEC_RANGE, "%s: %s", bad[i], err_text(&err));
	}
}

Test(blobs, another_owner_has_no_such_upload)
{
	uint64_t size;

	cr_assert_lt(put("tomb_1.1.1", 0, "x", &size), 0);
	cr_assert_eq(err.id, ERRID_STORE_UPLOAD);
	cr_assert_lt(commit_as("tomb_1.1.1", id, sha_of(""), 0), 0);
	cr_assert_eq(err.id, ERRID_STORE_UPLOAD);
}

Test(blobs, wrong_bytes_are_no_blob)
{
	uint64_t size;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_lt(commit("abcd"), 0);
	cr_assert_eq(err.id, ERRID_STORE_HASH);
	cr_assert_lt(commit("abd"), 0);
	cr_assert_eq(err.id, ERRID_STORE_HASH);
	cr_assert_eq(budget.used, 0);
	cr_assert_lt(put("owner", 3, "d", &size), 0);
	cr_assert_eq(err.id, ERRID_STORE_UPLOAD);
}

Test(blobs, gaps_and_limits)
{
	struct rlimit lim = {5, 5};
	uint64_t size = 9;

	cr_assert_lt(put("owner", 1, "x", &size), 0);
	cr_assert_eq(err.id, ERRID_RUN_GAP);
	cr_assert_eq(size, 0);
	budget.max = 4;
	cr_assert_lt(put("owner", 0, "12345", &size), 0);
	cr_assert_eq(err.id, ERRID_STORE_LIMIT);
	budget.max = 100;
	cr_assert_eq(put("owner", 0, "123", &size), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_assert_lt(put("owner", 3, "456", &size), 0);
	cr_assert_eq(err.id, ERRID_CORE_DISK_FULL);
	cr_assert_eq(budget.used, 3);
	cr_assert_eq(put("owner", 3, "45", &size), 0);
	cr_assert_eq(commit("12345"), 0, "%s", err.msg);
}

Test(blobs, parts_in_any_repetition_become_the_blob)
{
	uint64_t size;
	char got[8] = "";

	cr_assert_eq(put("owner", 0, "ab", &size), 0);
	cr_assert_eq(put("owner", 0, "ab", &size), 0);
	cr_assert_eq(put("owner", 1, "bcd", &size), 0);
	cr_assert_eq(size, 4);
	cr_assert_eq(commit("abcd"), 0, "%s", err.msg);
	int fd = blobs_open(b, sha_of("abcd"), &size, &err);
	cr_assert_geq(fd, 0);
	cr_assert_eq(read(fd, got, sizeof(got)), 4);
	cr_assert_str_eq(got, "abcd");
	fd_close(&fd);
	cr_assert_eq(budget.used, 4);
}

Test(blobs, an_upload_survives_a_restart)
{
	struct store_budget again = {.max = 1 << 20};
	uint64_t size;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	incoming_free(in);
	blobs_free(b);
	cr_assert_eq(blobs_new(data_fd, &again, &b, &err), 0);
	cr_assert_eq(incoming_new(loop, data_fd, &again, b, &in, &err), 0);
	cr_assert_eq(again.used, 3);
	cr_assert_eq(put("owner", 3, "def", &size), 0);
	cr_assert_eq(commit("abcdef"), 0, "%s", err.msg);
}

Test(blobs, the_same_bytes_are_stored_once)
{
	uint64_t size;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(commit("abc"), 0);
	cr_assert_eq(incoming_begin(in, "owner", &random_real, id, &err), 0);
	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(commit("abc"), 0);
	cr_assert_eq(budget.used, 3);
}

/* The disk changed it, or lost its end: the same bytes, sent again, take its place. */
Test(blobs, a_rotten_blob_is_healed_by_its_bytes)
{
	char path[128], got[8] = "";
	uint64_t size;

	for (int how = 0; how < 2; how++) {
		cr_assert_eq(put("owner", 0, "abc", &size), 0);
		cr_assert_eq(commit("abc"), 0);
		(void)snprintf(path, sizeof(path), "blobs/%.2s/%s", sha_of("abc"),
			       sha_of("abc"));
		int fd = openat(data_fd, path, O_WRONLY | O_CLOEXEC);
		cr_assert_geq(fd, 0);
		cr_assert_eq(how ? ftruncate(fd, 1) : (int)pwrite(fd, "X", 1, 1) - 1, 0);
		fd_close(&fd);
		cr_assert_eq(incoming_begin(in, "owner", &random_real, id, &err), 0);
		cr_assert_eq(put("owner", 0, "abc", &size), 0);
		cr_assert_eq(commit("abc"), 0, "%s", err.msg);
		fd = blobs_open(b, sha_of("abc"), &size, &err);
		cr_assert_geq(fd, 0);
		cr_assert_eq(read(fd, got, sizeof(got)), 3);
		cr_expect_str_eq(got, "abc");
		fd_close(&fd);
		cr_assert_eq(incoming_begin(in, "owner", &random_real, id, &err), 0);
	}
}

Test(blobs, collection_spares_the_named_and_the_young)
{
	usec_t later = clock_wall_usec() + 10 * USEC_PER_SEC;
	uint64_t size;
	unsigned n;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(commit("abc"), 0);
	const char *live[] = {sha_of("abc")};
	char fan[3] = {live[0][0], live[0][1]};
	cr_assert_eq(blobs_collect(b, fan, NULL, 0, 1, &n, &err), 0);
	cr_assert_eq(n, 0, "young");
	cr_assert_eq(blobs_collect(b, fan, live, 1, later, &n, &err), 0);
	cr_assert_eq(n, 0, "named");
	cr_assert_eq(blobs_touch(b, live[0], &size, &err), 0);
	cr_assert_eq(blobs_collect(b, "00", NULL, 0, later, &n, &err), 0);
	cr_assert_eq(n, 0, "another piece of the store");
	cr_assert_eq(blobs_collect(b, fan, NULL, 0, later, &n, &err), 0);
	cr_assert_eq(n, 1);
	cr_assert_eq(budget.used, 0);
	cr_assert_lt(blobs_touch(b, live[0], &size, &err), 0);
}

Test(blobs, forgotten_uploads_go)
{
	usec_t later = clock_wall_usec() + 10 * USEC_PER_SEC;
	uint64_t size;
	unsigned n;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	incoming_reap(in, 1, &n);
	cr_assert_eq(n, 0);
	incoming_reap(in, later, &n);
	cr_assert_eq(n, 1);
	cr_assert_eq(budget.used, 0);
}

/* ---- shares ---- */

static int begin(const char *owner, char out[UPLOAD_ID_SIZE])
{
	return incoming_begin(in, owner, &random_real, out, &err);
}

Test(blobs, a_lease_has_a_few_and_takes_its_own_place_only)
{
	char mine[UPLOADS_LEASE_MAX + 1][UPLOAD_ID_SIZE], other[UPLOAD_ID_SIZE];
	uint64_t size;

	cr_assert_eq(begin("tomb_1.2.1", other), 0);
	for (unsigned i = 0; i < UPLOADS_LEASE_MAX; i++)
		cr_assert_eq(begin("tomb_1.1.1", mine[i]), 0);
	cr_assert_eq(incoming_append(in, "tomb_1.1.1", mine[0], 0, "x", 1, &size, &err),
		     0);
	cr_assert_eq(begin("tomb_1.1.1", mine[UPLOADS_LEASE_MAX]), 0);
	/* the one that was idle longest went */
	cr_assert_lt(incoming_append(in, "tomb_1.1.1", mine[1], 0, "x", 1, &size, &err),
		     0);
	cr_assert_eq(err.id, ERRID_STORE_UPLOAD);
	cr_assert_eq(incoming_append(in, "tomb_1.1.1", mine[0], 1, "y", 1, &size, &err),
		     0);
	cr_assert_eq(incoming_append(in, "tomb_1.2.1", other, 0, "x", 1, &size, &err), 0);
	cr_assert_eq(put("owner", 0, "x", &size), 0);
}

Test(blobs, a_tomb_that_leaves_uploads_behind_loses_its_own)
{
	char owner[UPLOAD_OWNER_SIZE], some[UPLOAD_ID_SIZE], other[UPLOAD_ID_SIZE],
		first[UPLOAD_ID_SIZE];
	uint64_t size;

	cr_assert_eq(begin("tomb_2.1.1", other), 0);
	cr_assert_eq(begin("tomb_1.1.1", first), 0);
	for (unsigned job = 2; job <= UPLOADS_TOMB_MAX + 1; job++) {
		(void)snprintf(owner, sizeof(owner), "tomb_1.%u.1", job);
		cr_assert_eq(begin(owner, some), 0);
	}
	cr_assert_lt(incoming_append(in, "tomb_1.1.1", first, 0, "x", 1, &size, &err), 0);
	cr_assert_eq(incoming_append(in, owner, some, 0, "x", 1, &size, &err), 0);
	cr_assert_eq(incoming_append(in, "tomb_2.1.1", other, 0, "x", 1, &size, &err), 0);
}

Test(blobs, tombs_leave_the_person_a_share)
{
	char owner[UPLOAD_OWNER_SIZE], some[UPLOAD_ID_SIZE];
	unsigned n = 0;

	for (unsigned job = 1; job <= UPLOADS_MAX; job++) {
		(void)snprintf(owner, sizeof(owner), "tomb_%u.%u.1", job % 16, job);
		n += begin(owner, some) == 0;
	}
	cr_assert_eq(n, UPLOADS_MAX - UPLOADS_OWNER_MAX);
	cr_assert_eq(err.id, ERRID_STORE_LIMIT);
	for (n = 1; begin("owner", some) == 0; n++)
		;
	cr_assert_eq(n, UPLOADS_OWNER_MAX);
	cr_assert_eq(err.id, ERRID_STORE_LIMIT);
}

Test(blobs, tombs_leave_the_person_a_quarter_of_the_bytes)
{
	char mine[UPLOAD_ID_SIZE], theirs[UPLOAD_ID_SIZE];
	uint64_t size;

	budget.max = 100;
	cr_assert_eq(begin("tomb_1.1.1", theirs), 0);
	cr_assert_eq(begin("owner", mine), 0);
	cr_assert_eq(incoming_append(in, "tomb_1.1.1", theirs, 0, "x", 1, &size, &err),
		     0);
	budget.used = 74;
	cr_assert_eq(incoming_append(in, "tomb_1.1.1", theirs, 1, "x", 1, &size, &err),
		     0);
	cr_assert_lt(incoming_append(in, "tomb_1.1.1", theirs, 2, "x", 1, &size, &err),
		     0);
	cr_assert_eq(err.id, ERRID_STORE_LIMIT);
	err_clear(&err);
	cr_assert_eq(incoming_append(in, "owner", mine, 0, "0123456789", 10, &size, &err),
		     0, "%s", err.msg);
	cr_assert_eq(budget.used, 85);
}

Test(blobs, what_one_attempt_sends_is_bounded_by_its_own_idle_uploads)
{
	char first[UPLOAD_ID_SIZE], second[UPLOAD_ID_SIZE], path[128];
	uint64_t size;

	budget.max = UINT64_MAX / 2;
	cr_assert_eq(begin("tomb_1.1.1", first), 0);
	cr_assert_eq(begin("tomb_1.1.1", second), 0);
	/* as if it had been sent */
	(void)snprintf(path, sizeof(path), "%s/uploads/tomb_1.1.1-%s", dir, first);
	cr_assert_eq(truncate(path, (off_t)BLOB_MAX_BYTES), 0);
	cr_assert_eq(incoming_append(in, "tomb_1.1.1", first, 0, "x", 1, &size, &err), 0);
	cr_assert_eq(size, BLOB_MAX_BYTES);
	cr_assert_eq(incoming_append(in, "tomb_1.1.1", second, 0, "x", 1, &size, &err),
		     0);
	cr_assert_lt(access(path, F_OK), 0);
}

/* ---- slices ---- */

static unsigned turns;
static struct loop_timer *beat;

static void on_beat(void *arg UNUSED)
{
	turns++;
	loop_timer_arm(beat, 0);
}

Test(blobs, a_commit_of_much_is_many_turns_and_others_have_theirs_between)
{
	static const uint64_t much = (uint64_t)64 << 20;
	static const char of_zeros[] =
		"3b6a07d0d404fab4e23b6d34bc6696a6a312dd92821332385e5af7c01c421351";
	char path[128];

	budget.max = UINT64_MAX / 2;
	(void)snprintf(path, sizeof(path), "%s/uploads/owner-%s", dir, id);
	cr_assert_eq(truncate(path, (off_t)much), 0);
	beat = loop_timer_new(loop, on_beat, NULL);
	loop_timer_arm(beat, 0);
	cr_assert_eq(commit_as("owner", id, of_zeros, much), 0, "%s", err.msg);
	cr_assert_geq(turns, 100);
	loop_timer_free(beat);
}

Test(blobs, a_commit_that_is_said_again_is_answered_too)
{
	const char *sha = sha_of("abc");
	struct err ignored = ERR_INIT;
	uint64_t size;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(
			incoming_commit(in, "owner", id, sha, 3, on_commit, loop, &err),
			0);
	cr_assert_lt(
		incoming_commit(in, "owner", id, sha_of("abd"), 3, on_commit, loop, &err),
		0);
	cr_assert_lt(put("owner", 3, "d", &size), 0, "it grew while it was committed");
	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(loop_run(loop, &ignored), 0);
	cr_assert_eq(answers, 2);
	cr_assert_not(failed);
}

Test(blobs, who_waits_is_told_when_it_ends)
{
	uint64_t size;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(
		incoming_commit(in, "owner", id, sha_of("abc"), 3, on_commit, loop, &err),
		0);
	incoming_free(in);
	in = NULL;
	cr_assert_eq(answers, 1);
	cr_assert(failed);
}
