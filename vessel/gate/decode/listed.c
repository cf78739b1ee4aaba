/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * Pairs of hexadecimal digits in a list: `41-42-43`, `41, 42,` over lines' ends, `{0x41, 0x42}`. Each pair
 * stands by itself or behind `0x`; what lies between two of them does not matter as long as it is short
 * and no letter or digit. hex.c has those that nothing but one blank, or one colon, is between.
 */
#include "vessel/gate/decode/decode_priv.h"
#include "vessel/gate/text/runs.h"
#include <string.h>

#define LIST_MIN 8 /* pairs */
#define GAP_MAX 16 /* bytes: a comma, a line's end, and what indents the next one */
/* Of that many bytes, whatever their place, a list has three pairs that begin there, or more: (GAP_MAX + 4) * 3. */
#define BLOCK 64
#define BLOCK_PAIRS 3

static const uint8_t letters[256] = {
	['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, [0x80 ... 0xff] = 1};

struct list {
	size_t from, to; /* from its first pair to its last one */
	size_t before;	 /* how much there was without it */
	size_t out;	 /* where its bytes begin */
	size_t n;
	bool is_spaced; /* hex.c has it */
};

/* Only what can be read in it counts: a list of numbers that holds much is a table of a program's. */
static void end_list(struct gate_decoded *d, struct list *l)
{
	if (l->n < LIST_MIN || l->is_spaced ||
	    !decoded_keep(d, l->out, l->from, l->to - l->from))
		d->len = l->before;
	else
		d->block[d->n - 1].is_loose = true;
	l->n = 0;
}

/* 1 + the value of the pair that the letters and digits [from, to) are; 0: they are none. */
static unsigned pair_of(const char *s, size_t from, size_t to)
{
	unsigned high, low;

	if (to - from == 4 && s[from] == '0' && (s[from + 1] | 0x20) == 'x')
		from += 2;
	if (to - from != 2)
		return 0;
	high = gate_values16[(unsigned char)s[from]];
	low = gate_values16[(unsigned char)s[from + 1]];
	return high && low ? 1 + ((high - 1) << 4 | (low - 1)) : 0;
}

static bool is_spaced(const char *s, size_t from, size_t to)
{
	return to - from == 1 && (s[from] == ' ' || s[from] == ':');
}

static void take_pair(struct gate_decoded *d, struct list *l, const char *s, size_t from,
		      size_t to, char value)
{
	if (l->n && from - l->to > GAP_MAX)
		end_list(d, l);
	if (l->n == 0)
		*l = (struct list){.from = from,
				   .before = d->len,
				   .out = decoded_begin(d),
				   .is_spaced = to - from == 2};
	else
		l->is_spaced &= to - from == 2 && is_spaced(s, l->to, from);
	l->to = to;
	l->n++;
	if (decoded_reserve(d, 1))
		d->data[d->len++] = value;
}

/* ---- where there may be one ------------------------------------------------------- */

typedef uint8_t bytes16 __attribute__((vector_size(16)));

static bytes16 load(const char *s)
{
	bytes16 v;

	memcpy(&v, s, sizeof(v));
	return v;
}

/* All ones in each byte that is between the two. */
static bytes16 is_in(bytes16 v, uint8_t from, uint8_t to)
{
	return (bytes16)(v - from <= (uint8_t)(to - from));
}

static bytes16 is_hex(bytes16 v)
{
	return is_in(v, '0', '9') | is_in(v | 0x20, 'a', 'f');
}

static bytes16 is_letter(bytes16 v)
{
	return is_in(v, '0', '9') | is_in(v | 0x20, 'a', 'z') | (bytes16)(v > 0x7f);
}

/* Pairs that begin in s[0, BLOCK), or what looks like one beside an x. One byte before s and three behind the
 * block are looked at, too. Most text has none: not a branch for any of it. */
static unsigned count_pairs(const char *s)
{
	bytes16 n = {0};
	unsigned sum = 0;

	for (size_t i = 0; i < BLOCK; i += sizeof(n)) {
		bytes16 before = load(s + i - 1);
		bytes16 is_free = ~is_letter(before) | (bytes16)((before | 0x20) == 'x');

		n -= is_free & is_hex(load(s + i)) & is_hex(load(s + i + 1)) &
		     ~is_letter(load(s + i + 2));
	}
	for (size_t i = 0; i < sizeof(n); i++)
		sum += n[i];
	return sum;
}

/* ---- the walk --------------------------------------------------------------------- */

/* From the word at `i` on, until a list has ended behind `stop`; where it did. */
static size_t walk(struct gate_decoded *d, const char *s, size_t len, size_t i,
		   size_t stop)
{
	struct list l = {0};

	for (; i < len && (i < stop || l.n) && !d->too_large; i++) {
		size_t from = i;
		unsigned pair;

		if (!letters[(unsigned char)s[i]])
			continue;
		i = gate_run_end(letters, s, len, i);
		pair = pair_of(s, from, i);
		if (pair)
			take_pair(d, &l, s, from, i, (char)(pair - 1));
		else if (l.n)
			end_list(d, &l);
	}
	if (l.n)
		end_list(d, &l);
	return i;
}

void gate_decode_listed_hex(const char *s, size_t len, struct gate_decoded *d)
{
	size_t done = 0;

	for (size_t i = 0; i < len && !d->too_large;) {
		bool is_whole = i > 0 && i + BLOCK + 2 <= len;
		size_t from = i > done + BLOCK ? i - BLOCK : done;

		if (is_whole && count_pairs(s + i) < BLOCK_PAIRS) {
			i += BLOCK;
			continue;
		}
		/* a list may have begun in the block before */
		while (from > done && letters[(unsigned char)s[from - 1]])
			from--;
		i = done = walk(d, s, len, from, i + BLOCK < len ? i + BLOCK : len);
	}
}
