/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See near.h.
 */
#include "common/near.h"

#include <string.h>

#define BEGINNING_MIN 3

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned near_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	/* [i][j]: between the first i of a and the first j of b */
	unsigned d[NEAR_WORD_MAX + 1][NEAR_WORD_MAX + 1];

	if (a_len > NEAR_WORD_MAX || b_len > NEAR_WORD_MAX)
		return (unsigned)-1;
	for (unsigned i = 0; i <= a_len; i++)
		d[i][0] = i;
	for (unsigned j = 0; j <= b_len; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= a_len; i++)
		for (size_t j = 1; j <= b_len; j++) {
			unsigned changed = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, changed);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[a_len][b_len];
}

/* Half of a word of two letters is another word. */
static unsigned tolerated(size_t len)
{
	return len < 3 ? 0 : len < 5 ? 1 : len < 9 ? 2 : 3;
}

void near_offer(struct near *n, const char *candidate)
{
	size_t len = strlen(candidate);
	unsigned d = near_distance(n->word, n->len, candidate, len);

	if (n->len >= BEGINNING_MIN && n->len < len &&
	    memcmp(n->word, candidate, n->len) == 0)
		d = 1;
	if (d > tolerated(n->len) || (n->best && d >= n->distance))
		return;
	n->best = candidate;
	n->distance = d;
}
