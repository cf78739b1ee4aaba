/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of hex and base64 whose first one begins behind something else, or whose last one has something
 * behind it. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define TERM "Projekt Morgenstern 4711"
#define PAGE                                                                             \
	"a page of ordinary words that somebody wrote down, and then some more of it, "

TestSuite(gate_labelled, .init = begin, .fini = end, .timeout = 120);

static double score(const struct buf *b)
{
	return score_of(buf_str(b), b->len);
}

static const struct {
	const char *before, *behind;
} labels[] = {
	{"out: ", ""},
	{"hex=", ""},
	{"x = \"", "\""},
	{"    key: ", ""},
	{"data:\t", ""},
	{"(", ")"},
	{"", " end"},
	{"", ")"},
	{"", "."},
	{"<d>", "</d>"},
	{"$ xxd\n", "\n$ "},
	{"id ", "zz"},
	{"out: ", " end"},
	{"see the feed\n", ")"},
	/* of the same letters as hex */
	{"1: ", ""},
	{"#1: ", ""},
	{"bad: ", ""},
	{"b64: ", ""},
};

/* The letters in lines of `width`; the first of `first` letters. */
static void add_lines(struct buf *out, const struct buf *run, size_t first, size_t width)
{
	for (size_t i = 0, n = first; i < run->len; i += n, n = width) {
		if (n > run->len - i)
			n = run->len - i;
		buf_addf(out, "%s%.*s", i ? "\n" : "", (int)n, buf_str(run) + i);
	}
}

static void add_hex(struct buf *out, const void *data, size_t len)
{
	const uint8_t *u = data;

	for (size_t i = 0; i < len; i++)
		buf_addf(out, "%02x", u[i]);
}

/* `run` in each of the lines and labels. */
static void expect_found(const struct buf *run, size_t first, size_t width)
{
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		cleanup_buf struct buf b = new_buf();

		buf_adds(&b, labels[i].before);
		add_lines(&b, run, first, width);
		buf_addf(&b, "%s\n", labels[i].behind);
		cr_expect_eq(score(&b), 1.0, "%zu/%zu:\n%s", first, width, buf_str(&b));
	}
}

/* The term lies over the first border, and over the last one. */
Test(gate_labelled, a_label_before_or_behind_lines)
{
	static const size_t widths[] = {20, 32, 60};

	add_term(TERM);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(widths); i++) {
		size_t width = widths[i / 2];
		/* bytes of a line: where the term begins lies before its end */
		size_t line = i % 2 ? width * 3 / 4 : width / 2;

		for (size_t at = line > 20 ? line - 20 : 1; at < line;
		     at += 1 + line / 6) {
			cleanup_buf struct buf text = new_buf(), run = new_buf();

			buf_addf(&text, "%.*s%s", (int)at, PAGE, TERM);
			/* the second time the last border is near */
			if (at % 2)
				buf_adds(&text, " and what follows is longer than that");
			if (i % 2)
				add64(&run, text.data, text.len, 0);
			else
				add_hex(&run, text.data, text.len);
			expect_found(&run, width, width);
		}
	}
}

/* A program that wraps with the label: the first line has less letters than the others. */
Test(gate_labelled, a_first_line_that_is_shorter)
{
	static const size_t firsts[] = {8, 11, 31, 50, 59};

	add_term(TERM);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(firsts); i++) {
		size_t first = firsts[i / 2];
		cleanup_buf struct buf text = new_buf(), run = new_buf(), b = new_buf();

		buf_addf(&text, "%.*s%s and %s", (int)(first / 4), PAGE, TERM, PAGE);
		if (i % 2)
			add64(&run, text.data, text.len, 0);
		else
			add_hex(&run, text.data, text.len);
		buf_adds(&b, "label: ");
		add_lines(&b, &run, first, 60);
		cr_expect_eq(score(&b), 1.0, "%zu:\n%s", first, buf_str(&b));
	}
}

/* What is compressed is lost whole when a part of it is. */
Test(gate_labelled, compressed)
{
	static const size_t widths[] = {32, 60};
	static const char text[] = PAGE TERM " and the rest of the page";
	uint8_t packed[256];
	uLongf n = sizeof(packed);

	add_term(TERM);
	cr_assert_eq(compress(packed, &n, (const Bytef *)text, sizeof(text) - 1), Z_OK);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(widths); i++) {
		cleanup_buf struct buf run = new_buf();

		if (i % 2)
			add64(&run, packed, n, 0);
		else
			add_hex(&run, packed, n);
		expect_found(&run, widths[i / 2], widths[i / 2]);
	}
}

/* Sums and ids, which are no text over their lines' ends. */
Test(gate_labelled, lists_of_sums_are_none)
{
	static const struct {
		const char *before, *behind;
	} forms[] = {
		{"", "  file.c\n"},	{"commit ", "\nAuthor: A\n"},	      {"", "\n"},
		{"sha256: ", " (x)\n"}, {"      \"integrity\": \"", "\",\n"},
	};

	for (size_t f = 0; f < ARRAY_SIZE(forms); f++)
		for (size_t width = 40; width <= 64; width += 24) {
			cleanup_buf struct buf b = new_buf();
			uint32_t seed = 5;

			buf_adds(&b, "checksums: ");
			for (unsigned i = 0; i < 40; i++) {
				char sum[65] = "";

				for (size_t k = 0; k < width; k++) {
					seed = seed * 1664525u + 1013904223u;
					sum[k] = "0123456789abcdef"[seed >> 28];
				}
				/* whole lines of them are opaque from so many on */
				if (f != 2 || i < 3)
					buf_addf(&b, "%s%s%s", forms[f].before, sum,
						 forms[f].behind);
			}
			buf_adds(&b, "end\n");
			cr_expect_lt(score(&b), 0.4, "%s", buf_str(&b));
		}
}
