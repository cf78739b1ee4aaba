/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker and the vessel.
 * What a single character stands for: for the gate, and for the ward in the vessel.
 *
 * Theory of operation. Whoever hides a text writes it with characters that look like others.
 * The tables say of each which one of ASCII it is taken for, or that nothing stands for it;
 * tests/support/python/look-alikes reads them, too.
 */
#include "common/attr.h"
#include "common/text/ignorable.h"
#include "vessel/gate/text/fold.h"

#define DROP GATE_FOLD_DROP
#define SAME GATE_FOLD_SAME

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
uint32_t gate_fold_letter(uint32_t c)
{
	bool is_small;
	uint32_t other = other_case(c, &is_small);
	uint32_t to = other == c ? SAME : gate_fold_one(other);

	return to != SAME && to != DROP ? to : is_small ? c : other;
}

int gate_selector_byte(uint32_t c)
{
	if (c >= 0xfe00 && c <= 0xfe0f)
		return (int)(c - 0xfe00);
	return c >= 0xe0100 && c <= 0xe01ef ? (int)(c - 0xe0100 + 16) : -1;
}

int gate_tag_byte(uint32_t c)
{
	/* What ends or begins a flag or the name of a language would cut a text in two. */
	if (c < 0xe0000 || c > 0xe00ff || c == GATE_CANCEL_TAG)
		return -1;
	c -= 0xe0000;
	return c >= ' ' || c == '\n' || c == '\r' || c == '\t' ? (int)c : -1;
}
