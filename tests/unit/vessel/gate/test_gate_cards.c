/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of 12 to 19 digits, by what their networks give out and their check digit. */
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(gate_cards, .init = begin, .fini = end, .timeout = 60);

static const struct {
	const char *first;
	size_t min, max;
} networks[] = {
	{"4", 16, 16},	  {"51", 16, 16},   {"2221", 16, 16}, {"34", 15, 15},
	{"36", 14, 14},	  {"6011", 16, 16}, {"3528", 16, 16}, {"62", 16, 19},
	{"5018", 12, 19}, {"5020", 12, 19}, {"5038", 12, 19}, {"56", 12, 19},
	{"58", 12, 19},	  {"0604", 12, 19}, {"6304", 12, 19}, {"6390", 12, 19},
	{"6759", 12, 19}, {"6761", 12, 19}, {"6763", 12, 19}, {"2131", 15, 15},
	{"1800", 15, 15},
};

static uint32_t seed = 77;

static unsigned draw(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void make(const char *first, size_t n, char *out)
{
	unsigned sum = 0;

	(void)snprintf(out, 20, "%s", first);
	for (size_t i = strlen(first); i < n - 1; i++)
		out[i] = (char)('0' + draw(10));
	/* from the last but one on every second digit counts twice */
	for (size_t i = 0; i < n - 1; i++) {
		unsigned v = (unsigned)(out[n - 2 - i] - '0') * (i % 2 ? 1 : 2);

		sum += v > 9 ? v - 9 : v;
	}
	out[n - 1] = (char)('0' + (10 - sum % 10) % 10);
	out[n] = '\0';
}

static double score(const char *number)
{
	cleanup_buf struct buf b = new_buf();

	buf_addf(&b, "paid with %s today\n", number);
	return score_of(b.data, b.len);
}

Test(gate_cards, a_wrong_digit_makes_it_a_number)
{
	char number[24];

	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
		size_t n = networks[i].min;

		make(networks[i].first, n, number);
		number[n - 1] = (char)('0' + (number[n - 1] - '0' + 1 + draw(9)) % 10);
		cr_expect_lt(score(number), 0.4, "%s", number);
	}
}

Test(gate_cards, times_and_other_numbers_are_none)
{
	static const char *const fine[] = {"202611290145",
					   "20261129014530",
					   "123456789012",
					   "1764380000000",
					   "1764380000000000",
					   "5612 0000",
					   "561200000000000000000000"};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		cr_expect_lt(score(fine[i]), 0.4, "%s", fine[i]);
}

Test(gate_cards, each_network_at_each_length)
{
	char number[24];

	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
		for (size_t n = networks[i].min; n <= networks[i].max; n++)
			for (unsigned k = 0; k < 10; k++) {
				make(networks[i].first, n, number);
				cr_expect_geq(score(number), 0.9, "%s", number);
			}
}
