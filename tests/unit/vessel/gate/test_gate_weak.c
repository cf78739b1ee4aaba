/* SPDX-License-Identifier: Apache-2.0 */
/* Families without a check digit or a form of their own: replaced, never alone refused. */
#define GATE_TEXTS_DEADLINE_USEC (600 * USEC_PER_SEC)
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/score.h"
#include <criterion/criterion.h>

TestSuite(gate_weak, .init = begin, .fini = end, .timeout = 60);

#define TOKEN "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"

static double score(const struct buf *b)
{
	return score_of(b->data, b->len);
}

/* Two addresses for each commit, each of another person. */
static void add_log(struct buf *b, unsigned commits)
{
	for (unsigned i = 0; i < commits; i++)
		buf_addf(b,
			 "commit %08x%08x%08x%08x%08x\n"
			 "Author: Jane Roe <jane%u@corp.io>\n\n    mend the door\n\n"
			 "    Signed-off-by: John Doe <john%u@corp.io>\n",
			 i * 2654435761u, i * 40503u, i, ~i, i * 97u, i, i);
}

static void add_drawn(struct buf *b, unsigned n)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	uint32_t seed = 9;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < 40; k++) {
			seed = seed * 1664525u + 1013904223u;
			buf_addc(b, alphabet[(seed >> 8) % 62]);
		}
		buf_adds(b, i % 2 ? "\n" : " and ");
	}
}

/* One strong finding is what it was, whatever stands around it. */
Test(gate_weak, a_token_among_them_is_refused)
{
	cleanup_buf struct buf b = new_buf();

	add_log(&b, 30);
	buf_adds(&b, "key: " TOKEN "\n");
	cr_expect_eq(score(&b), 1.0);
	cr_expect_eq(r.verdict, GATE_REFUSE);
}

/* Others still add up by themselves. */
Test(gate_weak, many_others_are_refused)
{
	cleanup_buf struct buf b = new_buf();

	for (unsigned i = 0; i < 12; i++)
		buf_addf(&b, "born %u.%u.19%02u\n", 1 + i, 1 + i, 40 + 3 * i);
	cr_expect_geq(score(&b), 0.7);
	cr_expect_eq(r.verdict, GATE_REFUSE);
}

Test(gate_weak, telephones_and_streets_are_replaced_however_many)
{
	static const unsigned counts[] = {3, 12, 200};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		cleanup_buf struct buf b = new_buf();

		for (unsigned k = 0; k < counts[i]; k++)
			buf_addf(&b, "%u Maple Street, call +49 30 9%06u\n", k + 1,
				 123457 * k % 1000000);
		(void)score(&b);
		cr_expect_eq(r.verdict, GATE_ANONYMISE, "%u: %f", counts[i], r.score);
		cr_expect_geq(r.n, 2 * counts[i]);
	}
}

Test(gate_weak, alone_they_are_replaced_however_many)
{
	static const unsigned counts[] = {2, 6, 60, 400, 1900};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		cleanup_buf struct buf b = new_buf();

		add_log(&b, counts[i]);
		(void)score(&b);
		cr_expect_eq(r.verdict, GATE_ANONYMISE, "%u commits: %f", counts[i],
			     r.score);
		cr_expect_geq(r.n, 2 * counts[i]);
		buf_reset(&b);
		add_drawn(&b, counts[i]);
		(void)score(&b);
		cr_expect_eq(r.verdict, GATE_ANONYMISE, "%u drawn by lot: %f", counts[i],
			     r.score);
	}
}

/* Nor do they carry what is no refusal by itself over the threshold. */
Test(gate_weak, with_one_other_it_is_the_other_that_counts)
{
	cleanup_buf struct buf b = new_buf();

	add_log(&b, 60);
	buf_adds(&b, "password = 'k9Qm#2Zr7Kt5W'\n");
	(void)score(&b);
	cr_expect_eq(r.verdict, GATE_ANONYMISE, "%f", r.score);
}

Test(gate_weak, where_nothing_can_be_replaced_between_the_thresholds_they_are_refused)
{
	struct gate_finding f[40] = {0};

	for (unsigned i = 0; i < 40; i++)
		f[i] = (struct gate_finding){
			.family = GATE_EMAIL, .severity = 0.4, .mac = {(uint8_t)i}};
	cr_expect_geq(gate_score_of(f, 40, 0, 0.7, 0.7), 0.7);
	cr_expect_lt(gate_score_of(f, 40, 0, 0.4, 0.7), 0.7);
	cr_expect_geq(gate_score_of(f, 40, 0, 0.4, 0.7), 0.4);
	/* nor does what went out before, unless there is another one now */
	cr_expect_lt(gate_score_of(f, 40, 5, 0.4, 0.7), 0.7);
	f[0].family = GATE_IDENTITY;
	cr_expect_geq(gate_score_of(f, 40, 5, 0.4, 0.7), 0.7);
}
