/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/broker/intents/registry_seen.h"

#include "common/str.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "b15f3bd2d1a0c8ce33b5b6d9f1a2e3c4d5f60718293a4b5c6d7e8f90a1b2"
#define FILE_PATH "~1/packages/4a/7c/" DIGITS "/tiny-1.0-py3-none-any.whl"

TestSuite(registry_seen, .timeout = 60);

static struct registry_seen *s;

static void begin(void)
{
	s = registry_seen_new();
}

static void end(void)
{
	registry_seen_free(s);
}

static void link_to(struct seen_page *p, const char *path)
{
	seen_page_link(p, path, strlen(path));
}

static uint64_t page_with(const char *name, const char *path)
{
	struct seen_page *p = seen_page_begin(s, name);

	link_to(p, path);
	return seen_page_commit(s, p);
}

/* So many directories that no other page has. */
static void big_page(const char *name, unsigned n)
{
	struct seen_page *p = seen_page_begin(s, name);
	char path[128];

	for (unsigned i = 0; i < n; i++) {
		cr_assert(str_fmt(path, sizeof(path), "~1/%s/%032x/x.whl", name, i) == 0);
		link_to(p, path);
	}
	(void)seen_page_commit(s, p);
}

Test(registry_seen, only_what_the_job_itself_was_shown, .init = begin, .fini = end)
{
	struct seen_by a = {0}, b = {0};

	cr_expect_not(seen_by_has(&a, s, FILE_PATH));
	(void)page_with("pypi tiny", FILE_PATH);
	cr_expect_not(seen_by_has(&a, s, FILE_PATH), "another job's page");
	cr_expect(seen_by_add(&a, s, "pypi tiny"));
	cr_expect_not(seen_by_add(&b, s, "pypi other"));
	cr_expect(seen_by_has(&a, s, FILE_PATH));
	cr_expect_not(seen_by_has(&b, s, FILE_PATH));
	/* what lies beside a file: its metadata, its signature; nothing else */
	cr_expect(seen_by_has(&a, s, FILE_PATH ".metadata"));
	cr_expect_not(seen_by_has(&a, s, "~1/packages/4a/7d/" DIGITS "/tiny-1.0.whl"));
	cr_expect_not(seen_by_has(&a, s, "~2/packages/4a/7c/" DIGITS "/tiny-1.0.whl"));
	cr_expect_not(
		seen_by_has(&a, s, "~1/packages/4a/7c/" DIGITS "/" DIGITS "/tiny.whl"));
	cr_expect_not(seen_by_has(&a, s, "simple/" DIGITS "/"));
	seen_by_done(&a);
	seen_by_done(&b);
}

Test(registry_seen, a_page_that_comes_again_has_what_it_has_now, .init = begin,
     .fini = end)
{
	struct seen_by a = {0};
	uint64_t id = page_with("pypi tiny", FILE_PATH);

	seen_by_add_id(&a, id);
	cr_expect_eq(page_with("pypi tiny", "~1/ab/" DIGITS "/tiny-2.0.whl"), id);
	cr_expect_not(seen_by_has(&a, s, FILE_PATH));
	cr_expect(seen_by_has(&a, s, "~1/ab/" DIGITS "/tiny-2.0.whl"));
	seen_by_done(&a);
}

Test(registry_seen, short_digits_need_no_page, .init = begin, .fini = end)
{
	struct seen_by a = {0};

	seen_by_add_id(&a, page_with("npm pad", "@acme/pad/-/pad-2.0.0.tgz"));
	seen_by_add_id(&a, page_with("p", "~1/ab/cd/x.whl"));
	cr_expect_not(seen_by_has(&a, s, "~1/ab/cd/x.whl"));
	cr_expect(seen_is_hex("0123456789abcdef", 16));
	cr_expect_not(seen_is_hex("0123456789abcde", 15));
	cr_expect_not(seen_is_hex("0123456789abcdeg", 16));
	seen_by_done(&a);
}

Test(registry_seen, memory_has_bounds, .init = begin, .fini = end)
{
	struct seen_by a = {0};
	char name[32];

	seen_by_add_id(&a, page_with("first", FILE_PATH));
	big_page("huge", SEEN_PAGE_MAX + 10);
	/* what a page has beyond its share is not known */
	cr_expect(seen_by_add(&a, s, "huge"));
	cr_expect(seen_by_has(&a, s, "~1/huge/0000000000000000000000000000ffff/x.whl"));
	cr_expect_not(seen_by_has(&a, s, "~1/huge/00000000000000000000000000010001/x"));
	/* the pages that were used last stay */
	for (unsigned i = 0; i < SEEN_ALL_MAX / SEEN_PAGE_MAX; i++) {
		cr_expect(seen_by_has(&a, s, FILE_PATH), "%u", i);
		cr_assert(str_fmt(name, sizeof(name), "big%u", i) == 0);
		big_page(name, SEEN_PAGE_MAX);
	}
	cr_expect_not(seen_by_add(&a, s, "huge"));
	cr_expect_not(seen_by_add(&a, s, "big0"));
	cr_expect(seen_by_has(&a, s, FILE_PATH));
	/* and of a job's pages those that it fetched last */
	for (unsigned i = 0; i < SEEN_JOB_PAGES_MAX; i++) {
		cr_assert(str_fmt(name, sizeof(name), "small%u", i) == 0);
		seen_by_add_id(&a, page_with(name, "x"));
	}
	cr_expect_eq(a.n, SEEN_JOB_PAGES_MAX);
	cr_expect_not(seen_by_has(&a, s, FILE_PATH));
	seen_by_done(&a);
}
