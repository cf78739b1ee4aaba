/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals as a pure thing: what is none, how many there are, and that a word allows what it is about. */
#include "common/str.h"
#include "vessel/broker/proposals.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(proposals, .timeout = 60);

static struct ward_ask ask_of(const char *host, const char *path)
{
	return (struct ward_ask){.identity = "owner",
				 .target = WARD_HOST,
				 .https = true,
				 .host = host,
				 .port = 443,
				 .method = "GET",
				 .path = path};
}

static uint64_t note(struct proposals *p, job_id_t job, const struct ward_ask *ask,
		     struct proposals_made *made)
{
	bool is_new;

	return proposals_note(p, job, 1, ask, 7, made, &is_new);
}

Test(proposals, what_is_none)
{
	struct proposals *p = proposals_new();
	struct proposals_made made = {0};
	char path[PROPOSAL_PATH_MAX_BYTES + 2];
	struct ward_ask no[12];
	size_t n = 0;

	for (size_t i = 0; i < 12; i++)
		no[i] = ask_of("a.example", "/x");
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	no[n++].target = WARD_PORTAL;
	no[n++].target = WARD_REGISTRY;
	no[n++].https = false;
	no[n++].port = 8443;
	no[n++].host = "*.example";
	no[n++].host = "single";
	no[n++].host = "127.0.0.1";
	no[n++].host = "::1";
	no[n++].host = "\xd0\xb0.example";
	no[n++].path = "x";
	no[n++].path = path;
	no[n++].method = "AMETHODTHATISTOOLONG";
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(note(p, 1, &no[i], &made), 0, "%zu", i);
	cr_assert_eq(proposals_count(p), 0);
	cr_assert_eq(made.n, 0);
	proposals_free(p);
}

Test(proposals, ten_thousand_are_32)
{
	struct proposals *p = proposals_new();
	struct proposals_made made = {0};
	char path[32];

	for (unsigned i = 0; i < 10000; i++) {
		(void)snprintf(path, sizeof(path), "/%u", i);
		struct ward_ask ask = ask_of("a.example", path);
		uint64_t number = note(p, 1, &ask, &made);

		cr_assert_eq(number != 0, i < PROPOSALS_JOB_MAX);
		/* dropping does not make room */
		if (number)
			cr_assert_eq(proposals_set(p, number, PROPOSAL_DROPPED, NULL), 0);
	}
	cr_assert_eq(proposals_count(p), PROPOSALS_JOB_MAX);
	proposals_free(p);
}

/* Nobody's flood takes what was allowed to another. */
Test(proposals, what_is_allowed_stays)
{
	struct proposals *p = proposals_new();
	struct proposals_made made = {0};
	const struct ward_ask mine = ask_of("a.example", "/mine");
	uint64_t number = note(p, 1, &mine, &made);
	char path[32];

	cr_assert_eq(proposals_set(p, number, PROPOSAL_JOB, NULL), 0);
	for (unsigned i = 0; i < 3 * PROPOSALS_MAX; i++) {
		struct proposals_made own = {0};

		(void)snprintf(path, sizeof(path), "/%u", i);
		struct ward_ask ask = ask_of("a.example", path);

		cr_assert_neq(note(p, 2 + (job_id_t)(i / 16), &ask, &own), 0);
	}
	cr_assert_eq(proposals_count(p), PROPOSALS_MAX);
	cr_assert_eq(proposals_take(p, 1, 1, &mine), number);
	proposals_free(p);
}

Test(proposals, a_word_is_about_one_thing)
{
	struct proposals *p = proposals_new();
	struct proposals_made made = {0};
	const struct ward_ask ask = ask_of("a.example", "/x");
	struct ward_ask other[7];
	uint64_t number = note(p, 1, &ask, &made);

	for (size_t i = 0; i < 7; i++)
		other[i] = ask;
	other[0].path = "/x/";
	other[1].path = "/X";
	other[2].host = "b.a.example";
	other[3].method = "HEAD";
	other[4].https = false;
	other[5].port = 80;
	other[6].target = WARD_PORTAL;
	cr_assert_eq(proposals_take(p, 1, 1, &ask), 0, "nobody has allowed it");
	cr_assert_eq(proposals_set(p, number, PROPOSAL_ONCE, NULL), 0);
	for (size_t i = 0; i < 7; i++)
		cr_assert_eq(proposals_take(p, 1, 1, &other[i]), 0, "%zu", i);
	cr_assert_eq(proposals_take(p, 2, 1, &ask), 0, "another job");
	cr_assert_eq(proposals_take(p, 1, 2, &ask), 0, "another attempt");
	cr_assert_eq(proposals_take(p, 1, 1, &ask), number);
	cr_assert_eq(proposals_take(p, 1, 1, &ask), 0, "a second time");
	cr_assert_lt(proposals_set(p, number, PROPOSAL_ONCE, NULL), 0, "not shown");
	cr_assert_eq(note(p, 1, &ask, &made), number, "asked for again");
	cr_assert_eq(proposals_set(p, number, PROPOSAL_JOB, NULL), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(proposals_take(p, 1, 1, &ask), number);
	cr_assert_eq(proposals_set(p, number, PROPOSAL_DROPPED, NULL), 0);
	cr_assert_eq(proposals_take(p, 1, 1, &ask), 0);
	cr_assert_eq(made.n, 1);
	proposals_free(p);
}
