/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/backup/copy_text.h"

#include "common/str.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

TestSuite(copy_text, .timeout = 20);

static int read_all(const char *text, size_t len, size_t piece, unsigned sections,
		    struct copy_text *c, struct err *err)
{
	copy_text_begin(c);
	for (size_t at = 0; at < len; at += piece)
		if (copy_text_add(c, text + at, len - at < piece ? len - at : piece,
				  err) < 0)
			return -1;
	return copy_text_end(c, sections, err);
}

#define TEXT(t) t, sizeof(t) - 1

Test(copy_text, what_the_server_writes_is_taken_however_it_is_cut)
{
	static const char text[] =
		"id\tt\tb\n"
		"1\tx\\ty\\\\z\\nw\\b\\f\\r\\v\t\\\\x00ff\n"
		"\\N\t\\N\t\\N\n"
		"2\t\\\\.\t\n"	    /* a field that is \. */
		"\\\\.\t.\t\\\\N\n" /* two that begin as an end, or as no value */
		"\t\t\n"
		"\xc3\xa4\x01\x7f\t\"'$(`;:{?x}--\tCOPY (SELECT 1) TO PROGRAM 'x';\n"
		"\\.\n"
		"only\n"
		"\\.\n"
		"a\n"
		"\n"
		"\\.\n";
	struct err err = ERR_INIT;
	struct copy_text c;

	for (size_t piece = 1; piece < sizeof(text); piece++) {
		cr_assert_eq(read_all(TEXT(text), piece, 3, &c, &err), 0, "%s", err.msg);
		cr_assert_eq(copy_text_rows(&c, 0), 6);
		cr_assert_eq(copy_text_rows(&c, 1), 0);
		cr_assert_eq(copy_text_rows(&c, 2), 1);
	}
	cr_assert_eq(read_all(TEXT(text), 7, 2, &c, &err), -1);
	cr_assert_eq(read_all(TEXT(text), 7, 4, &c, &err), -1);
	for (size_t cut = 0; cut < sizeof(text) - 1; cut++)
		cr_expect_eq(read_all(text, cut, 5, 3, &c, &err), -1, "cut at %zu", cut);
}

struct odd {
	char text[48];
	size_t len;
};
#define ODD(t) {t, sizeof(t) - 1}

ParameterizedTestParameters(copy_text, what_it_does_not_write_is_refused)
{
	static struct odd odd[] = {
		ODD("a\n\\. \n\\.\n"),
		ODD("a\n\\.\r\n\\.\n"),
		ODD("a\n \\.\n\\.\n"),
		ODD("a\nx\\.\n\\.\n"),
		ODD("a\n\t\\.\n\\.\n"),
		ODD("a\n\\..\n\\.\n"),
		ODD("a\n\\.\\.\n\\.\n"),
		ODD("a\n\\.\nSELECT 1;\n"),
		ODD("a\n\\.\n\n"),
		ODD("a\n\\.\n\\.\n"),
		ODD("\\.\n"),
		ODD("a\n\\! x\n\\.\n"),
		ODD("a\n\\copy x\n\\.\n"),
		ODD("a\n\\x41\n\\.\n"),
		ODD("a\n\\101\n\\.\n"),
		ODD("a\n\\0\n\\.\n"),
		ODD("a\n\\\n\\.\n"),
		ODD("a\n\\\t\n\\.\n"),
		ODD("a\n\\\0\n\\.\n"),
		ODD("a\n\\a\n\\.\n"),
		ODD("a\nx\\N\n\\.\n"),
		ODD("a\n\\Nx\n\\.\n"),
		ODD("a\n\\N\\N\n\\.\n"),
		ODD("a\n\\N\\.\n\\.\n"),
		ODD("a\nx\r\n\\.\n"),
		ODD("a\rb\n\\.\n"),
		ODD("a\n\v\n\\.\n"),
		ODD("a\n\f\n\\.\n"),
		ODD("a\n\b\n\\.\n"),
		ODD("a\n\0\n\\.\n"),
		ODD("a\nb\n"),
		ODD("a\n\\."),
		ODD("a\n\\"),
	};

	return cr_make_param_array(struct odd, odd, ARRAY_SIZE(odd));
}

ParameterizedTest(struct odd *odd, copy_text, what_it_does_not_write_is_refused)
{
	for (size_t piece = 1; piece <= odd->len; piece++) {
		struct err err = ERR_INIT;
		struct copy_text c;

		cr_expect_eq(read_all(odd->text, odd->len, piece, 1, &c, &err), -1, "%s",
			     odd->text);
		cr_expect_eq(err.id, ERRID_BACKUP_DAMAGED);
	}
}

Test(copy_text, neither_rows_nor_tables_are_without_end)
{
	static char many[1 << 20];
	struct err err = ERR_INIT;
	struct copy_text c;
	uint64_t n = 0;

	memset(many, 'x', sizeof(many));
	copy_text_begin(&c);
	while (n <= COPY_TEXT_LINE_MAX &&
	       copy_text_add(&c, many, sizeof(many), &err) == 0)
		n += sizeof(many);
	cr_expect_eq(n, COPY_TEXT_LINE_MAX);
	copy_text_begin(&c);
	for (n = 0; n < 100 && copy_text_add(&c, "a\n\\.\n", 5, &err) == 0; n++)
		;
	cr_expect_eq(n, COPY_TEXT_SECTIONS_MAX);
}
