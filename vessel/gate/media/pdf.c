/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * PDF (ISO 32000): its two ends are looked at, and its strings are read.
 *
 * Theory of operation. A string is written as (...) with escapes, or as <...> in hexadecimal, in
 * UTF-16 where it begins with a byte order mark. All of the file is read as it is; then each string that
 * has an escape, or a mark, once more without. Where a string begins in what is none, as in packed
 * bytes, it goes to the end of that stream or object at the most: so much is read twice, nothing is
 * passed over.
 */
#include "common/utf8.h"
#include "vessel/gate/media/media_priv.h"

#include <string.h>

#define END_BYTES 1024
#define SURROGATE_HIGH 0xd800u
#define SURROGATE_LOW 0xdc00u
#define SURROGATE_END 0xe000u
#define DIGITS_MIN (2 * TEXT_AMONG_NAMES) /* of a string in hexadecimal */

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* ---- UTF-16 -------------------------------------------------------------------------- */

/* The character at s, and its bytes; U+0000 for half of one. */
static uint32_t unit_at(const uint8_t *s, size_t len, size_t high, size_t *ret_used)
{
	uint32_t c = (uint32_t)s[high] << 8 | s[1 - high], low;

	*ret_used = 2;
	if (c < SURROGATE_HIGH || c >= SURROGATE_END)
		return c;
	if (c >= SURROGATE_LOW || len < 4)
		return 0;
	low = (uint32_t)s[2 + high] << 8 | s[3 - high];
	if (low < SURROGATE_LOW || low >= SURROGATE_END)
		return 0;
	*ret_used = 4;
	return 0x10000 + ((c - SURROGATE_HIGH) << 10) + (low - SURROGATE_LOW);
}

/* Up to a ')' in front of a character, for a string may have begun within what was taken for another; how
 * many bytes that was. */
static size_t walk_utf16(struct walk *w, const uint8_t *s, size_t len, bool is_big)
{
	size_t i = 0, used;

	for (; i + 2 <= len && s[i] != ')'; i += used) {
		uint32_t c = unit_at(s + i, len - i, is_big ? 0 : 1, &used);
		char out[4];

		if (c < ' ' || c == 0x7f)
			buf_addc(w->text, '\n');
		else
			buf_add(w->text, out, utf8_put(c, out));
	}
	buf_addc(w->text, '\n');
	return i;
}

/* What begins with a byte order mark; all else is walk_text()'s. */
static void walk_marked(struct walk *w, const uint8_t *s, size_t len)
{
	for (size_t i = 0; i + 2 <= len; i++) {
		bool is_big = s[i] == 0xfe && s[i + 1] == 0xff;
		bool is_marked = is_big || (s[i] == 0xff && s[i + 1] == 0xfe);

		if (is_marked && (i == 0 || s[i - 1] == '('))
			i += 1 + walk_utf16(w, s + i + 2, len - i - 2, is_big);
	}
}

static void walk_string(struct walk *w, const struct buf *plain)
{
	const uint8_t *s = (const uint8_t *)plain->data;

	if (plain->len == 0)
		return;
	walk_text(w, s, plain->len, TEXT_AMONG_NAMES);
	walk_marked(w, s, plain->len);
}

/* ---- strings ------------------------------------------------------------------------- */

/* Behind the backslash: what the escape stands for is added; how many bytes it has. */
static size_t undo_escape(const uint8_t *s, size_t len, struct buf *out)
{
	static const char names[] = "nrtbf", meant[] = "\n\r\t\b\f";
	const char *name = s[0] ? strchr(names, s[0]) : NULL;
	unsigned value = 0;
	size_t n = 0;

	if (s[0] == '\r')
		return len > 1 && s[1] == '\n' ? 2 : 1;
	if (s[0] == '\n')
		return 1;
	for (; n < 3 && n < len && s[n] >= '0' && s[n] <= '7'; n++)
		value = value * 8 + (s[n] - '0');
	buf_addc(out, (char)(n ? value : name ? (unsigned)meant[name - names] : s[0]));
	return n ? n : 1;
}

