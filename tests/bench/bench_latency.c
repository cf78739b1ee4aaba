/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From request to reaped, one run at a time, all contestants in each round and in an order
 * that changes from round to round: what disturbs the machine disturbs all alike.
 *
 *	bench_latency FILE ROUNDS WARM-UP GAP_MS
 *
 * GAP_MS of rest before each run: the kernel finishes what the one before left behind
 * (namespaces are taken down late), and a pool of warm sandboxes fills up again, as it does
 * between two jobs of one user. A line for each run: NAME, a tab, nanoseconds.
 */
#include "common/str.h"
#include "tests/bench/contestant.h"
#include "tests/bench/die.h"

#include <time.h>

static uint64_t number(const char *s, uint64_t max)
{
	uint64_t v = 0;

	if (parse_u64(s, 0, max, &v, NULL) < 0)
		die("not a number: %s", s);
	return v;
}

/* Numerical Recipes' generator: the order only has to differ, the same in every run. */
static size_t next_random(size_t below)
{
	static uint32_t state = 1;

	state = state * 1664525u + 1013904223u;
	return (size_t)(state >> 8) % below;
}

static void shuffle(size_t *order, size_t n)
{
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = next_random(i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

static void rest(uint64_t ms)
{
	struct timespec t = {.tv_sec = (time_t)(ms / 1000),
			     .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	static struct contestant c[CONTESTANTS_MAX];
	size_t order[CONTESTANTS_MAX], n;
	uint64_t rounds, warm_up, gap_ms;

	if (argc != 5)
		die("bench_latency FILE ROUNDS WARM-UP GAP_MS");
	rounds = number(argv[2], 1000000);
	warm_up = number(argv[3], 1000);
	gap_ms = number(argv[4], 10000);
	n = contestants_load(argv[1], c);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (uint64_t r = 0; r < warm_up + rounds; r++) {
		shuffle(order, n);
		for (size_t i = 0; i < n; i++) {
			uint64_t ns;

			rest(gap_ms);
			ns = contestant_time(&c[order[i]]);
			if (r >= warm_up)
				printf("%s\t%llu\n", c[order[i]].name,
				       (unsigned long long)ns);
		}
	}
	contestants_stop(c, n);
	return 0;
}
