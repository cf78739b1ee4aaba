/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See runs.h.
 */
#include "vessel/gate/text/runs.h"
#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define GRID 4 /* each fourth byte is looked at before all are */

/* Where s[from, to) has a byte that in[] has not, the place behind it; from: it has none, or none was seen. */
static size_t behind_other(const uint8_t in[256], const unsigned char *u, size_t from,
			   size_t to, size_t step)
{
	for (size_t k = to; k >= from + step; k -= step)
		if (!in[u[k - 1]])
			return k;
	return from;
}

/* As strings are searched for by Boyer and Moore: the last byte that a run at `i` would have is looked at first, and if
 * it is none of the class, no run begins before it. */
size_t gate_next_run(const uint8_t in[256], size_t min, const char *s, size_t len,
		     size_t i)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t known = i; /* s[i, known) is of the class */

	while (i < len && len - i >= min) {
		size_t other = behind_other(in, u, known, i + min, GRID);

		if (other > known) {
			i = known = other;
			continue;
		}
		other = behind_other(in, u, known, i + min, 1);
		if (other == known)
			return i;
		known = i + min;
		i = other;
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

/* Has all ones in each byte of s[0, 16) that is a stop. */
static inline words2 stops_at(const struct gate_stops *x, const char *s, bool has_ranges)
{
	bytes16 v, hit;

	memcpy(&v, s, sizeof(v));
	hit = (bytes16)((v == all_of(x->one[0])) | (v == all_of(x->one[1])) |
			(v == all_of(x->one[2])) | (v == all_of(x->one[3])) |
			(v > all_of(x->above)));
	if (has_ranges)
		hit |= (bytes16)((v < all_of(x->below)) |
				 (v - all_of(x->from) < all_of(x->n)));
	return (words2)hit;
}

static size_t first_of(words2 hit)
{
	uint64_t low = le64toh(hit[0]), high = le64toh(hit[1]);

	return (size_t)(low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high)) / 8;
}

static inline size_t next_stop(const struct gate_stops *x, const char *s, size_t len,
			       size_t i, bool has_ranges)
{
	for (; len - i >= sizeof(bytes16); i += sizeof(bytes16)) {
		words2 hit = stops_at(x, s + i, has_ranges);

		if (hit[0] | hit[1])
			return i + first_of(hit);
	}
	while (i < len && !is_stop(x, (uint8_t)s[i]))
		i++;
	return i;
}

size_t gate_next_stop(const struct gate_stops *x, const char *s, size_t len, size_t i)
{
	if (i >= len)
		return len;
	return x->below || x->n ? next_stop(x, s, len, i, true)
				: next_stop(x, s, len, i, false);
}
