/* SPDX-License-Identifier: Apache-2.0 */
/* A benchmark that cannot measure what it says ends at once: no number is better than a
 * wrong one. */
#ifndef LYCH_TESTS_BENCH_DIE_H
#define LYCH_TESTS_BENCH_DIE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define die(...)                                                                         \
	do {                                                                             \
		(void)fflush(stdout);                                                    \
		(void)fprintf(stderr, "bench: " __VA_ARGS__);                            \
		(void)fputc('\n', stderr);                                               \
		exit(1);                                                                 \
	} while (0)
#define die_errno(what) die("%s: %s", (what), strerror(errno))

#endif
