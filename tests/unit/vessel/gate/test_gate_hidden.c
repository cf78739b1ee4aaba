/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings of encodings, other alphabets, signs around numbers, and room in headers. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/private.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define TOKEN "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"

TestSuite(gate_hidden, .init = begin, .fini = end, .timeout = 120);

static double score(const char *text)
{
	return score_of(text, strlen(text));
}

static struct buf base64(const void *data, size_t len)
{
	struct buf out = new_buf();

	add64(&out, data, len, 0);
	return out;
}

static void backwards(const char *text, char *out)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		out[i] = text[n - 1 - i];
	out[n] = '\0';
}

#define FORMS 7

/* One character of ASCII by its number. */
static void put_form(struct buf *b, unsigned form, char c)
{
	unsigned n = (unsigned char)c;

	switch (form) {
	case 0:
		buf_addf(b, "%%%02X", n);
		break;
	case 1:
		return buf_addf(b, "&#%u;", n);
	case 2:
		buf_addf(b, "\\u%04x", n);
		break;
	case 3:
		buf_addf(b, "\\x%02x", n);
		break;
	case 4:
		buf_addf(b, "\\u{%x}", n);
		break;
	case 5:
		buf_addf(b, "\\x{%04X}", n);
		break;
	default:
		buf_addf(b, "%%u%04x", n);
		break;
	}
}

static struct buf utf16(const char *text)
{
	struct buf out = new_buf();

	for (const unsigned char *u = (const unsigned char *)text; *u; u++) {
		unsigned c = *u;
		char two[2];

		if (c >= 0xc0) {
			c = (c & 0x1f) << 6 | (u[1] & 0x3f);
			u++;
		}
		two[0] = (char)c;
		two[1] = (char)(c >> 8);
		buf_add(&out, two, 2);
	}
	return out;
}

Test(gate_hidden, backwards_under_another_encoding)
{
	static const char *const secrets[] = {TOKEN, "Projekt Morgenstern 4711"};
	char rev[100];

	add_term(secrets[1]);
	for (size_t k = 0; k < ARRAY_SIZE(secrets); k++) {
		cleanup_buf struct buf b64 = {0}, wide = {0};

		backwards(secrets[k], rev);
		b64 = base64(rev, strlen(rev));
		cr_expect_geq(score(buf_str(&b64)), 0.7, "base64 of %s", rev);
		wide = utf16(rev);
		cr_expect_geq(score_of(wide.data, wide.len), 0.7, "UTF-16 of %s", rev);
		for (unsigned i = 0; i < FORMS; i++) {
			cleanup_buf struct buf b = new_buf();

			for (const char *p = rev; *p; p++)
				put_form(&b, i, *p);
			cr_expect_geq(score(buf_str(&b)), 0.7, "%s", buf_str(&b));
		}
	}
}

Test(gate_hidden, one_character_by_its_number)
{
	for (unsigned i = 0; i < FORMS; i++) {
		cleanup_buf struct buf b = new_buf();

		buf_adds(&b, "k = \"");
		put_form(&b, i, 'g');
		buf_adds(&b, TOKEN + 1);
		buf_adds(&b, "\"");
		cr_expect_eq(score(buf_str(&b)), 1.0, "%s", buf_str(&b));
	}
	/* no such thing */
	cr_expect_lt(score("\\u{67" TOKEN), 2);
	cr_expect_eq(score("\\u{ffffffff}\\u{}\\x{"), 0.0);
}

Test(gate_hidden, marks_between_letters)
{
	/* U+1BCA0, U+FFF9, U+0483, U+20DD, U+FE20, U+1AB0 */
	static const char *const marks[] = {"\xf0\x9b\xb2\xa0", "\xef\xbf\xb9",
					    "\xd2\x83",		"\xe2\x83\x9d",
					    "\xef\xb8\xa0",	"\xe1\xaa\xb0"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		cleanup_buf struct buf b = new_buf();

		for (const char *p = TOKEN; *p; p++) {
			buf_add(&b, p, 1);
			buf_adds(&b, marks[i]);
		}
		cr_expect_eq(score(buf_str(&b)), 1.0, "%zu", i);
	}
}

