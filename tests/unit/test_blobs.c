/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/net/sha256.h"
#include "common/str.h"
#include "vessel/blobs.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static char dir[] = "/tmp/test-blobs-XXXXXX";
static int data_fd = -1;
static struct store_budget budget;
static struct blobs *b;
static struct err err;
static char id[UPLOAD_ID_SIZE];

static void set_up(void)
{
	budget = (struct store_budget){.max = 1 << 20};
	cr_assert_not_null(mkdtemp(dir));
	data_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(blobs_new(data_fd, &budget, &b, &err), 0, "%s", err.msg);
	cr_assert_eq(blobs_upload_begin(b, "owner", &random_real, id, &err), 0);
}

static void tear_down(void)
{
	blobs_free(b);
	cr_assert_eq(fs_remove_beneath(data_fd, "blobs", &err), 0);
	cr_assert_eq(fs_remove_beneath(data_fd, "uploads", &err), 0);
	fd_close(&data_fd);
	(void)rmdir(dir);
}

TestSuite(blobs, .timeout = 10, .init = set_up, .fini = tear_down);

static int put(const char *owner, uint64_t at, const char *s, uint64_t *size)
{
	return blobs_upload_append(b, owner, id, at, s, strlen(s), size, &err);
}

static const char *sha_of(const char *s)
{
	static char hex[SHA256_HEX_SIZE];
	uint8_t raw[SHA256_SIZE];

	sha256_of(s, strlen(s), raw);
	hex_encode(raw, sizeof(raw), hex);
	return hex;
}

static int commit(const char *s)
{
	return blobs_upload_commit(b, "owner", id, sha_of(s), strlen(s), &err);
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
		cr_assert_lt(
			blobs_upload_append(b, "owner", bad[i], 0, "x", 1, &size, &err),
			0);
		cr_assert_eq(err.id, ERRID_STORE_UPLOAD);
	}
	cr_assert_lt(blobs_open(b, "../uploads", &size, &err), 0);
	cr_assert_lt(blobs_open(b, sha_of("never"), &size, &err), 0);
	cr_assert_eq(err.id, ERRID_STORE_BLOB);
}

Test(blobs, another_owner_has_no_such_upload)
{
	uint64_t size;

	cr_assert_lt(put("1.1", 0, "x", &size), 0);
	cr_assert_eq(err.id, ERRID_STORE_UPLOAD);
	cr_assert_lt(blobs_upload_commit(b, "1.1", id, sha_of(""), 0, &err), 0);
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
	blobs_free(b);
	cr_assert_eq(blobs_new(data_fd, &again, &b, &err), 0);
	cr_assert_eq(again.used, 3);
	cr_assert_eq(put("owner", 3, "def", &size), 0);
	cr_assert_eq(commit("abcdef"), 0, "%s", err.msg);
}

Test(blobs, the_same_bytes_are_stored_once)
{
	uint64_t size;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(commit("abc"), 0);
	cr_assert_eq(blobs_upload_begin(b, "owner", &random_real, id, &err), 0);
	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(commit("abc"), 0);
	cr_assert_eq(budget.used, 3);
}

Test(blobs, collection_spares_the_named_and_the_young)
{
	usec_t later = clock_wall_usec() + 10 * USEC_PER_SEC;
	uint64_t size;
	unsigned n;

	cr_assert_eq(put("owner", 0, "abc", &size), 0);
	cr_assert_eq(commit("abc"), 0);
	const char *live[] = {sha_of("abc")};
	cr_assert_eq(blobs_collect(b, NULL, 0, 1, &n, &err), 0);
	cr_assert_eq(n, 0, "young");
	cr_assert_eq(blobs_collect(b, live, 1, later, &n, &err), 0);
	cr_assert_eq(n, 0, "named");
	cr_assert_eq(blobs_touch(b, live[0], &size, &err), 0);
	cr_assert_eq(blobs_collect(b, NULL, 0, later, &n, &err), 0);
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
	cr_assert_eq(blobs_reap_uploads(b, 1, &n, &err), 0);
	cr_assert_eq(n, 0);
	cr_assert_eq(blobs_reap_uploads(b, later, &n, &err), 0);
	cr_assert_eq(n, 1);
	cr_assert_eq(budget.used, 0);
}
