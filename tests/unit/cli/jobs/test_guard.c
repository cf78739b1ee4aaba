/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jobs/guard.h"

#include <criterion/criterion.h>

TestSuite(guard, .timeout = 20);

/* Through whole jobs: tests/integration/cli/test_inputs.sh. */
Test(guard, patterns_are_those_of_gitignore)
{
	static const struct {
		const char *pattern, *path;
		bool is_dir, means;
	} c[] = {
		{"a", "a", false, true},	{"a", "b/a", false, true},
		{"a", "a/b", false, true},	{"a", "x/a/b", false, true},
		{"a", "ab", false, false},	{"A", "a", false, false},
		{"*.o", "x/y.o", false, true},	{"*.o", "x.o/y", false, true},
		{"*", "x/y", false, true},	{"/a", "a", false, true},
		{"/a", "a/b", false, true},	{"/a", "b/a", false, false},
		{"a/b", "a/b", false, true},	{"a/b", "a/b/c", false, true},
		{"a/b", "x/a/b", false, false}, {"**/b", "b", false, true},
		{"**/b", "x/y/b", false, true}, {"a/**", "a/x/y", false, true},
		{"a/*", "a/x/y", false, true},	{"a/*/y", "a/x/y", false, true},
		{"a/?", "a/xy", false, false},	{"a/", "a", false, false},
		{"a/", "a", true, true},	{"a/", "x/a", true, true},
		{"a/", "x/a/f", false, true},	{"/a/", "x/a/f", false, false},
		{"a/b/", "a/b", false, false},	{"", "a", false, false},
		{"/", "a", false, false},	{"a", "", true, false},
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		cr_expect_eq(guard_pattern_means(c[i].pattern, c[i].path, c[i].is_dir),
			     c[i].means, "'%s' and '%s'", c[i].pattern, c[i].path);
}
