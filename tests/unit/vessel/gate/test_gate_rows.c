/* SPDX-License-Identifier: Apache-2.0 */
/* Hex and base64 in pieces of one length, each with something else before or behind it. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define TERM "Projekt Morgenstern 4711"
#define PAGE                                                                             \
	"a page of ordinary words that somebody wrote down, and then some more of it, "

TestSuite(gate_rows, .init = begin, .fini = end, .timeout = 120);

/* # stands for the number of the piece, from 8 on; @ for that of the first byte of it in hex. */
static const struct {
	const char *before, *behind;
} forms[] = {
	{"- ", "\n"},
	{"* ", "\n\n"},
	{"// ", "\n"},
	{"//", "\n"},
	{"+", "\n"},
	{"-", "\n"},
	{"; ", " ;\n"},
	{"    \"", "\",\n"},
	{"b'", "'\n"},
	{"  b\"", "\" +\n"},
	{"#. ", "\n"},
	{"#) ", "\n"},
	{"@: ", "\n"},
	{"#\t", "\n"},
	{"line #: ", "\n"},
	{"x#=", ";\n"},
	{"s += \"", "\";\n"},
	{"<li>", "</li>\n"},
	{"| # | ", " |\n"},
	{"", " \\\n"},
	{"", "\n\n"},
	{"", " # and so on\n"},
	{"[", "]\n"},
	{"\"", "\", "},
	{"", " "},
	{"(", "),\r\n"},
};

static void add_form(struct buf *out, const char *form, size_t i, size_t at)
{
	for (; *form; form++) {
		if (*form == '#')
			buf_addf(out, "%zu", i + 8);
		else if (*form == '@')
			buf_addf(out, "%04zx", at);
		else
			buf_addc(out, *form);
	}
}

static void add_pieces(struct buf *out, const struct buf *run, size_t form, size_t width)
{
	buf_adds(out, "What follows is a list.\n");
	for (size_t i = 0, n = width; i < run->len; i += n) {
		if (n > run->len - i)
			n = run->len - i;
		add_form(out, forms[form].before, i / width, i / 2);
		buf_addf(out, "%.*s", (int)n, buf_str(run) + i);
		add_form(out, forms[form].behind, i / width, i / 2);
	}
	buf_adds(out, "\nAnd this is its end.\n");
}

static void add_hex(struct buf *out, const void *data, size_t len)
{
	const uint8_t *u = data;

	for (size_t i = 0; i < len; i++)
		buf_addf(out, "%02x", u[i]);
}

/* The term alone, at the begin, at the end, and in the midst of a text. */
Test(gate_rows, pieces_with_the_same_around_them)
{
	static const size_t widths[] = {8, 10, 12, 16, 20, 24, 32, 57, 60, 64, 76};
	static const struct {
		const char *before, *behind;
	} texts[] = {{"", ""}, {"", PAGE}, {PAGE, ""}, {PAGE, PAGE}};

	add_term(TERM);
	for (size_t k = 0; k < 2 * ARRAY_SIZE(widths) * ARRAY_SIZE(texts); k++) {
		size_t width = widths[k / 2 % ARRAY_SIZE(widths)];
		size_t t = k / 2 / ARRAY_SIZE(widths);
		cleanup_buf struct buf text = new_buf(), run = new_buf();

		buf_addf(&text, "%s%s%s", texts[t].before, TERM, texts[t].behind);
		if (k % 2)
			add64(&run, text.data, text.len, 0);
		else
			add_hex(&run, text.data, text.len);
		for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
			cleanup_buf struct buf b = new_buf();

			/* of two on one line the second may be any word */
			if (!strchr(forms[f].behind, '\n') && run.len < 2 * width)
				continue;
			add_pieces(&b, &run, f, width);
			cr_expect_eq(score_of(b.data, b.len), 1.0, "%zu, %zu:\n%s", t,
				     width, buf_str(&b));
		}
	}
}

/* What is around them need not be the same where there are many. */
Test(gate_rows, pieces_with_different_words_around_them)
{
	static const char *const words[] = {"one", "then ", "(a) ", "\xe2\x80\xa2 ",
					    "so: "};
	cleanup_buf struct buf run = new_buf(), b = new_buf();

	add_term(TERM);
	add64(&run, PAGE TERM PAGE, strlen(PAGE TERM PAGE), 0);
	for (size_t i = 0; i < run.len; i += 20)
		buf_addf(&b, "%s %.20s %s\n", words[i / 20 % 5], buf_str(&run) + i,
			 words[i % 3]);
	cr_expect_eq(score_of(b.data, b.len), 1.0, "%s", buf_str(&b));
}

/* A secret that nobody registered, and lists of what is none. */
Test(gate_rows, what_is_a_secret_by_itself)
{
	static const char key[] = "the key is AKIAQ7RFV3MTZ5WKN2PJ, keep it";
	cleanup_buf struct buf run = new_buf(), b = new_buf();

	add64(&run, key, strlen(key), 0);
	add_pieces(&b, &run, 0, 20);
	cr_expect_geq(score_of(b.data, b.len), 0.4, "%s", buf_str(&b));
}

Test(gate_rows, lists_of_names_and_sums_are_none)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t f = 0; f < ARRAY_SIZE(forms); f++)
		for (size_t width = 40; width <= 64; width += 24) {
			cleanup_buf struct buf sums = new_buf(), names = new_buf();
			uint32_t seed = 5;

			for (unsigned i = 0; i < 40; i++) {
				buf_addf(&names, "see: %sSomeNameOfClass%c%c%s\n",
					 forms[f].before, 'A' + (int)i % 26,
					 'a' + (int)i % 26, forms[f].behind);
				buf_adds(&sums, "  sum: ");
				for (size_t k = 0; k < width; k++) {
					seed = seed * 1664525u + 1013904223u;
					buf_addc(&sums, digits[seed >> 28]);
				}
				buf_addf(&sums, "  file%u.c\n", i);
			}
			cr_expect_lt(score_of(sums.data, sums.len), 0.4, "%s",
				     buf_str(&sums));
			cr_expect_lt(score_of(names.data, names.len), 0.4, "%s",
				     buf_str(&names));
		}
}
