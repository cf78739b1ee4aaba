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
	{"4", 16, 16},
	{"51", 16, 16},
	{"2221", 16, 16},
	{"34", 15, 15},
	{"36", 14, 14},
	{"6011", 16, 16},
	{"3528", 16, 16},
	{"62", 16, 19},
	{"5018", 12, 19},
	{"5020", 12, 19},
	{"5038", 12, 19},
	{"56", 12, 19},
	{"58", 12, 19},
	{"0604", 12, 19},
	{"6304", 12, 19},
	{"6390", 12, 19},
	{"6759", 12, 19},
	{"6761", 12, 19},
	{"6763", 12, 19},
	{"2131", 15, 15},
	{"1800", 15, 15},
	/* Visa of other lengths, Mir, Troy, RuPay */
	{"4", 13, 13},
	{"4", 19, 19},
	{"2200", 16, 19},
	{"2204", 16, 19},
	{"9792", 16, 16},
	{"60", 16, 16},
	{"65", 16, 16},
	{"81", 16, 16},
	{"82", 16, 16},
	{"353", 16, 16},
	{"356", 16, 16},
	{"508", 16, 16},
	/* UnionPay, Elo, Hipercard, Verve */
	{"81", 16, 16},
	{"8110", 16, 19},
	{"401178", 16, 16},
	{"504175", 16, 16},
	{"509040", 16, 16},
	{"627780", 16, 16},
	{"636297", 16, 16},
	{"636368", 16, 16},
	{"650405", 16, 16},
	{"606282", 16, 16},
	{"606282", 19, 19},
	{"384100", 16, 16},
	{"637095", 16, 16},
	{"506099", 16, 16},
	{"506099", 18, 19},
	{"650002", 16, 16},
	/* Dankort, InterPayment, InstaPayment, Laser, Solo, Diners, JCB, Discover */
	{"5019", 16, 16},
	{"636", 16, 19},
	{"637", 16, 16},
	{"639", 16, 16},
	{"6706", 16, 19},
	{"6771", 16, 19},
	{"6334", 16, 19},
	{"6767", 16, 19},
	{"300", 14, 14},
	{"305", 14, 14},
	{"3095", 14, 14},
	{"38", 14, 14},
	{"39", 14, 14},
	{"3589", 16, 19},
	{"35", 16, 16},
	{"644", 16, 19},
	{"65", 19, 19},
	/* UzCard, Humo, Napas, Borica */
	{"8600", 16, 16},
	{"9860", 16, 16},
	{"9704", 16, 16},
	{"9704", 19, 19},
	{"2205", 16, 16},
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

static double score_in(const char *before, const char *number, const char *behind)
{
	cleanup_buf struct buf b = new_buf();

	buf_addf(&b, "%s%s%s\n", before, number, behind);
	return score_of(b.data, b.len);
}

static double score(const char *number)
{
	return score_in("paid with ", number, " today");
}

