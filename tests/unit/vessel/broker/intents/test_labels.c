/* SPDX-License-Identifier: Apache-2.0 */
#include "common/str.h"
#include "vessel/broker/intents/labels.h"

#include <criterion/criterion.h>
#include <string.h>

static enum labels_verdict ask(struct labels *l, job_id_t job, const char *host,
			       usec_t now)
{
	return labels_check(l, job, "wild.example", host, now);
}

Test(labels, data_written_as_names_is_cut_off)
{
	/* 4 KiB in base32, 40 bytes a label: a hundred names. */
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	struct labels *l = labels_new();
	unsigned passed = 0;
	uint64_t x = 88172645463325252U;

	for (unsigned i = 0; i < 100; i++) {
		char host[80];

		for (unsigned k = 0; k < 40; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			host[k] = digits[x % 32];
		}
		memcpy(host + 40, ".wild.example", 14);
		switch (ask(l, 1, host, 1)) {
		case LABELS_PASS:
			cr_assert_fail("%s is not seen", host);
		case LABELS_ODD:
			passed++;
			break;
		case LABELS_REFUSE:
			break;
		}
	}
	cr_assert_eq(passed, LABELS_WEIGHT_MAX / LABELS_WEIGHT_ODD);
	labels_free(l);
}

Test(labels, many_short_names_end_too)
{
	struct labels *l = labels_new();
	unsigned passed = 0;

	for (unsigned i = 0; i < 1000; i++) {
		char host[32];

		cr_assert_eq(str_fmt(host, sizeof(host), "n%u.wild.example", i), 0);
		if (ask(l, 1, host, 1) == LABELS_PASS)
			passed++;
	}
	cr_assert_eq(passed, LABELS_WEIGHT_MAX);
	/* What was counted goes on; another job and another wildcard have counts of their own. */
	cr_assert_eq(ask(l, 1, "n3.wild.example", 1), LABELS_PASS);
	cr_assert_eq(ask(l, 1, "new.wild.example", 1), LABELS_REFUSE);
	cr_assert_eq(ask(l, 2, "new.wild.example", 1), LABELS_PASS);
	cr_assert_eq(labels_check(l, 1, "other.example", "new.other.example", 1),
		     LABELS_PASS);
	/* A window later, or when the job is over, it begins anew. */
	cr_assert_eq(ask(l, 1, "new.wild.example", LABELS_WINDOW_USEC), LABELS_REFUSE);
	cr_assert_eq(ask(l, 1, "new.wild.example", LABELS_WINDOW_USEC + 1), LABELS_PASS);
	labels_forget(l, 2);
	labels_free(l);
}

Test(labels, more_jobs_than_are_watched_are_refused_not_forgotten)
{
	struct labels *l = labels_new();
	unsigned passed = 0;

	for (job_id_t job = 1; job <= 2000; job++)
		passed += ask(l, job, "a.wild.example", 1) == LABELS_PASS;
	cr_assert_eq(passed, 1024);
	labels_forget(l, 1);
	cr_assert_eq(ask(l, 2000, "a.wild.example", 1), LABELS_PASS);
	labels_free(l);
}

Test(labels, what_looks_made_up)
{
	static const char *const plain[] = {"api",
					    "static-assets-cdn",
					    "eu-west-1.storage",
					    "my-long-project-name",
					    "www",
					    "aaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	static const char *const odd[] = {"q7x2k9m4b1z8w5n3c6vd",
					  "4d2f8a01c97be6350f1d88a2",
					  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
					  "mfrggzdfmztwq2lknnwg23tpobyxe43u"};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		cr_assert_not(labels_is_odd(plain[i], strlen(plain[i])), "%s", plain[i]);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		cr_assert(labels_is_odd(odd[i], strlen(odd[i])), "%s", odd[i]);
}
