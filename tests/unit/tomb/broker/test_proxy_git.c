/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals in the form that git shows, and which requests have it. */
#include "tomb/broker/proxy_git.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(proxy_git, .timeout = 60);

Test(proxy_git, only_its_own_requests_are_gits)
{
	static const struct {
		const char *method, *target;
		enum git_request is;
	} rows[] = {
		{"GET", "/a.git/info/refs", GIT_NONE},
		{"GET", "/a.git/info/refs?service=git-upload-pack&x", GIT_NONE},
		{"GET", "/a.git/git-upload-pack", GIT_NONE},
		{"POST", "/a.git/git-upload-pack?", GIT_NONE},
		{"POST", "/a.git/info/refs?service=git-upload-pack", GIT_NONE},
		{"GET", "/a.git/info/refs?service=git-upload-pack", GIT_REFS},
		{"POST", "/a.git/git-upload-pack", GIT_FETCH},
		{"GET", "/a.git/info/refs?service=git-receive-pack", GIT_PUSH_REFS},
		{"POST", "/a.git/git-receive-pack", GIT_PUSH},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_eq(proxy_git_request(rows[i].method, rows[i].target),
			     rows[i].is, "%s %s", rows[i].method, rows[i].target);
}

static const struct proxy_refusal refusal = {.status = 403,
					     .code = "LYCH-WARD-001",
					     .title = "No",
					     .detail = "why: a.example:443",
					     .hint = "What to do."};

Test(proxy_git, a_refusal_is_shown_with_its_reason)
{
	struct buf b;
	const char *type;
	int status;

	buf_init(&b, 4096);
	proxy_git_refusal(GIT_REFS, &refusal, NULL, 0, &b, &status, &type);
	cr_expect_eq(status, 403);
	cr_expect_str_eq(type, "text/plain");
	cr_expect_str_eq(buf_str(&b),
			 "LYCH-WARD-001: No: why: a.example:443\nWhat to do.\n");
	buf_reset(&b);
	proxy_git_refusal(GIT_FETCH, &refusal, NULL, 0, &b, &status, &type);
	cr_expect_eq(status, 200);
	cr_expect_str_eq(type, "application/x-git-upload-pack-result");
	cr_expect_str_eq(buf_str(&b),
			 "003aERR LYCH-WARD-001: No: why: a.example:443\nWhat to do.\n");
	buf_done(&b);
}

#define IDS                                                                              \
	"0000000000000000000000000000000000000000 "                                      \
	"d37e568a7e406c8bb28067d1bee51988c311c1ee "

Test(proxy_git, a_push_is_told_of_each_ref)
{
	static const char asked[] =
		"0082" IDS "refs/heads/main\0 report-status side-band-64k"
		"0000PACK";
	static const char plain[] = "0062" IDS "refs/heads/a"
				    "0000";
	struct buf b;
	const char *type;
	int status;

	buf_init(&b, 4096);
	proxy_git_refusal(GIT_PUSH, &refusal, asked, sizeof(asked) - 1, &b, &status,
			  &type);
	cr_expect_eq(status, 200);
	cr_expect_str_eq(type, "application/x-git-receive-pack-result");
	cr_expect_str_eq(buf_str(&b),
			 "0037\2LYCH-WARD-001: No: why: a.example:443\nWhat to do.\n"
			 "0045\1"
			 "0018unpack LYCH-WARD-001"
			 "0024ng refs/heads/main LYCH-WARD-001"
			 "0000"
			 "0000");
	buf_reset(&b);
	proxy_git_refusal(GIT_PUSH, &refusal, plain, sizeof(plain) - 1, &b, &status,
			  &type);
	cr_expect_str_eq(buf_str(&b), "0018unpack LYCH-WARD-001"
				      "0021ng refs/heads/a LYCH-WARD-001"
				      "0000");
	/* of one of which nothing was read, only why */
	buf_reset(&b);
	proxy_git_refusal(GIT_PUSH, &refusal, "", 0, &b, &status, &type);
	cr_expect_eq(status, 200);
	cr_expect_str_eq(buf_str(&b),
			 "0037\2LYCH-WARD-001: No: why: a.example:443\nWhat to do.\n"
			 "0021\1"
			 "0018unpack LYCH-WARD-001"
			 "0000"
			 "0000");
	/* what is no push has no report: a status and a text */
	for (size_t n = 1; n < sizeof(plain) - 5; n++) {
		buf_reset(&b);
		proxy_git_refusal(GIT_PUSH, &refusal, plain, n, &b, &status, &type);
		cr_expect_eq(status, 403, "%zu", n);
	}
	buf_done(&b);
}