Test(gate_hidden, terms_of_other_letters)
{
	/* Müller-Lüdenscheidt; Проект Сокол; Πρόγραμμα Ήλιος without its accents */
	static const char mueller[] = "M\xc3\xbcller-L\xc3\xbc"
				      "denscheidt";
	static const char sokol[] = "\xd0\x9f\xd1\x80\xd0\xbe\xd0\xb5\xd0\xba\xd1\x82 "
				    "\xd0\xa1\xd0\xbe\xd0\xba\xd0"
				    "\xbe\xd0\xbb";
	static const char small[] = "\xd0\xbf\xd1\x80\xd0\xbe\xd0\xb5\xd0\xba\xd1\x82 "
				    "\xd1\x81\xd0\xbe\xd0\xba\xd0\xbe\xd0\xbb";
	static const char capital[] = "\xd0\x9f\xd0\xa0\xd0\x9e\xd0\x95\xd0\x9a\xd0\xa2 "
				      "\xd0\xa1\xd0\x9e\xd0\x9a\xd0"
				      "\x9e\xd0\x9b";
	/* the characters of each backwards */
	static const char rueckwaerts[] = "tdiehcsned\xc3\xbcL-rell\xc3\xbcM";
	static const char *const all[] = {mueller, sokol, small, capital};

	add_term(mueller);
	add_term(sokol);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		cleanup_buf struct buf wide = utf16(all[i]), b64 = {0}, bytes = new_buf();

		b64 = base64(wide.data, wide.len);
		for (const char *p = all[i]; *p; p++)
			buf_addf(&bytes, "\\x%02x", (unsigned char)*p);
		cr_expect_eq(score(all[i]), 1.0, "%zu", i);
		cr_expect_eq(score_of(wide.data, wide.len), 1.0, "UTF-16 of %zu", i);
		cr_expect_eq(score(buf_str(&b64)), 1.0, "base64 of UTF-16 of %zu", i);
		cr_expect_eq(score(buf_str(&bytes)), 1.0, "%s", buf_str(&bytes));
	}
	cr_expect_eq(score(rueckwaerts), 1.0);
	cr_expect_lt(score("\xd0\xbf\xd1\x80\xd0\xbe\xd0\xb5\xd0\xba\xd1\x82"), 0.4);
}

Test(gate_hidden, numbers_behind_signs)
{
	static const char *const before[] = {
		"invoice-", "IMG_", "_", "no.",
		"example_", "a+",   "(", "https://h.example/pay/order-"};
	static const char *const behind[] = {"", ".png", "_", "_a", ")", "-x"};

	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		for (size_t k = 0; k < ARRAY_SIZE(behind); k++) {
			char text[100];

			(void)snprintf(text, sizeof(text), "%s5425233430109903%s",
				       before[i], behind[k]);
			cr_expect_geq(score(text), 0.9, "%s", text);
			(void)snprintf(text, sizeof(text), "%s536-90-4399%s", before[i],
				       behind[k][0] == '_' ? "" : behind[k]);
			cr_expect_geq(score(text), 0.9, "%s", text);
		}
	/* of a longer number */
	cr_expect_eq(score("0.5425233430109903"), 0.0);
	cr_expect_eq(score("2021-5425233430109903"), 0.0);
}

/* A gzip whose extra field (flag 4) or name (8) holds this, and whose stream holds nothing. */
static void add_empty_gzip(struct buf *b, unsigned flag, const void *held, size_t n)
{
	const char head[] = {0x1f, (char)0x8b, 8, (char)flag, 0, 0, 0, 0, 0, 3};
	const char size[] = {(char)n, (char)(n >> 8)};

	buf_add(b, head, sizeof(head));
	if (flag == 4)
		buf_add(b, size, 2);
	buf_add(b, held, n);
	if (flag != 4)
		buf_add(b, "", 1);
	buf_add(b, "\3\0\0\0\0\0\0\0\0\0", 10);
}

Test(gate_hidden, a_compressors_header_has_no_room)
{
	char noise[200];
	uint32_t seed = 3;

	for (size_t i = 0; i < sizeof(noise); i++) {
		seed = seed * 1664525u + 1013904223u;
		noise[i] = (char)(seed >> 24 | 1);
	}
	for (unsigned flag = 4; flag <= 16; flag <<= 1) {
		cleanup_buf struct buf b = new_buf();

		add_empty_gzip(&b, flag, noise, sizeof(noise));
		cr_expect_geq(score_of(b.data, b.len), 0.85, "flag %u", flag);
		add_empty_gzip(&b, flag, noise, sizeof(noise));
		cr_expect_geq(score_of(b.data, b.len), 0.85, "flag %u, twice", flag);
	}
}

Test(gate_hidden, a_compressed_file_with_its_name_is_read)
{
	static const char text[] =
		"These are plain words of a file that somebody made with "
		"gzip, which keeps its name.\n";
	gz_header head = {.name = (Bytef *)(uintptr_t)"notes.txt"};
	z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = sizeof(text) - 1};
	Bytef out[500];

	cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
		     Z_OK);
	cr_assert_eq(deflateSetHeader(&z, &head), Z_OK);
	z.next_out = out;
	z.avail_out = sizeof(out);
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	cr_expect_eq(score_of(out, z.total_out), 0.0);
	(void)deflateEnd(&z);
}

/* The first byte of the other order may stand at the end of what is before it. */
Test(gate_hidden, utf16_of_both_orders_behind_any_line)
{
	static const char *const before[] = {"", "x", "hell\n", "hello\n", "hello\n\n"};
	static const char *const secrets[] = {"Zebrawolke", "4111 1111 1111 1111"};

	add_term(secrets[0]);
	for (size_t k = 0; k < ARRAY_SIZE(secrets); k++)
		for (size_t i = 0; i < ARRAY_SIZE(before); i++)
			for (unsigned order = 0; order < 2; order++) {
				cleanup_buf struct buf wide = utf16(secrets[k]),
						       all = new_buf();

				for (size_t b = 0; order && b + 1 < wide.len; b += 2) {
					wide.data[b + 1] = wide.data[b];
					wide.data[b] = '\0';
				}
				buf_adds(&all, before[i]);
				buf_add(&all, wide.data, wide.len);
				cr_expect_geq(score_of(all.data, all.len), 0.4,
					      "%s, order %u, behind '%s'", secrets[k],
					      order, before[i]);
			}
}
