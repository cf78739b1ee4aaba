/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/gate/fold.h"
#include "common/attr.h"
#include "common/mem.h"
#include "common/text/ignorable.h"
#include "common/utf8.h"
#include "vessel/gate/decode.h"
#include "vessel/gate/runs.h"
#include <ctype.h>
#include <string.h>

#define DROP GATE_FOLD_DROP
#define SAME GATE_FOLD_SAME

/* ---- characters ------------------------------------------------------------------ */

struct shape {
	uint32_t from, to; /* a range */
	uint32_t ascii;	   /* of the first of it */
	uint32_t cycle;	   /* the range repeats after so many */
};

/* Ranges in which each character stands for the next one of ASCII. */
static const struct shape ranges[] = {
	{0x660, 0x669, '0', 10},     {0x6f0, 0x6f9, '0', 10},
	{0x966, 0x96f, '0', 10},     {0x2070, 0x2070, '0', 1},
	{0x2074, 0x2079, '4', 6},    {0x2080, 0x2089, '0', 10},
	{0x2460, 0x2468, '1', 9},    {0x24b6, 0x24cf, 'A', 26},
	{0x24d0, 0x24e9, 'a', 26},   {0x24ea, 0x24ea, '0', 1},
	{0xff01, 0xff5e, '!', 94},   {0x1d7ce, 0x1d7ff, '0', 10},
	{0x1f130, 0x1f149, 'A', 26}, {0x1f170, 0x1f189, 'A', 26},
};

