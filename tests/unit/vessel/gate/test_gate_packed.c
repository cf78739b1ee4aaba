/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed bytes as libraries write them into text: forms, JSON, HTML, strings of programs. */
#include "common/base64.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>
#include <ctype.h>
#include <string.h>
#include <zlib.h>

#define TERM "Projekt Morgenstern 4711"

TestSuite(gate_packed, .init = begin, .fini = end, .timeout = 120);

static double score(const struct buf *b)
{
	return score_of(buf_str(b), b->len);
}

static void add_latin1(struct buf *b, uint8_t c)
{
	if (c < 0x80)
		buf_addc(b, (char)c);
	else
		buf_addf(b, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
}

static void as_quoted(struct buf *b, uint8_t c)
{
	if (isalnum(c) || (c && strchr("-._~", c)))
		buf_addc(b, (char)c);
	else
		buf_addf(b, "%%%02X", c);
}

static void as_form(struct buf *b, uint8_t c)
{
	if (c == ' ')
		buf_addc(b, '+');
	else
		as_quoted(b, c);
}

/* encodeURIComponent() of JavaScript, of a string with a character for each byte. */
static void as_component(struct buf *b, uint8_t c)
{
	cleanup_buf struct buf utf8 = new_buf();

	if (c && strchr("!'()*", c)) {
		buf_addc(b, (char)c);
		return;
	}
	add_latin1(&utf8, c);
	for (size_t i = 0; i < utf8.len; i++)
		as_quoted(b, (uint8_t)utf8.data[i]);
}

/* html.escape() of Python. */
static void as_html(struct buf *b, uint8_t c)
{
	static const char plain[] = "&<>\"'";
	static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"};
	const char *at = c ? strchr(plain, c) : NULL;

	if (at)
		buf_adds(b, names[at - plain]);
	else
		add_latin1(b, c);
}

static void as_json(struct buf *b, uint8_t c)
{
	static const char plain[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
	const char *at = c ? strchr(plain, c) : NULL;

	if (at)
		buf_addf(b, "\\%c", letters[at - plain]);
	else if (c >= ' ' && c < 0x7f)
		buf_addc(b, (char)c);
	else
		buf_addf(b, "\\u%04x", c);
}

/* ensure_ascii=False */
static void as_json_utf8(struct buf *b, uint8_t c)
{
	if (c < 0x80)
		as_json(b, c);
	else
		add_latin1(b, c);
}

/* A JSON string within a JSON string. */
static void as_json_twice(struct buf *b, uint8_t c)
{
	cleanup_buf struct buf once = new_buf();

	as_json(&once, c);
	for (size_t i = 0; i < once.len; i++)
		as_json(b, (uint8_t)once.data[i]);
}

static void as_u(struct buf *b, uint8_t c)
{
	buf_addf(b, "\\u%04x", c);
}

static void as_x(struct buf *b, uint8_t c)
{
	if (c >= ' ' && c < 0x7f && c != '\\')
		buf_addc(b, (char)c);
	else
		buf_addf(b, "\\x%02x", c);
}

static void as_reference(struct buf *b, uint8_t c)
{
	buf_addf(b, "&#%u;", c);
}

static void add_filling(struct buf *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		buf_addf(b, "%c%u", 'a' + (int)(i * 7 % 26), i * i);
}

/* gzip or zlib of any level, by the number of the round; how many bytes. */
static size_t pack(const struct buf *text, unsigned round, uint8_t *out, size_t room)
{
	z_stream z = {.next_in = (Bytef *)text->data,
		      .avail_in = (uInt)text->len,
		      .next_out = out,
		      .avail_out = (uInt)room};

	cr_assert_eq(deflateInit2(&z, 5 + (int)(round / 2 % 5), Z_DEFLATED,
				  round % 2 ? 31 : 15, 8, Z_DEFAULT_STRATEGY),
		     Z_OK);
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	return z.total_out;
}

/* Each way to write a byte, of streams of which each has other bytes. */
Test(gate_packed, in_escapes)
{
	static const struct {
		const char *name;
		void (*add)(struct buf *b, uint8_t c);
		bool is_escaped; /* `^`, too */
	} ways[] = {
		{"quote", as_quoted, true},
		{"form", as_form, true},
		{"component", as_component, true},
		{"html", as_html, false},
		{"json", as_json, false},
		{"json, utf-8", as_json_utf8, false},
		{"json twice", as_json_twice, false},
		{"\\u00", as_u, true},
		{"\\x", as_x, false},
		{"&#;", as_reference, true},
		{"latin 1 in utf-8", add_latin1, false},
	};

	add_term(TERM);
	for (unsigned round = 0; round < 2 * 20; round++) {
		cleanup_buf struct buf text = new_buf();
		uint8_t packed[512];
		size_t n;

		buf_adds(&text, "it is called ");
		add_filling(&text, round);
		buf_adds(&text, " " TERM " by those who know of it");
		n = pack(&text, round, packed, sizeof(packed));
		for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
			cleanup_buf struct buf b = new_buf();

			/* a head of two letters that stay is a formula, too */
			if (packed[0] == 'x' && packed[1] == '^' && !ways[w].is_escaped)
				continue;
			buf_adds(&b, "{\"q\": \"");
			for (size_t i = 0; i < n; i++)
				ways[w].add(&b, packed[i]);
			buf_adds(&b, "\"}");
			cr_expect_eq(score(&b), 1.0, "%s, %u:\n%s", ways[w].name, round,
				     buf_str(&b));
		}
	}
}

static void add_hex(struct buf *b, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_addf(b, "%02x", ((const uint8_t *)data)[i]);
}

/* A term and little else: the first line alone is a stream that was cut, and what stands behind it in the
 * decoded text is none of it. */
Test(gate_packed, in_lines)
{
	static const size_t widths[] = {16, 20, 24, 32, 40, 60, 64, 76};
	void (*const add[])(struct buf *, const void *, size_t) = {base64_add, add_hex};

	add_term(TERM);
	for (unsigned round = 0; round < 2 * 30; round++) {
		cleanup_buf struct buf text = new_buf();
		uint8_t packed[512];
		size_t n;

		add_filling(&text, round / 10);
		buf_adds(&text, " " TERM);
		n = pack(&text, round, packed, sizeof(packed));
		for (size_t w = 0; w < 2 * ARRAY_SIZE(widths); w++) {
			size_t width = widths[w / 2];
			cleanup_buf struct buf run = new_buf(), b = new_buf();

			add[w % 2](&run, packed, n);
			buf_adds(&b, "see\n");
			for (size_t i = 0; i < run.len; i += width)
				buf_addf(&b, "%.*s\n", (int)width, buf_str(&run) + i);
			buf_adds(&b, "there\n");
			cr_expect_eq(score(&b), 1.0, "%u:\n%s", round, buf_str(&b));
		}
	}
}

/* A list of digests, of which each ninth begins as a stream does: what is unpacked of one goes on in the next, and
 * is no finding. One by itself may be a stream, by a chance of one in some hundred of such. */
Test(gate_packed, digests_in_a_list)
{
	static const char *const heads[] = {"789c", "78da", "1f8b0800", "7801"};
	uint32_t seed = 3;
	unsigned refused = 0;

	for (unsigned round = 0; round < 150; round++) {
		cleanup_buf struct buf b = new_buf();

		for (unsigned i = 0; i < 80; i++) {
			const char *head = i % 9 ? "" : heads[(i / 9 + round) % 4];

			buf_adds(&b, head);
			for (size_t n = strlen(head); n < 32; n++) {
				seed = seed * 1664525u + 1013904223u;
				buf_addc(&b, "0123456789abcdef"[seed >> 28]);
			}
			buf_addf(&b, "  usr/lib/some/module%u.py\n", i * round);
		}
		refused += score(&b) >= 0.4;
	}
	cr_expect_leq(refused, 3, "%u of 150 lists", refused);
}

/* What is written with such characters and is no stream. */
Test(gate_packed, text_with_such_characters)
{
	static const char *const texts[] = {
		"max\xc3\x9a and x%01 of 10, x%9C, x\\u009c, &#120;&#218;",
		"the area is 3x^2 + 2x^1, and x%5E2 is that in a URL: caf\xc3\xa9 &amp; "
		"x^n + x^m",
		"x%C2%9C and %1F%C2%8B in a URL, x\xc2\x9c &lt; x^2",
		"\\x1f\\x8b is how gzip begins, and %1f%8b in a URL",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		cr_expect_lt(score_of(texts[i], strlen(texts[i])), 0.4, "%s", texts[i]);
}
