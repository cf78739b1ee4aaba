/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Which of the words that there are was meant by one that there is not.
 */
#ifndef LYCH_COMMON_NEAR_H
#define LYCH_COMMON_NEAR_H

#include <stddef.h>

#define NEAR_WORD_MAX 40 /* nothing is near to a longer one */

/* How far two words are apart: a letter that is put in, left out, changed, or swapped with its
 * neighbour counts one. */
unsigned near_distance(const char *a, size_t a_len, const char *b, size_t b_len);

/* Begins with the word and its length; what it becomes by near_offer() is in best. */
struct near {
	const char *word;
	size_t len;
	const char *
		best; /* the nearest that was offered, the first of several; NULL: none is near */
	unsigned distance;
};
/* One that begins with the word (three letters of it, or more) is as near as one that is a
 * letter away. */
void near_offer(struct near *n, const char *candidate);

#endif
