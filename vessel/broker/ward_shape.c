/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ward_shape.h.
 */
#include "vessel/broker/ward_shape.h"

#include "common/attr.h"
#include "vessel/gate/text/fold.h"

#include <stdint.h>
#include <string.h>

#define NO_WORD '`' /* in a row of the table: no character of ASCII stands for this one */

/* Ascending. */
static const struct row {
	uint32_t from;
	const char
		*words; /* of this character and those after it, a blank between them */
} rows[] = {
#define X(from, words) {from, words},
#include "vessel/broker/ward_shape.def"
#undef X
};

struct out {
	char *s;
	size_t n, size;
	bool is_full;
};

static void put(struct out *o, char c)
{
	if (o->n + 1 >= o->size)
		o->is_full = true;
	else
		o->s[o->n++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* ---- one character ---- */

/* The word of the table for it; NULL: none. */
static const char *word_of(uint32_t c, size_t *ret_len)
{
	size_t low = 0, high = ARRAY_SIZE(rows);
	const char *w;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (rows[mid].from <= c)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return NULL;
	w = rows[low - 1].words;
	for (uint32_t k = c - rows[low - 1].from; k > 0; k--) {
		w = strchr(w, ' ');
		if (!w)
			return NULL;
		w++;
	}
	*ret_len = strcspn(w, " ");
	return w[0] == NO_WORD ? NULL : w;
}

/* A control character, which stands for nothing as what FOLD_SHAPES drops does. */
static bool is_control(uint32_t c)
{
	return c >= 0x80 && c <= 0x9f;
}

/* A character that more bytes than one, or a byte beyond ASCII, stand for. */
static void put_point(struct out *o, uint32_t c)
{
	size_t len = 0;
	const char *word = c < 0x80 ? NULL : word_of(c, &len);
	uint32_t to;

	for (size_t i = 0; word && i < len; i++)
		put(o, word[i] == '/' ? WARD_SLASH_OR_NAME : word[i]);
	if (word || is_control(c))
		return;
	to = gate_fold_one(c);
	if (to == GATE_FOLD_DROP && c != 0)
		return;
	put(o, to == GATE_FOLD_SAME ? WARD_OTHER_CHAR
	       : to == '/'	    ? WARD_SLASH_OR_NAME
				    : (char)to);
}

/* ---- where characters begin and end ---- */

/* The length of what a decoder takes that asks neither whether it is the shortest form nor
 * for how large it is; 0: not even that. */
static size_t point_at(const unsigned char *p, size_t left, bool is_lax, uint32_t *ret)
{
	size_t len = p[0] < 0xc0   ? 0
		     : p[0] < 0xe0 ? 2
		     : p[0] < 0xf0 ? 3
		     : p[0] < 0xf8 ? 4
		     : p[0] < 0xfc ? 5
		     : p[0] < 0xfe ? 6
				   : 0;

	if (len == 0 || len > left)
		return 0;
	*ret = p[0] & (0x7fU >> len);
	for (size_t k = 1; k < len; k++) {
		if (!is_lax && (p[k] & 0xc0) != 0x80)
			return 0;
		*ret = *ret << 6 | (p[k] & 0x3fU);
	}
	return len;
}

/* The same, and of two surrogates the character that they stand for. */
static size_t utf8_at(const unsigned char *p, size_t left, bool is_lax, uint32_t *ret)
{
	size_t n = point_at(p, left, is_lax, ret), m;
	uint32_t low;

	if (n == 0 || n == left || *ret < 0xd800 || *ret > 0xdbff)
		return n;
	m = point_at(p + n, left - n, is_lax, &low);
	if (m == 0 || low < 0xdc00 || low > 0xdfff)
		return n;
	*ret = 0x10000 + ((*ret & 0x3ff) << 10 | (low & 0x3ff));
	return n + m;
}

bool ward_shape_is_ascii(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] >= 0x80)
			return false;
	return true;
}

bool ward_shape_read(enum ward_reader who, const char *s, size_t n, char *out,
		     size_t size, size_t *ret_n)
{
	const unsigned char *p = (const unsigned char *)s;
	struct out o = {.s = out, .size = size};
	uint32_t c = 0;
	size_t used;

	for (size_t i = 0; i < n; i += used) {
		used = 1;
		if (p[i] < 0x80) {
			/* the WHATWG's parsers drop these wherever they stand */
			if (s[i] != '\t' && s[i] != '\r' && s[i] != '\n')
				put(&o, s[i]);
			continue;
		}
		if (who == WARD_7BIT) {
			put_point(&o, p[i] & 0x7fU);
			continue;
		}
		if (who != WARD_LATIN1)
			used = utf8_at(p + i, n - i, who == WARD_UTF8_LAX, &c);
		if (who == WARD_LATIN1 || (used == 0 && who == WARD_UTF8_LATIN1))
			put_point(&o, p[i]);
		else if (used > 0)
			put_point(&o, c);
		else if (who == WARD_UTF8_KEPT)
			put(&o, s[i]);
		used += used == 0;
	}
	if (o.is_full)
		return false;
	o.s[o.n] = '\0';
	*ret_n = o.n;
	return true;
}
