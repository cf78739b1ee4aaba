/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts contestants and holds them for somebody who looks at their memory from outside.
 *
 *	bench_hold FILE RUNS
 *
 * RUNS runs of each contestant are begun (0: a spawner stays idle). For each process of
 * ours that holds them a line NAME, a tab, pid; then "ready". End of file on standard
 * input ends it all.
 */
#include "common/str.h"
#include "tests/bench/contestant.h"
#include "tests/bench/die.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS_MAX 64

static pid_t held[CONTESTANTS_MAX * RUNS_MAX];
static size_t n_held;

static void begin(struct contestant *c, uint64_t runs)
{
	if (c->serve)
		printf("%s\t%d\n", c->name, c->spawner.pid);
	for (uint64_t r = 0; r < runs; r++) {
		uint64_t id = contestant_begin(c);

		if (c->serve) {
			if (!spawner_wait(&c->spawner).started)
				die("%s: over already", c->name);
			continue;
		}
		held[n_held++] = (pid_t)id;
		printf("%s\t%d\n", c->name, (pid_t)id);
	}
}

int main(int argc, char **argv)
{
	static struct contestant c[CONTESTANTS_MAX];
	uint64_t runs = 0;
	char byte;
	size_t n;

	if (argc != 3 || parse_u64(argv[2], 0, RUNS_MAX, &runs, NULL) < 0)
		die("bench_hold FILE RUNS");
	n = contestants_load(argv[1], c);
	for (size_t i = 0; i < n; i++)
		begin(&c[i], runs);
	printf("ready\n");
	(void)fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	for (size_t i = 0; i < n_held; i++) {
		(void)kill(held[i], SIGKILL);
		(void)waitpid(held[i], NULL, 0);
	}
	contestants_stop(c, n);
	return 0;
}
