/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sustained starts a second, with a number of them under way at any time. The contestants
 * take turns in short slices: what disturbs the machine disturbs all alike.
 *
 *	bench_rate FILE UNDER-WAY SLICES SLICE_MS
 *
 * A line for each slice: NAME, a tab, runs a second.
 */
#include "common/str.h"
#include "tests/bench/contestant.h"
#include "tests/bench/die.h"

static uint64_t number(const char *s, uint64_t max)
{
	uint64_t v = 0;

	if (parse_u64(s, 1, max, &v, NULL) < 0)
		die("not a number: %s", s);
	return v;
}

static void one_ends(struct contestant *c)
{
	if (!c->serve)
		(void)reap_ok(-1, c->name);
	else
		while (spawner_wait(&c->spawner).started)
			;
}

static double slice(struct contestant *c, uint64_t under_way, uint64_t slice_ns)
{
	uint64_t start = now_ns(), runs = 0, busy = 0;

	while (now_ns() - start < slice_ns) {
		for (; busy < under_way; busy++)
			(void)contestant_begin(c);
		one_ends(c);
		busy--;
		runs++;
	}
	for (; busy; busy--, runs++)
		one_ends(c);
	return (double)runs * 1e9 / (double)(now_ns() - start);
}

int main(int argc, char **argv)
{
	static struct contestant c[CONTESTANTS_MAX];
	uint64_t under_way, slices, slice_ns;
	size_t n;

	if (argc != 5)
		die("bench_rate FILE UNDER-WAY SLICES SLICE_MS");
	under_way = number(argv[2], SPAWN_JOBS_MAX);
	slices = number(argv[3], 10000);
	slice_ns = number(argv[4], 60000) * 1000000u;
	n = contestants_load(argv[1], c);
	for (size_t i = 0; i < n; i++) /* a warm-up for each */
		(void)slice(&c[i], under_way, slice_ns / 4);
	for (uint64_t s = 0; s < slices; s++)
		for (size_t i = 0; i < n; i++) {
			struct contestant *now = &c[(i + s) % n];

			printf("%s\t%.1f\n", now->name, slice(now, under_way, slice_ns));
		}
	contestants_stop(c, n);
	return 0;
}
