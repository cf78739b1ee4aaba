/* SPDX-License-Identifier: Apache-2.0 */
/* A question whose last part is a request of git's: what may never leave is found in its words and its ids. */
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>

TestSuite(gate_git, .init = begin, .fini = end, .timeout = 60);

static const struct gate_canary canary = {.data = "canary-5c1fd03a77", .len = 17};

static void look_at(const char *body, enum gate_part_kind kind, size_t len)
{
	const struct gate_part part[] = {
		{.data = "https://git.example/a.git/x", .len = 27, .kind = GATE_PART_URL},
		{.data = body, .len = len, .kind = kind}};
	const struct gate_input in = {
		.parts = part, .n_parts = 2, .canaries = &canary, .n_canaries = 1};

	gate_scan(g, &in, &r);
}

static bool has(enum gate_family f)
{
	for (size_t i = 0; i < r.n; i++)
		if (r.finding[i].family == f)
			return true;
	return false;
}

#define HAVE_A "0032have 63616e6172792d35633166643033613737000000\n"
#define HAVE_B "0032have 63616e6172792d3563316664000000000000000a\n"
#define FETCH "0011command=fetch0001"

Test(gate_git, what_may_never_leave_is_found_in_words_and_ids)
{
	static const struct {
		const char *body;
		enum gate_family family;
	} rows[] = {
		{FETCH "001fwant-ref canary-5c1fd03a77\n0000", GATE_CANARY},
		{FETCH HAVE_A "0000", GATE_CANARY},
		{FETCH "0029want-ref refs/heads/Project_BlueBird\n0000", GATE_EXACT},
		{FETCH "0036want-ref 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\n0000",
		 GATE_TOKEN},
	};

	add_term("Project_BlueBird");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		look_at(rows[i].body, GATE_PART_GIT_FETCH, strlen(rows[i].body));
		cr_expect_geq(r.score, 0.7, "%zu: %f", i, r.score);
		cr_expect_eq(r.verdict, GATE_REFUSE);
		cr_expect(has(rows[i].family), "%zu", i);
		cr_expect(r.n && r.finding[0].is_split && r.finding[0].part == 1);
		cr_expect_str_eq(r.note, "in the request itself");
	}
}

Test(gate_git, ids_and_what_is_weak_pass)
{
	char body[8192] = FETCH;
	size_t n = strlen(body);

	for (unsigned i = 0; i < 100; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
				      "0032have %08x%08x%08x%08x%08x\n", i * 2654435761u,
				      i * 40503u + 77u, ~i * 2246822519u, i ^ 0xdeadbeefu,
				      i * 3266489917u);
	n += (size_t)snprintf(body + n, sizeof(body) - n, "%s",
			      "0028want-ref refs/heads/joe@example.org\n0000");
	look_at(body, GATE_PART_GIT_FETCH, n);
	cr_expect_eq(r.verdict, GATE_PASS, "%f: %s", r.score, r.note);
	cr_expect_eq(r.n, 0);
}

Test(gate_git, what_is_no_request_is_unreadable_and_says_why)
{
	look_at("hello", GATE_PART_GIT_FETCH, 5);
	cr_expect_eq(r.score, 1.0);
	cr_expect(has(GATE_UNREADABLE));
	cr_expect(strstr(r.note, "its length is no number"), "%s", r.note);
	look_at("hello", GATE_PART_TEXT, 5);
	cr_expect_eq(r.score, 0.0);
	cr_expect_str_eq(r.note, "");
}
