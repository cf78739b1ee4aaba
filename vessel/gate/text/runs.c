/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See runs.h.
 */
#include "vessel/gate/text/runs.h"
#include <stdbool.h>
#include <string.h>

#define GRID 4 /* each fourth byte is looked at: a run has min / 4 of them, or more */
#define NEAR 8 /* so many bytes are looked at one by one, before many at a time */

size_t gate_next_run(const uint8_t in[256], size_t min, const char *s, size_t len,
		     size_t i)
{
	const unsigned char *u = (const unsigned char *)s;
	const uint32_t want = UINT32_MAX >> (32 - min / GRID);
	uint32_t seen = 0;

	if (len < min)
		return len;
	for (size_t at = i; at < len; at += GRID) {
		size_t begin = at, end = at;

		seen = seen << 1 | (in[u[at]] != 0);
		if ((seen & want) != want)
			continue;
		while (begin > i && in[u[begin - 1]])
			begin--;
		while (end < len && end - begin < min && in[u[end]])
			end++;
		if (end - begin == min)
			return begin;
		/* on behind what ended it, where a grid of its own begins */
		i = end + 1;
		at = i - GRID;
		seen = 0;
	}
	return len;
}

size_t gate_run_end(const uint8_t in[256], const char *s, size_t len, size_t i)
{
	while (i < len && in[(unsigned char)s[i]])
		i++;
	return i;
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

static bytes16 all_of(uint8_t b)
{
	return (bytes16){b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b};
}

static bool is_stop(const struct gate_stops *x, uint8_t b)
{
	return b == x->one[0] || b == x->one[1] || b == x->one[2] || b == x->one[3] ||
	       b < x->below || b > x->above || (uint8_t)(b - x->from) < x->n;
}

size_t gate_next_stop(const struct gate_stops *x, const char *s, size_t len, size_t i)
{
	const bytes16 a = all_of(x->one[0]), b = all_of(x->one[1]), c = all_of(x->one[2]),
		      d = all_of(x->one[3]), below = all_of(x->below),
		      above = all_of(x->above), from = all_of(x->from), n = all_of(x->n);

	for (size_t k = 0; k < NEAR && i < len; k++, i++)
		if (is_stop(x, (uint8_t)s[i]))
			return i;
	for (; len - i >= sizeof(bytes16); i += sizeof(bytes16)) {
		bytes16 v;
		words2 hit;

		memcpy(&v, s + i, sizeof(v));
		hit = (words2)((v == a) | (v == b) | (v == c) | (v == d) | (v < below) |
			       (v > above) | (v - from < n));
		if (hit[0] | hit[1])
			break;
	}
	while (i < len && !is_stop(x, (uint8_t)s[i]))
		i++;
	return i;
}