/* From behind the '(' to behind its ')', or to `len`. */
static size_t take_literal(struct walk *w, const uint8_t *s, size_t len,
			   struct buf *plain)
{
	bool has_escape = false;
	unsigned depth = 1;
	size_t i = 0;

	buf_reset(plain);
	while (i < len) {
		uint8_t c = s[i++];

		if (c == '\\' && i < len) {
			has_escape = true;
			i += undo_escape(s + i, len - i, plain);
			continue;
		}
		depth += c == '(';
		depth -= c == ')';
		if (depth == 0)
			break;
		buf_addc(plain, (char)c);
	}
	if (has_escape)
		walk_string(w, plain);
	else
		walk_marked(w, (const uint8_t *)plain->data, plain->len);
	return i;
}

static int digit_value(uint8_t c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* From behind the '<' to what is no digit. */
static size_t take_digits(struct walk *w, const uint8_t *s, size_t len, struct buf *plain)
{
	unsigned value = 0;
	size_t n = 0, i = 0;

	buf_reset(plain);
	for (; i < len; i++) {
		int digit = digit_value(s[i]);

		if (digit < 0 && !strchr(" \t\r\n\f", s[i] ? s[i] : '>'))
			break;
		if (digit < 0)
			continue;
		value = value << 4 | (unsigned)digit;
		if (++n % 2 == 0)
			buf_addc(plain, (char)value);
	}
	if (n % 2)
		buf_addc(plain, (char)(value << 4));
	if (n >= DIGITS_MIN)
		walk_string(w, plain);
	return i;
}

static void walk_strings(struct walk *w, const uint8_t *s, size_t len)
{
	cleanup_buf struct buf plain = {.max = len + 1};

	for (size_t i = 0; i < len;) {
		uint8_t c = s[i++];

		if (c == '(')
			i += take_literal(w, s + i, len - i, &plain);
		else if (c == '<')
			i += take_digits(w, s + i, len - i, &plain);
	}
}

/* Stream by stream and object by object: what looks like a string in one ends with it. */
static void walk_parts(struct walk *w, const uint8_t *s, size_t len)
{
	static const char end[] = "end", stream[] = "endstream", object[] = "endobj";
	size_t from = 0;

	for (size_t i = 0; i < len;) {
		const uint8_t *at = memmem(s + i, len - i, end, sizeof(end) - 1);
		size_t left = at ? len - (size_t)(at - s) : 0;

		if (!at)
			break;
		i = (size_t)(at - s) + sizeof(end) - 1;
		if ((left < sizeof(stream) ||
		     memcmp(at, stream, sizeof(stream) - 1) != 0) &&
		    (left < sizeof(object) ||
		     memcmp(at, object, sizeof(object) - 1) != 0))
			continue;
		walk_strings(w, s + from, i - from);
		from = i;
	}
	walk_strings(w, s + from, len - from);
}

enum media_state media_pdf(struct walk w)
{
	static const char start[] = "startxref", end[] = "%%EOF";
	size_t n = w.left, tail;

	if (n < 8 || memcmp(w.at, "%PDF-", 5) != 0 || !is_digit(w.at[5]) ||
	    w.at[6] != '.' || !is_digit(w.at[7]))
		return MEDIA_NONE;
	while (n > 0 && (w.at[n - 1] == '\n' || w.at[n - 1] == '\r') && w.left - n < 2)
		n--;
	tail = n < END_BYTES ? n : END_BYTES;
	if (n < sizeof(end) ||
	    memcmp(w.at + n - (sizeof(end) - 1), end, sizeof(end) - 1) != 0 ||
	    !memmem(w.at + n - tail, tail, start, sizeof(start) - 1))
		return MEDIA_CUT;
	walk_text(&w, w.at, w.left, TEXT_AMONG_NAMES);
	if (w.text)
		walk_parts(&w, w.at, w.left);
	return MEDIA_WHOLE;
}
