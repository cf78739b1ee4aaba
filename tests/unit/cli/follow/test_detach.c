/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow/detach.h"

#include "common/mem.h"
#include <criterion/criterion.h>
#include <string.h>

#define KEYS "\x1d"

/* Typed in reads that end at each '|'. */
static void expect(const char *typed, const char *job, bool left)
{
	char got[64] = "";
	size_t len = 0;
	bool prefixed = false, is_left = false;

	for (const char *at = typed; !is_left; at++) {
		size_t n = strcspn(at, "|"), kept;
		char part[64];

		memcpy(part, at, n);
		memset(part + n, '#', sizeof(part) - n);
		kept = detach_keys(&prefixed, part, n, &is_left);
		cr_assert_leq(kept, n + 1);
		cr_assert_eq(part[n + 1], '#', "no byte behind the room");
		memcpy(got + len, part, kept);
		len += kept;
		at += n;
		if (!*at)
			break;
	}
	cr_expect_str_eq(got, job, "%s", typed);
	cr_expect_eq(is_left, left, "%s", typed);
}

Test(detach, what_is_for_the_job_and_what_leaves)
{
	static const struct {
		const char *typed, *job;
		bool left;
	} cases[] = {
		{"plain d", "plain d", false},
		{KEYS "d", "", true},
		{"ls" KEYS "dx", "ls", true},
		{KEYS KEYS, KEYS, false},
		{KEYS KEYS "d", KEYS "d", false},
		{KEYS KEYS KEYS "d", KEYS, true},
		{KEYS "x", KEYS "x", false},
		{"a" KEYS "xb", "a" KEYS "xb", false},
		{KEYS "|d", "", true},
		{"a" KEYS "|xyz", "a" KEYS "xyz", false},
		{KEYS "|" KEYS "|d", KEYS "d", false},
		{KEYS "|x|" KEYS "|d", KEYS "x", true},
		{KEYS "||d", "", true},
		{KEYS "x" KEYS "y|" KEYS "|z", KEYS "x" KEYS "y" KEYS "z", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect(cases[i].typed, cases[i].job, cases[i].left);
}