/* As they are printed: in fours, of 14 and 15 digits in other groups, too. */
static void group(const char *number, const char *groups, char sep, char *out)
{
	while (*number) {
		size_t n = (size_t)(*groups - '0');

		for (; n > 0 && *number; n--)
			*out++ = *number++;
		groups += groups[1] != '\0';
		if (*number)
			*out++ = sep;
	}
	*out = '\0';
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
	static const char *const fine[] = {
		"202611290145", "20261129014530", "123456789012", "1764380000000",
		"1764380000000000", "5612 0000", "561200000000000000000000",
		/* code points */
		"see\n5080 5096 5098 509A", "2A4F 5063 5861 5862 5863 5864",
		"5842 5844 5845 5846 5847\n5848 21375",
		/* the head of a UATP card, and nothing that says so */
		"id 178234567890128"};

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

Test(gate_cards, in_groups_of_blanks_and_dashes)
{
	char number[24], printed[32];

	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
		for (unsigned k = 0; k < 4; k++) {
			size_t n = networks[i].min;

			make(networks[i].first, n, number);
			group(number, n == 14 || n == 15 ? "465" : "4", k % 2 ? ' ' : '-',
			      printed);
			cr_expect_geq(score_in("see ", printed, ", thanks"), 0.9, "%s",
				      printed);
		}
}

/* Fifteen digits that begin with 1 are many things: the groups or a word beside it say that it is
 * a card of UATP. */
Test(gate_cards, where_the_head_says_little_the_company_does)
{
	char number[24], printed[32];

	for (unsigned k = 0; k < 20; k++) {
		make("1", 15, number);
		cr_expect_geq(score_in("my card ", number, ""), 0.9, "%s", number);
		cr_expect_lt(score_in("user ", number, ""), 0.4, "%s", number);
		group(number, "456", ' ', printed);
		cr_expect_geq(score_in("see ", printed, ""), 0.9, "%s", printed);
	}
}

/* Identifiers, digests, times and versions, many of each: of what has no check digit none, of
 * numbers drawn by lot no more than begin like a card. */
Test(gate_cards, digits_within_something_else_are_none)
{
	static const char hex[] = "0123456789abcdef";
	cleanup_buf struct buf b = new_buf();

	for (unsigned k = 0; k < 400; k++) {
		buf_addf(&b, "at 17643%08u00, %u-%02u-%02u %02u:%02u:%02u.%06u\n",
			 draw(100000000), 1990 + draw(40), 1 + draw(12), 1 + draw(28),
			 draw(24), draw(60), draw(60), draw(1000000));
		buf_addf(&b, "%08x-%04x-%04x-%04x-5018%08u v%u.%u.%u-20%012u\n",
			 draw(1u << 24), draw(65536), draw(65536), draw(65536),
			 draw(100000000), draw(9), draw(99), draw(99), draw(1u << 24));
		for (unsigned i = 0; i < 40; i++)
			buf_addc(&b, hex[draw(16)]);
		buf_addf(&b, " 0.%08u%08u 0x%08u%08u\n", draw(100000000), draw(100000000),
			 draw(100000000), draw(100000000));
	}
	(void)score_of(b.data, b.len);
	for (size_t i = 0; i < r.n; i++)
		cr_expect_neq(r.finding[i].family, GATE_CARD, "%.40s",
			      b.data + r.finding[i].offset);
}

/* ---- numbers of other things --------------------------------------------------------------- */

/* %s is a number that passes for a card. */
static double score_as(const char *form, const char *number)
{
	const char *at = strstr(form, "%s");
	cleanup_buf struct buf b = new_buf();

	buf_add(&b, form, (size_t)(at - form));
	buf_adds(&b, number);
	buf_adds(&b, at + 2);
	return score_of(b.data, b.len);
}

/* Whatever the number is that stands there. */
static void expect_of_cards(const char *form, enum gate_verdict verdict)
{
	char number[24];

	for (unsigned k = 0; k < 10; k++) {
		double score;

		make(k % 2 ? "53" : "4", 16, number);
		score = score_as(form, number);
		cr_expect_eq(r.verdict, verdict, "%s in %s: %f", number, form, score);
	}
}

/* Whatever their number: replaced, since nobody can tell, and no reason to refuse. */
Test(gate_cards, numbers_of_bugs_and_files_are_replaced)
{
	static const char *const forms[] = {
		"https://oss.example.io/testcase-detail/%s is mended\n",
		"add test/fuzzing/clusterfuzz-testcase-minimized-%s\n",
		"clusterfuzz-testcase-%s.ttf\n",
		"[fuzz] bug %s\n",
		"Closes: #%s\n",
		"LP: #%s\n",
		"see issue %s, and others\n",
		"\"id\": \"%s\",\n",
		"revision %s of it\n",
		"build-%s.log\n",
		"00000010: %s 0a0b\n",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		expect_of_cards(forms[i], GATE_ANONYMISE);
}

Test(gate_cards, many_such_numbers_are_replaced_too)
{
	cleanup_buf struct buf b = new_buf();
	char number[24];

	for (unsigned k = 0; k < 100; k++) {
		make("53", 16, number);
		buf_addf(&b, "https://oss.example.io/testcase-detail/%s\n", number);
	}
	(void)score_of(b.data, b.len);
	cr_expect_eq(r.verdict, GATE_ANONYMISE, "%f", r.score);
	cr_expect_eq(r.n, 100);
}

static void expect_each(const char *const *texts, size_t n, enum gate_verdict verdict)
{
	for (size_t i = 0; i < n; i++) {
		(void)score_of(texts[i], strlen(texts[i]));
		cr_expect_eq(r.verdict, verdict, "%s: %f", texts[i], r.score);
	}
}

/* A row of a dump: an offset, and groups of hexadecimal digits. */
Test(gate_cards, rows_of_a_dump_are_not_refused)
{
	static const char *const rows[] = {
		"00000010: 4111 1111 1111 1111 0a00 6b6f  A.......ko\n",
		"0000020 4111 1111 1111 1111\n",
		"00000030: 0a0b 4111 1111 1111 1111 6b6f\n",
	};

	expect_each(rows, sizeof(rows) / sizeof(rows[0]), GATE_ANONYMISE);
}

/* With its date or its code behind it. */
Test(gate_cards, what_stands_behind_its_groups_is_not_of_it)
{
	static const char *const texts[] = {
		"card: 4111 1111 1111 1111 12/29\n",
		"visa 4242 4242 4242 4242 123\n",
		"Anna 5500 0055 5555 5559 12/29 cvc 123\n",
	};

	expect_each(texts, sizeof(texts) / sizeof(texts[0]), GATE_REFUSE);
}

/* A word of hexadecimal digits beside one, as in a table of code points. */
Test(gate_cards, among_code_points_it_is_replaced)
{
	static const char *const replaced[] = {
		"FACE 4111 1111 1111 1111\n",
		"4111 1111 1111 1111 A1B2\n",
		"FACE 4111-1111-1111-1111 ABCD\n",
		"00000000: FACE FACE 4111 1111 1111 1111\n",
	};
	static const char *const refused[] = {
		"FACE\n4111 1111 1111 1111\n",
		"4111 1111 1111 1111\nABCD\n",
		"- AAAA\n3782 822463 10005\n",
		"BEEF 1234\n4111 1111 1111 1111\nDE89\n",
		"CAFE\n4111-1111-1111-1111\nFFFF",
	};

	expect_each(replaced, sizeof(replaced) / sizeof(replaced[0]), GATE_ANONYMISE);
	expect_each(refused, sizeof(refused) / sizeof(refused[0]), GATE_REFUSE);
}

/* Alone, beside a word for it or behind one that says nothing of the kind it is one. */
Test(gate_cards, a_card_that_stands_apart_is_refused)
{
	static const char *const forms[] = {
		"%s\n",
		"it is %s.\n",
		"the number (%s) of\n",
		"\"n\": \"%s\",\n",
		"n=%s;\n",
		"%s|12|29|123\n",
		"%s/12/29\n",
		"a,%s,b\n",
		"card/%s/x\n",
		"invoice-%s.png\n",
		"https://h.example/pay/order-%s\n",
		"credit_card_%s\n",
		"bug 7 has my card: %s\n",
		"**%s**\n",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		expect_of_cards(forms[i], GATE_REFUSE);
}

/* Of twelve, thirteen and more than sixteen digits there are few cards and many identifiers. */
Test(gate_cards, lengths_of_few_cards_are_refused_beside_a_word)
{
	static const size_t lengths[] = {12, 13, 17, 18, 19};
	char number[24];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		make("5018", lengths[i], number);
		(void)score_as("see %s there\n", number);
		cr_expect_eq(r.verdict, GATE_ANONYMISE, "%s: %f", number, r.score);
		(void)score_as("paid with %s there\n", number);
		cr_expect_eq(r.verdict, GATE_REFUSE, "%s: %f", number, r.score);
	}
}
