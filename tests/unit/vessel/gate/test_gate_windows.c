/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate reads some texts in windows: what is near a character that is folded, near a word of
 * documents, near the border of two parts. Where a window ends nothing is cut that would look drawn
 * by lot then, and what stands in one is not read on into the next.
 */
#include "tests/support/gate_texts.h"

#include "common/cleanup.h"
#include "vessel/gate/gate.h"

TestSuite(gate_windows, .timeout = 60);

#define INTEGRITY                                                                        \
	"\"integrity\": \"sha512-"                                                       \
	"sklJevrDEzBWyzKQZqX08C5lwAU1XscLog2fxPPM5h9L1bkKaZGSJw0sttOdB4x4"               \
	"JBMtmbNq9y89eq/YyQHHwQ==\",\n"
#define COMMIT "commit 779039a4e00f6d1bd2ccae405fe165ca9026fdc1\n"
#define TOKEN "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"

/* Many short words, so many bytes. */
static void add_words(struct buf *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_addc(b, i % 6 == 5 ? ' ' : "a word or so "[i % 6]);
}

static void expect_let_go(const char *before, const char *what, const char *behind)
{
	for (size_t n = 300; n < 700; n += 3) {
		cleanup_buf struct buf b = new_buf();

		buf_adds(&b, before);
		add_words(&b, n);
		buf_addf(&b, "\n%s", what);
		add_words(&b, before[0] ? 0 : n);
		buf_adds(&b, behind);
		cr_expect_eq(score_of(b.data, b.len), 0, "%zu: %f, %s", n, r.score,
			     r.n ? r.finding[0].rule : "");
	}
}

Test(gate_windows, a_secret_near_their_ends_is_found, .init = begin, .fini = end)
{
	for (size_t n = 300; n < 700; n += 3) {
		cleanup_buf struct buf b = new_buf();

		buf_adds(&b, "Jos\xc3\xa9 ");
		add_words(&b, n);
		buf_adds(&b, "\nthe token "
			     "g\xe2\x80\x8b"
			     "hp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
		cr_expect_eq(score_of(b.data, b.len), 1.0, "%zu", n);
	}
}

Test(gate_windows, a_digest_at_their_ends_is_one, .init = begin, .fini = end)
{
	expect_let_go("Jos\xc3\xa9 ", INTEGRITY, "");
	expect_let_go("Jos\xc3\xa9 ", COMMIT, "");
	expect_let_go("", INTEGRITY, "Jos\xc3\xa9");
	expect_let_go("", COMMIT, "Jos\xc3\xa9");
}

/* An agent calls one tool many times: the names of each key in a row are no base64 over lines, and
 * what it ends with is no part of what its next text begins with, though that be half a digest. */
Test(gate_windows, rows_of_parts_are_apart, .init = begin, .fini = end)
{
	enum { TURNS = 40 };
	struct gate_part p[3 * TURNS] = {{0}};
	struct gate_tail before[] = {
		{.tag = 1}, {.tag = 2}, {.tag = 3, .len = GATE_TAIL_BYTES}};
	const struct gate_input in = {
		.parts = p, .n_parts = 3 * TURNS, .tails = before, .n_tails = 3};

	for (; before[0].len + 8 <= GATE_TAIL_BYTES; before[0].len += 8)
		memcpy(before[0].data + before[0].len, "function", 8);
	for (; before[1].len + 5 <= GATE_TAIL_BYTES; before[1].len += 5)
		memcpy(before[1].data + before[1].len, "shell", 5);
	for (size_t n = 170; n < 230; n++) {
		cleanup_buf struct buf text = new_buf();

		buf_adds(&text, "      " INTEGRITY);
		add_words(&text, n);
		memcpy(before[2].data, text.data + text.len - GATE_TAIL_BYTES,
		       GATE_TAIL_BYTES);
		for (size_t i = 0; i < 3 * TURNS; i += 3) {
			p[i] = (struct gate_part){.data = "function", .len = 8, .tag = 1};
			p[i + 1] =
				(struct gate_part){.data = "shell", .len = 5, .tag = 2};
			p[i + 2] = (struct gate_part){
				.data = text.data, .len = text.len, .tag = 3};
		}
		gate_scan(g, &in, &r);
		cr_expect_eq(r.score, 0, "%zu: %f, %s", n, r.score,
			     r.n ? r.finding[0].rule : "");
	}
}

Test(gate_windows, a_token_in_two_parts_of_a_row_is_found, .init = begin, .fini = end)
{
	const struct gate_part p[] = {
		{.data = "function", .len = 8, .tag = 1},
		{.data = "so: " TOKEN, .len = 24, .tag = 3},
		{.data = "shell", .len = 5, .tag = 2},
		{.data = &TOKEN[20], .len = sizeof(TOKEN) - 21, .tag = 3},
	};
	const struct gate_input in = {.parts = p, .n_parts = 4};

	gate_scan(g, &in, &r);
	cr_expect_eq(r.score, 1.0);
}