/* Marks that stand on or under the letter before them. */
static const struct {
	uint32_t from, to;
} marks[] = {
	{0x300, 0x36f},	  {0x483, 0x489},     {0x591, 0x5bd},	{0x610, 0x61a},
	{0x64b, 0x65f},	  {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
	{0xfe20, 0xfe2f}, {0x1d165, 0x1d182},
};

/* Single look-alikes: UTF-8 and what it stands for, by turns. */
static const struct {
	uint32_t from;
	char to;
} alike[] = {
	/* Cyrillic */
	{0x430, 'a'},
	{0x435, 'e'},
	{0x43e, 'o'},
	{0x440, 'p'},
	{0x441, 'c'},
	{0x443, 'y'},
	{0x445, 'x'},
	{0x456, 'i'},
	{0x458, 'j'},
	{0x455, 's'},
	{0x4bb, 'h'},
	{0x501, 'd'},
	{0x51b, 'q'},
	{0x51d, 'w'},
	{0x43a, 'k'},
	{0x410, 'A'},
	{0x412, 'B'},
	{0x415, 'E'},
	{0x41a, 'K'},
	{0x41c, 'M'},
	{0x41d, 'H'},
	{0x41e, 'O'},
	{0x420, 'P'},
	{0x421, 'C'},
	{0x422, 'T'},
	{0x425, 'X'},
	{0x423, 'Y'},
	{0x406, 'I'},
	{0x408, 'J'},
	{0x405, 'S'},
	{0x417, '3'},
	{0x4c0, 'I'},
	{0x4cf, 'l'},
	{0x51a, 'Q'},
	{0x51c, 'W'},
	/* Greek */
	{0x3b1, 'a'},
	{0x3b9, 'i'},
	{0x3ba, 'k'},
	{0x3bd, 'v'},
	{0x3bf, 'o'},
	{0x3c1, 'p'},
	{0x3c5, 'u'},
	{0x3c7, 'x'},
	{0x3b3, 'y'},
	{0x391, 'A'},
	{0x392, 'B'},
	{0x395, 'E'},
	{0x396, 'Z'},
	{0x397, 'H'},
	{0x399, 'I'},
	{0x39a, 'K'},
	{0x39c, 'M'},
	{0x39d, 'N'},
	{0x39f, 'O'},
	{0x3a1, 'P'},
	{0x3a4, 'T'},
	{0x3a5, 'Y'},
	{0x3a7, 'X'},
	{0x3f2, 'c'},
	{0x3f3, 'j'},
	/* Armenian, letterlike, small capitals */
	{0x585, 'o'},
	{0x57d, 'u'},
	{0x570, 'h'},
	{0x578, 'n'},
	{0x581, 'g'},
	{0x131, 'i'},
	{0x237, 'j'},
	{0x251, 'a'},
	{0x261, 'g'},
	{0x2113, 'l'},
	{0x210a, 'g'},
	{0x210e, 'h'},
	{0x2134, 'o'},
	{0x212f, 'e'},
	{0x212a, 'K'},
	{0x212c, 'B'},
	{0x2130, 'E'},
	{0x2131, 'F'},
	{0x210b, 'H'},
	{0x2110, 'I'},
	{0x2112, 'L'},
	{0x2133, 'M'},
	{0x211b, 'R'},
	{0x1d04, 'c'},
	{0x1d0f, 'o'},
	{0x1d20, 'v'},
	{0x1d21, 'w'},
	{0x1d22, 'z'},
	{0xb9, '1'},
	{0xb2, '2'},
	{0xb3, '3'},
	{0xba, 'o'},
	{0xaa, 'a'},
	/* signs */
	{0xa0, ' '},
	{0x1680, ' '},
	{0x202f, ' '},
	{0x205f, ' '},
	{0x3000, ' '},
	{0x2018, '\''},
	{0x2019, '\''},
	{0x201a, '\''},
	{0x2032, '\''},
	{0x2bc, '\''},
	{0x201c, '"'},
	{0x201d, '"'},
	{0x201e, '"'},
	{0x2033, '"'},
	{0x2212, '-'},
	{0xfe58, '-'},
	{0xfe63, '-'},
	{0x2024, '.'},
	{0x3002, '.'},
	{0xfe52, '.'},
	{0xff61, '.'},
	{0xfe6b, '@'},
	{0x2044, '/'},
	{0x2215, '/'},
	{0xfe55, ':'},
	{0x2236, ':'},
	{0xa789, ':'},
	{0xfe62, '+'},
	{0xfe66, '='},
	{0x2017, '_'},
	{0x2028, '\n'},
	{0x2029, '\n'},
	{0x85, '\n'},
	{0x2043, '-'},
	{0x30a0, '='},
};

/* U+00C0 .. U+017F without their marks; '.' where none fits. */
static const char latin[] =
	"AAAAAA.CEEEEIIIIDNOOOOO.OUUUUY.."
	"aaaaaa.ceeeeiiiidnooooo.ouuuuy.y"
	"AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiI...JjKk.LlLlLlLlLlNnNnNn..."
	"OoOoOo..RrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";

static uint32_t look_up(uint32_t c)
{
	if (c >= 0xc0 && c <= 0x17f) {
		char to = latin[c - 0xc0];

		return c == 0x131 ? 'i' : to == '.' ? SAME : (unsigned char)to;
	}
	if (is_ignorable(c))
		return DROP;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (c >= marks[i].from && c <= marks[i].to)
			return DROP;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (c >= ranges[i].from && c <= ranges[i].to)
			return ranges[i].ascii + (c - ranges[i].from) % ranges[i].cycle;
	/* mathematical alphabets: 26 capitals, 26 small ones, thirteen times */
	if (c >= 0x1d400 && c <= 0x1d6a3) {
		uint32_t at = (c - 0x1d400) % 52;

		return at < 26 ? 'A' + at : 'a' + at - 26;
	}
	if (c >= 0x2000 && c <= 0x200a)
		return ' ';
	if (c >= 0x2010 && c <= 0x2015)
		return '-';
	for (size_t i = 0; i < ARRAY_SIZE(alike); i++)
		if (alike[i].from == c)
			return (unsigned char)alike[i].to;
	return SAME;
}

#define TABLE_END 0x10000 /* nearly all that texts have lies below */

uint32_t gate_fold_one(uint32_t c)
{
	/* 1 + what stands for the character; of none 255. Made when the first is asked for. */
	static uint8_t table[TABLE_END];

	if (c < 0x80)
		return c;
	/* of the higher ones: mathematical letters and marks, letters in boxes, tags */
	if (c >= TABLE_END &&
	    (c < 0x1bca0 || (c > 0x1bca3 && c < 0x1d100) ||
	     (c >= 0x1d800 && c < 0x1f100) || (c >= 0x1f200 && c < 0xe0000)))
		return SAME;
	if (c >= TABLE_END)
		return look_up(c);
	if (!table[c]) {
		uint32_t to = look_up(c);

		table[c] = to == SAME ? UINT8_MAX : (uint8_t)(to + 1);
	}
	return table[c] == UINT8_MAX ? SAME : table[c] - 1U;
}

/* Capitals of other letters than ASCII's, each so far from the small one; every second of a range
 * where the two are neighbours. */
static const struct {
	uint32_t from, to, each, small;
} capitals[] = {
	{0xc0, 0xde, 1, 0x20},	 {0x100, 0x136, 2, 1},	  {0x139, 0x147, 2, 1},
	{0x14a, 0x176, 2, 1},	 {0x391, 0x3a9, 1, 0x20}, {0x400, 0x40f, 1, 0x50},
	{0x410, 0x42f, 1, 0x20}, {0x460, 0x480, 2, 1},	  {0x48a, 0x4be, 2, 1},
	{0x4c1, 0x4cd, 2, 1},	 {0x4d0, 0x52e, 2, 1},	  {0x531, 0x556, 1, 0x30},
	{0x1e00, 0x1e94, 2, 1},	 {0x1ea0, 0x1efe, 2, 1},
};

/* The capital's small letter and the other way round; the character itself when it has neither. */
static uint32_t other_case(uint32_t c, bool *ret_is_small)
{
	*ret_is_small = false;
	for (size_t i = 0; i < ARRAY_SIZE(capitals); i++) {
		uint32_t from = capitals[i].from, to = capitals[i].to;
		uint32_t each = capitals[i].each, small = capitals[i].small;

		if (c >= from && c <= to && (c - from) % each == 0)
			return c + small;
		if (c >= from + small && c <= to + small &&
		    (c - small - from) % each == 0) {
			*ret_is_small = true;
			return c - small;
		}
	}
	return c;
}

/* One character for both cases. What only one of the two looks like, the other is, too. */
static uint32_t fold_letter(uint32_t c)
{
	bool is_small;
	uint32_t other = other_case(c, &is_small);
	uint32_t to = other == c ? SAME : gate_fold_one(other);

	return to != SAME && to != DROP ? to : is_small ? c : other;
}

/* ---- escapes --------------------------------------------------------------------- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly n digits at s. */
static bool hex_digits(const char *s, size_t len, size_t n, uint32_t *ret)
{
	uint32_t v = 0;

	if (len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int d = hex_value(s[i]);

		if (d < 0)
			return false;
		v = v << 4 | (uint32_t)d;
	}
	*ret = v;
	return true;
}

static size_t entity_at(const char *s, size_t len, uint32_t *ret)
{
	static const struct {
		const char *name;
		char is;
	} named[] = {
		{"amp;", '&'},	  {"lt;", '<'},	    {"gt;", '>'},     {"quot;", '"'},
		{"apos;", '\''},  {"commat;", '@'}, {"period;", '.'}, {"nbsp;", ' '},
		{"colon;", ':'},  {"sol;", '/'},    {"lowbar;", '_'}, {"hyphen;", '-'},
		{"equals;", '='}, {"plus;", '+'},   {"num;", '#'},    {"dollar;", '$'},
	};
	uint32_t v = 0;
	size_t i = 2;
	bool is_hex;

	if (len > 3 && s[1] == '#') {
		is_hex = (s[2] | 0x20) == 'x';
		for (i = is_hex ? 3 : 2; i < len && i < 12; i++) {
			int d = hex_value(s[i]);

			if (d < 0 || (!is_hex && d > 9))
				break;
			v = v * (is_hex ? 16 : 10) + (uint32_t)d;
		}
		if (i == (is_hex ? 3U : 2U) || v == 0 || v > 0x10ffff)
			return 0;
		*ret = v;
		return i < len && s[i] == ';' ? i + 1 : i;
	}
	for (size_t k = 0; k < ARRAY_SIZE(named); k++) {
		size_t n = strlen(named[k].name);

		if (len > n && memcmp(s + 1, named[k].name, n) == 0) {
			*ret = (unsigned char)named[k].is;
			return n + 1;
		}
	}
	return 0;
}

/* {1F600}: up to eight digits. */
static size_t braced_at(const char *s, size_t len, uint32_t *ret)
{
	size_t n = 1;

	while (n < len && n <= 8 && hex_value(s[n]) >= 0)
		n++;
	if (len == 0 || s[0] != '{' || n == 1 || n == len || s[n] != '}' ||
	    !hex_digits(s + 1, n - 1, n - 1, ret) || *ret > 0x10ffff)
		return 0;
	return n + 1;
}

static size_t backslash_at(const char *s, size_t len, uint32_t *ret)
{
	uint32_t low;
	size_t n;

	if (len < 2)
		return 0;
	n = s[1] == 'x' || s[1] == 'u' ? braced_at(s + 2, len - 2, ret) : 0;
	if (n)
		return n + 2;
	switch (s[1]) {
	case '"':
	case '/':
		*ret = (unsigned char)s[1];
		return 2;
	case 'x':
		return hex_digits(s + 2, len - 2, 2, ret) ? 4 : 0;
	case 'U':
		return hex_digits(s + 2, len - 2, 8, ret) && *ret <= 0x10ffff ? 10 : 0;
	case 'u':
		if (!hex_digits(s + 2, len - 2, 4, ret))
			return 0;
		if (*ret >= 0xd800 && *ret < 0xdc00 && len >= 12 && s[6] == '\\' &&
		    s[7] == 'u' && hex_digits(s + 8, len - 8, 4, &low) && low >= 0xdc00 &&
		    low < 0xe000) {
			*ret = 0x10000 + ((*ret & 0x3ff) << 10 | (low & 0x3ff));
			return 12;
		}
		return 6;
	default:
		return 0;
	}
}

/* The escape at s: how many bytes it takes, 0 when there is none. is_byte: *ret is a byte
 * of an encoding and no character. */
static size_t escape_at(const char *s, size_t len, uint32_t *ret, bool *is_byte)
{
	*is_byte = false;
	if (s[0] == '%' && len > 1 &&
	    (s[1] | 0x20) == 'u') /* as escape() of ECMAScript */
		return hex_digits(s + 2, len - 2, 4, ret) ? 6 : 0;
	if (s[0] == '%') {
		*is_byte = true;
		return hex_digits(s + 1, len - 1, 2, ret) ? 3 : 0;
	}
	if (s[0] == '&')
		return entity_at(s, len, ret);
	return s[0] == '\\' ? backslash_at(s, len, ret) : 0;
}

/* ---- the walk -------------------------------------------------------------------- */

struct walk {
	struct gate_folded *f;
	unsigned how;
	bool is_after_blank;
};

static void put_byte(struct walk *w, char c, size_t from)
{
	if (w->how & FOLD_CASE) {
		if (isspace((unsigned char)c)) {
			if (w->is_after_blank)
				return;
			c = ' ';
		}
		w->is_after_blank = c == ' ';
		c = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	}
	w->f->map[w->f->len] = (uint32_t)from;
	w->f->data[w->f->len++] = c;
}

static void put_character(struct walk *w, uint32_t c, size_t from)
{
	char utf8[4];
	uint32_t to = w->how & FOLD_SHAPES ? gate_fold_one(c) : SAME;
	size_t n;

	if (to == DROP && c != 0)
		return;
	if (to == SAME && c >= 0x80 && w->how & FOLD_LETTERS)
		to = fold_letter(c);
	n = utf8_put(to == SAME ? c : to, utf8);
	for (size_t i = 0; i < n; i++)
		put_byte(w, utf8[i], from);
}

/* Bytes that are written one after the other, each behind `sign` (%41, \x41), may be one character
 * of UTF-8: how many there are. */
static size_t bytes_at(const char *s, size_t len, const char *sign, char out[4])
{
	size_t head = strlen(sign), n = 0;
	uint32_t v;

	while (n < 4 && len > head && memcmp(s, sign, head) == 0 &&
	       hex_digits(s + head, len - head, 2, &v)) {
		out[n++] = (char)v;
		s += head + 2;
		len -= head + 2;
		if (n == 1 && v < 0xc0)
			break;
	}
	return n;
}

/* What stands for a blank at s: how many bytes, 0 when nothing does. */
static size_t form_blank_at(const char *s, size_t len)
{
	if (s[0] == '+')
		return 1;
	return len > 1 && s[0] == '\\' && s[1] && strchr("nrt", s[1]) ? 2 : 0;
}

static size_t step(struct walk *w, const char *s, size_t len, size_t i)
{
	uint32_t c = 0;
	bool is_byte;
	size_t n = w->how & FOLD_ESCAPES ? escape_at(s + i, len - i, &c, &is_byte) : 0;
	char bytes[4] = {0};
	size_t used;

	if (w->how & FOLD_FORM && (used = form_blank_at(s + i, len - i)) > 0) {
		put_byte(w, ' ', i);
		return used;
	}
	if (n && is_byte) {
		used = utf8_get_lax(bytes, bytes_at(s + i, len - i, "%", bytes), &c);
		w->f->had_escapes = true;
		if (used == 0) {
			put_byte(w, bytes[0], i);
			return 3;
		}
		w->f->had_unseen |= gate_is_unseen(c);
		put_character(w, c, i);
		return used * 3;
	}
	if (n) {
		/* what else it would be is a character below U+0100 */
		used = c >= 0xc0 && n == 4 ? bytes_at(s + i, len - i, "\\x", bytes) : 0;
		used = used ? utf8_get_lax(bytes, used, &c) : 0;
		w->f->had_escapes = true;
		w->f->had_unseen |= gate_is_unseen(c);
		put_character(w, c, i);
		return used ? used * 4 : n;
	}
	n = (unsigned char)s[i] < 0x80 ? 0 : utf8_get_lax(s + i, len - i, &c);
	if (n == 0) {
		put_byte(w, s[i], i);
		return 1;
	}
	put_character(w, c, i);
	return n;
}

/* Bytes that stay as they are whatever is folded. */
static size_t plain_run(const char *s, size_t len)
{
	static const struct gate_stops special = {.one = "%&\\\\", .above = 0x7f};

	return gate_next_stop(&special, s, len, 0);
}

/* The first place from `i` on that does not stay as it is; len: none. */
static size_t next_change(const char *s, size_t len, size_t i)
{
	for (; i < len; i++) {
		uint32_t c;
		bool is_byte;
		size_t n;

		if ((unsigned char)s[i] < 0x80)
			i += plain_run(s + i, len - i);
		if (i == len)
			break;
		if ((unsigned char)s[i] < 0x80) {
			if (escape_at(s + i, len - i, &c, &is_byte))
				break;
			continue;
		}
		n = utf8_get_lax(s + i, len - i, &c);
		if (n && gate_fold_one(c) != SAME)
			break;
		i += n ? n - 1 : 0;
	}
	return i;
}

static void begin(struct gate_folded *f, size_t room)
{
	*f = (struct gate_folded){0};
	f->data = xmalloc(room);
	f->map = xreallocarray(NULL, room, sizeof(*f->map));
}

/* s[from, to), an escape at its end whole; returns where it stopped. */
static size_t fold_range(struct walk *w, const char *s, size_t len, size_t from,
			 size_t to)
{
	struct gate_folded *f = w->f;
	size_t before = f->len, i = from;

	while (i < to) {
		size_t plain = w->how & FOLD_CASE ? 0 : plain_run(s + i, to - i);

		memcpy(f->data + f->len, s + i, plain);
		for (size_t k = 0; k < plain; k++)
			f->map[f->len++] = (uint32_t)(i + k);
		i += plain;
		if (i < to)
			i += step(w, s, len, i);
	}
	f->changed |= f->len - before != i - from ||
		      memcmp(f->data + before, s + from, i - from) != 0;
	return i;
}

void gate_fold(const char *s, size_t len, unsigned how, struct gate_folded *ret)
{
	struct walk w = {.f = ret, .how = how, .is_after_blank = true};

	begin(ret, len + 8);
	(void)fold_range(&w, s, len, 0, len);
	ret->map[ret->len] = (uint32_t)len;
}

void gate_fold_around(const char *s, size_t len, size_t around, struct gate_folded *ret)
{
	struct walk w = {.f = ret, .how = FOLD_ESCAPES | FOLD_SHAPES};
	size_t at = next_change(s, len, 0), done = 0;

	begin(ret, at < len ? len + len / around * 2 + 16 : 1);
	while (at < len) {
		size_t from = at - done > around ? at - around : done;
		size_t to, next = at;

		/* changes that are near each other are of one piece */
		do {
			to = len - next > around ? next + around : len;
			next = next_change(s, len, next + 1);
		} while (next < len && next <= to);
		if (ret->len) {
			ret->map[ret->len] = (uint32_t)from;
			ret->data[ret->len++] = '\n';
		}
		done = fold_range(&w, s, len, from, to);
		at = next;
	}
	ret->map[ret->len] = (uint32_t)(ret->len ? done : 0);
}

void gate_folded_done(struct gate_folded *f)
{
	free(f->data);
	free(f->map);
	*f = (struct gate_folded){0};
}
