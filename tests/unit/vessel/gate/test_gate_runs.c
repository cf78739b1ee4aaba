/* SPDX-License-Identifier: Apache-2.0 */
/* Both searches against the loop that says what they mean, on drawn texts. */
#include "vessel/gate/text/runs.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#define LEN 300

static uint32_t draw(uint32_t *s, uint32_t n)
{
	*s = *s * 1664525u + 1013904223u;
	return (*s >> 8) % n;
}

/* Runs of many lengths of one letter, and others between them. */
static void make(char *s, uint32_t *seed)
{
	for (size_t i = 0; i < LEN;) {
		size_t run = draw(seed, 24), gap = draw(seed, 3);

		for (; run && i < LEN; run--)
			s[i++] = 'a';
		for (; gap && i < LEN; gap--)
			s[i++] = (char)draw(seed, 256);
	}
}

static size_t plain_next_run(const uint8_t in[256], size_t min, const char *s, size_t len,
			     size_t i)
{
	for (; i + min <= len; i++) {
		size_t n = 0;

		while (n < min && in[(unsigned char)s[i + n]])
			n++;
		if (n == min)
			return i;
	}
	return len;
}

Test(gate_runs, the_next_run_is_the_first_one)
{
	static const size_t mins[] = {4, 5, 12, 15, 16, 20, 23};
	const uint8_t in[256] = {['a'] = 7, ['b' ... 'k'] = 1};
	uint32_t seed = 20260102;
	char s[LEN];

	for (unsigned round = 0; round < 400; round++) {
		make(s, &seed);
		for (size_t m = 0; m < sizeof(mins) / sizeof(mins[0]); m++)
			for (size_t i = 0; i <= LEN; i += 1 + draw(&seed, 9))
				cr_assert_eq(gate_next_run(in, mins[m], s, LEN, i),
					     plain_next_run(in, mins[m], s, LEN, i),
					     "round %u, min %zu, from %zu", round,
					     mins[m], i);
	}
	cr_assert_eq(gate_next_run(in, 12, "aaaa", 4, 0), 4);
	cr_assert_eq(gate_next_run(in, 12, "", 0, 0), 0);
	cr_assert_eq(gate_run_end(in, "aabc.", 5, 1), 4);
	cr_assert_eq(gate_run_end(in, "aabc", 4, 4), 4);
}

static bool is_one_of(const struct gate_stops *x, uint8_t b)
{
	return memchr(x->one, b, sizeof(x->one)) || b < x->below || b > x->above ||
	       (b >= x->from && b < x->from + x->n);
}

Test(gate_runs, the_next_stop_is_the_first_one)
{
	static const struct gate_stops kinds[] = {
		{.one = "%&\\\\", .above = 0x7f},
		{.one = {1, 0x8b, 0x9c, 0xda}, .above = 0xff},
		{.below = 8, .from = 14, .n = 18, .above = '~'},
	};
	uint32_t seed = 20260103;
	char s[LEN];

	for (unsigned round = 0; round < 400; round++) {
		const struct gate_stops *x = &kinds[round % 3];

		make(s, &seed);
		for (size_t i = 0; i <= LEN; i++) {
			size_t want = i;

			while (want < LEN && !is_one_of(x, (uint8_t)s[want]))
				want++;
			cr_assert_eq(gate_next_stop(x, s, LEN, i), want,
				     "round %u, from %zu", round, i);
		}
	}
}
