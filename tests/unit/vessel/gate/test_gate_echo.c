/* SPDX-License-Identifier: Apache-2.0 */
/* What the other side gave, and gets back: registered terms and canaries count in it, one by one and in a row. */
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>

TestSuite(gate_echo, .init = begin, .fini = end, .timeout = 60);

static bool has(enum gate_family f)
{
	for (size_t i = 0; i < r.n; i++)
		if (r.finding[i].family == f)
			return true;
	return false;
}

/* The digits of a file's directory came from the registry; a term in them did not. */
Test(gate_echo, what_is_given_back_may_hold_no_term_and_no_canary)
{
	const struct gate_canary canary = {.data = "canary-5c1fd03a77", .len = 17};
	struct gate_part part = {
		.data = "~0/f/36f0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d"
			"4e5f60718293a4b5c/x-1.whl",
		.kind = GATE_PART_ECHO};
	struct gate_input in = {
		.parts = &part, .n_parts = 1, .canaries = &canary, .n_canaries = 1};

	add_term("Project BlueBird");
	part.len = strlen(part.data);
	gate_scan(g, &in, &r);
	cr_expect_eq(r.score, 0);
	/* "project bluebird", "canary-5c1fd03a77" */
	part.data = "~0/f/0050726f6a65637420426c7565426972640000000000/x-1.whl";
	part.len = strlen(part.data);
	gate_scan(g, &in, &r);
	cr_expect_eq(r.score, 1.0);
	cr_expect(has(GATE_EXACT));
	part.data = "~0/f/63616e6172792d35633166643033613737/x-1.whl";
	part.len = strlen(part.data);
	gate_scan(g, &in, &r);
	cr_expect_eq(r.score, 1.0);
	cr_expect(has(GATE_CANARY));
}

/* One by one they came from the other side; the row of them is the job's. */
Test(gate_echo, what_is_given_back_in_pieces_may_spell_no_term_and_no_canary)
{
	const struct gate_canary canary = {.data = "canary-5c1fd03a77", .len = 17};
	static const char *const row[][3] = {
		{"Purple", "Wombat", "77"},
		{"canary-5", "c1fd03a", "77"},
		{"sk-ant-api03-AbCdEfGh", "4111111111", "111111"}};
	struct gate_part part[3];
	struct gate_input in = {
		.parts = part, .n_parts = 3, .canaries = &canary, .n_canaries = 1};

	add_term("PurpleWombat77");
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		for (size_t k = 0; k < 3; k++)
			part[k] = (struct gate_part){.data = row[i][k],
						     .len = strlen(row[i][k]),
						     .kind = GATE_PART_ECHO,
						     .tag = 7};
		gate_scan(g, &in, &r);
		cr_expect_eq(r.score, i < 2 ? 1.0 : 0, "row %zu", i);
		/* a piece that is the job's own */
		part[1].kind = GATE_PART_TEXT;
		gate_scan(g, &in, &r);
		cr_expect(i == 2 || r.score == 1.0, "row %zu", i);
		/* of other keys they are no row */
		part[1] = (struct gate_part){.data = row[i][1],
					     .len = strlen(row[i][1]),
					     .kind = GATE_PART_ECHO,
					     .tag = 8};
		gate_scan(g, &in, &r);
		cr_expect_eq(r.score, 0, "row %zu", i);
	}
}
