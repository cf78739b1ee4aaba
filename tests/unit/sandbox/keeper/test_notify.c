/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the supervisor: what a path leads to by its text. */
#include "sandbox/contract/paths.h"
#include "sandbox/keeper/notify.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

TestSuite(notify, .timeout = 20);

Test(notify, below_means_a_whole_name)
{
	cr_assert(paths_is_below("/a/b", "/a/b"));
	cr_assert(paths_is_below("/a/b/c", "/a/b"));
	cr_assert(paths_is_below("/a/b (deleted)/c", "/a/b (deleted)"));
	cr_assert_not(paths_is_below("/a/bc", "/a/b"));
	cr_assert_not(paths_is_below("/a", "/a/b"));
	cr_assert_not(paths_is_below("(unreachable)/a/b", "/a/b"));
	cr_assert_not(paths_is_below("/a/b (deleted)", "/a/b"));
}

static void leads(const char *path, const char *top, const char *rest)
{
	const char *got = notify_path_strip(path, top);

	if (!rest)
		cr_assert_null(got, "%s leads to %s: %s", path, top, got);
	else
		cr_assert_str_eq(got, rest, "%s in %s", path, top);
}

Test(notify, a_path_that_does_not_name_the_tree_leads_nowhere)
{
	leads("/home/u/.ssh/id", "/home/u/work", NULL);
	leads("/home/u/workshop/x", "/home/u/work", NULL);
	leads("/home/u", "/home/u/work", NULL);
	leads("/", "/home/u/work", NULL);
	leads("", "/home/u/work", NULL);
	leads("home/u/work", "/home/u/work", NULL);
	leads("/home/u/work2/../work3/x", "/home/u/work", NULL);
	leads("/../../..", "/home/u/work", NULL);
	leads("(unreachable)/home/u/work", "/home/u/work", NULL);
}

Test(notify, a_path_that_names_the_tree_leads_to_its_rest)
{
	leads("/home/u/work", "/home/u/work", ".");
	leads("/home/u/work/", "/home/u/work", ".");
	leads("/home/u/work/a/b", "/home/u/work", "a/b");
	leads("//home//u/./work//a/", "/home/u/work", "a/");
	leads("/home/u/x/../work/a", "/home/u/work", "a");
	leads("/../home/u/work/a", "/home/u/work", "a");
	/* What comes after is the kernel's to resolve. */
	leads("/home/u/work/../x", "/home/u/work", "../x");
	leads("/home/u/work/l/../../x", "/home/u/work", "l/../../x");
	leads("/proc/self/fd/7/x", "/proc/self", "fd/7/x");
}

Test(notify, a_path_of_any_length_is_no_problem)
{
	static char path[4 * PATH_MAX];

	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	leads(path, "/home/u/work", NULL);
	for (size_t i = 0; i + 3 < sizeof(path); i += 3)
		memcpy(path + i, "/..", 3);
	leads(path, "/home/u/work", NULL);
	for (size_t i = 0; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "/a", 2);
	leads(path, "/home/u/work", NULL);
}
