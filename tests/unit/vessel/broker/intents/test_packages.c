/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/intents/packages.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES 10000

static char dir[] = "/tmp/test-packages-XXXXXX";
static int data_fd = -1;
static struct packages *p;
static struct err err;
static usec_t now = 1000 * USEC_PER_SEC;

static usec_t get_now(void *ctx)
{
	(void)ctx;
	return now;
}

static const struct clock_ops clock_fake = {get_now, get_now, NULL};

static void open_cache(uint64_t max)
{
	packages_free(p);
	p = NULL;
	cr_assert_eq(packages_new(data_fd, max, &clock_fake, &p, &err), 0, "%s", err.msg);
}

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(dir));
	data_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	open_cache(MAX_BYTES);
}

static void tear_down(void)
{
	packages_free(p);
	cr_assert_eq(fs_remove_beneath(data_fd, "packages", &err), 0);
	fd_close(&data_fd);
	(void)rmdir(dir);
}

TestSuite(packages, .timeout = 20, .init = set_up, .fini = tear_down);

static int put(const char *key, const char *body)
{
	struct packages_write *w = NULL;

	now += USEC_PER_SEC;
	if (packages_begin(p, key, "text/plain", &w, &err) < 0)
		return -1;
	if (packages_add(w, body, strlen(body), &err) < 0) {
		packages_abort(w);
		return -1;
	}
	return packages_commit(w, &err);
}

static bool has(const char *key, const char *body)
{
	struct packages_hit hit;
	char got[MAX_BYTES + 1] = "";
	bool same;

	now += USEC_PER_SEC;
	if (!packages_find(p, key, USEC_INFINITY, &hit))
		return false;
	same = str_eq(hit.content_type, "text/plain") &&
	       pread(hit.fd, got, MAX_BYTES, PACKAGES_HEAD) == (ssize_t)hit.len &&
	       (!body || str_eq(got, body));
	fd_close(&hit.fd);
	cr_expect(same, "%s is '%.20s'", key, got);
	return true;
}

/* Of the files in the directory. */
static unsigned count(uint64_t *bytes)
{
	int fd = openat(data_fd, "packages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fdopendir(fd);
	const struct dirent *e;
	unsigned n = 0;

	*bytes = 0;
	while ((e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(fd, e->d_name, &st, 0) < 0)
			continue;
		n++;
		*bytes += (uint64_t)st.st_size;
	}
	return n;
}

Test(packages, nothing_is_found_before_it_is_whole)
{
	struct packages_write *w;
	uint64_t bytes;

	cr_expect_not(has("a", NULL));
	cr_assert_eq(packages_begin(p, "a", "text/plain", &w, &err), 0);
	cr_assert_eq(packages_add(w, "half", 4, &err), 0);
	cr_expect_not(has("a", NULL));
	packages_abort(w);
	cr_expect_not(has("a", NULL));
	cr_expect_eq(count(&bytes), 0);
	cr_expect_eq(packages_used(p), 0);
	cr_assert_eq(put("a", "whole"), 0);
	cr_expect(has("a", "whole"));
	cr_expect_not(has("b", NULL));
}

Test(packages, the_size_is_capped_and_the_least_recently_used_goes)
{
	char body[2501];
	uint64_t bytes;

	memset(body, 'x', 2500);
	body[2500] = '\0';
	cr_assert_eq(put("a", body), 0);
	cr_assert_eq(put("b", body), 0);
	cr_assert_eq(put("c", body), 0);
	cr_expect(has("a", body));
	cr_assert_eq(put("d", body), 0); /* 4 x 2756 are too many */
	cr_expect_not(has("b", NULL));
	cr_expect(has("a", body) && has("c", body) && has("d", body));
	cr_expect_eq(count(&bytes), 3);
	cr_expect(bytes <= MAX_BYTES && bytes == packages_used(p));
}

Test(packages, what_can_never_fit_is_refused)
{
	char *body = xcalloc(1, MAX_BYTES + 1);

	memset(body, 'x', MAX_BYTES);
	cr_assert_eq(put("small", "s"), 0);
	cr_expect(put("big", body) < 0);
	cr_expect_eq(err.id, ERRID_STORE_LIMIT);
	cr_expect_not(has("big", NULL));
	cr_expect_eq(put("next", "n"), 0);
	free(body);
}

Test(packages, it_survives_a_restart_but_not_a_half_written_file)
{
	uint64_t bytes;
	int fd;

	cr_assert_eq(put("a", "kept"), 0);
	fd = openat(data_fd, "packages/tmp-7", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && write(fd, "half", 4) == 4);
	fd_close(&fd);
	open_cache(MAX_BYTES);
	cr_expect_eq(count(&bytes), 1);
	cr_expect_eq(packages_used(p), bytes);
	cr_expect(has("a", "kept"));
	open_cache(PACKAGES_HEAD);
	cr_expect_not(has("a", NULL));
	cr_expect_eq(count(&bytes), 0);
}

Test(packages, damage_is_found_before_it_is_given_out)
{
	static const struct {
		off_t at;
		const char *bytes;
	} row[] = {{PACKAGES_HEAD + 1, "X"}, {0, "l\0"}, {3, "x"}, {15, "9"}, {17, "f"}};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		cleanup_dir DIR *d = NULL;
		const struct dirent *e;
		uint64_t bytes;
		int fd;

		cr_assert_eq(put("a", "kept whole"), 0);
		fd = openat(data_fd, "packages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		d = fdopendir(fd);
		while ((e = readdir(d))) {
			cleanup_close int f = -1;

			if (e->d_name[0] == '.')
				continue;
			f = openat(fd, e->d_name, O_WRONLY | O_CLOEXEC);
			cr_assert(pwrite(f, row[i].bytes, 2, row[i].at) == 2);
		}
		open_cache(MAX_BYTES);
		cr_expect_not(has("a", NULL), "row %zu", i);
		cr_expect_eq(count(&bytes), 0);
	}
}

Test(packages, an_index_grows_old)
{
	struct packages_hit hit;

	cr_assert_eq(put("index", "i"), 0);
	cr_assert(packages_find(p, "index", 5 * USEC_PER_SEC, &hit));
	fd_close(&hit.fd);
	now += 6 * USEC_PER_SEC;
	cr_expect_not(packages_find(p, "index", 5 * USEC_PER_SEC, &hit));
	cr_assert_eq(put("index", "newer"), 0);
	cr_expect(has("index", "newer"));
	now -= 3600 * USEC_PER_SEC; /* a clock that was set back trusts nothing */
	cr_expect_not(packages_find(p, "index", 5 * USEC_PER_SEC, &hit));
}

Test(packages, an_odd_content_type_is_not_kept)
{
	struct packages_write *w;
	char longer[PACKAGES_TYPE_MAX + 2];

	cr_expect(packages_begin(p, "a", "text/plain\nx", &w, &err) < 0);
	memset(longer, 't', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	cr_expect(packages_begin(p, "a", longer, &w, &err) < 0);
	cr_expect_eq(packages_used(p), 0);
}
