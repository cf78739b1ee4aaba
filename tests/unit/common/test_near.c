/* SPDX-License-Identifier: Apache-2.0 */
#include "common/attr.h"
#include "common/near.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *meant(const char *word)
{
	static const char *const words[] = {"status", "run",	   "jobs",   "show",
					    "why",    "logs",	   "cancel", "rm",
					    "retry",  "artifacts", "audit",  "secret",
					    "bind",   "unbind",	   "json"};
	struct near n = {.word = word, .len = strlen(word)};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		near_offer(&n, words[i]);
	return n.best ? n.best : "";
}

Test(near, what_is_near_to_nothing_is_no_guess)
{
	char longest[NEAR_WORD_MAX + 2];

	memset(longest, 'j', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	cr_expect_str_eq(meant(""), "");
	cr_expect_str_eq(meant("x"), "");
	cr_expect_str_eq(meant("rn"), "");
	cr_expect_str_eq(meant("frobnicate"), "");
	cr_expect_str_eq(meant("delete"), "");
	cr_expect_str_eq(meant(longest), "");
	cr_expect_eq(near_distance(longest, NEAR_WORD_MAX + 1, "j", 1), (unsigned)-1);
}

Test(near, a_slip_of_the_hand_is_understood)
{
	cr_expect_str_eq(meant("stauts"), "status");
	cr_expect_str_eq(meant("sstatus"), "status");
	cr_expect_str_eq(meant("jbos"), "jobs");
	cr_expect_str_eq(meant("job"), "jobs");
	cr_expect_str_eq(meant("lgos"), "logs");
	cr_expect_str_eq(meant("rnu"), "run");
	cr_expect_str_eq(meant("artefacts"), "artifacts");
	cr_expect_str_eq(meant("art"), "artifacts");
	cr_expect_str_eq(meant("secretes"), "secret");
	cr_expect_str_eq(meant("jsno"), "json");
	cr_expect_str_eq(meant("ubnind"), "unbind");
}

Test(near, each_kind_of_slip_counts_one)
{
	static const struct {
		const char *a, *b;
		unsigned d;
	} cases[] = {
		{"", "", 0},	    {"", "abc", 3},	 {"abc", "abc", 0},
		{"abc", "abxc", 1}, {"abc", "ac", 1},	 {"abc", "abd", 1},
		{"abc", "acb", 1},  {"abcd", "badc", 2}, {"kitten", "sitting", 3},
		{"abc", "xyz", 3},  {"ca", "abc", 3},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *a = cases[i].a, *b = cases[i].b;

		cr_expect_eq(near_distance(a, strlen(a), b, strlen(b)), cases[i].d,
			     "%s %s", a, b);
		cr_expect_eq(near_distance(b, strlen(b), a, strlen(a)), cases[i].d,
			     "%s %s", b, a);
	}
}
