/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/glob.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(glob, .timeout = 30);

struct glob_case {
	const char *pattern, *path;
	bool match;
};

Test(glob, table)
{
	static const struct glob_case cases[] = {
		{"a", "a", true},
		{"a", "b", false},
		{"a", "a/b", false},
		{"*", "a", true},
		{"*", "a/b", false},
		{"*", ".hidden", true},
		{"?", "a", true},
		{"?", "/", false},
		{"a?c", "a/c", false},
		{"a?c", "abc", true},
		{"a/*", "a/b", true},
		{"a/*", "a/b/c", false},
		{"a/**", "a/b/c", true},
		{"a/**", "a", false},
		{"**", "a", true},
		{"**", "a/b/c", true},
		{"**/x", "x", true},
		{"**/x", "a/x", true},
		{"**/x", "a/b/x", true},
		{"**/x", "ax", false},
		{"**/x", "x/y", false},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "az", false},
		{"**.c", "src/deep/m.c", true},
		{"*.c", "src/m.c", false},
		{"**/*.c", "src/deep/m.c", true},
		{"**/*.c", "m.c", true},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "aXbY", false},
		{"***", "a/b", true},
		{"[a]", "a", false},
		{"[a]", "[a]", true},
		{"\\*", "\\x", true},
		{"", "a", false},
		{"*", "", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(glob_match(cases[i].pattern, cases[i].path), cases[i].match,
			     "'%s' on '%s'", cases[i].pattern, cases[i].path);
}

/* The classic that takes a backtracking matcher for ever. */
Test(glob, hostile_pattern_ends, .timeout = 20)
{
	char pattern[2001], path[2001];

	for (size_t i = 0; i < 2000; i += 2) {
		pattern[i] = '*';
		pattern[i + 1] = 'a';
	}
	pattern[2000] = '\0';
	memset(path, 'a', 2000);
	path[1999] = 'b';
	path[2000] = '\0';
	cr_assert_not(glob_match(pattern, path));
	for (size_t i = 0; i < 1998; i += 3)
		memcpy(pattern + i, "**/", 3);
	cr_assert_not(glob_match(pattern, path));
}
