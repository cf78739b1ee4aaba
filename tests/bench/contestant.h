/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who takes part, one a line, words by blanks ("\ " is a blank within a word), '#' starts a
 * comment line:
 *
 *	NAME exec [FD<FILE]... PROGRAM ARGUMENT...
 *		started by posix_spawn, over when it is reaped. FD<FILE: opened anew for
 *		each run under that number.
 *	NAME serve SANDBOX OPTION... :: SPEC-WORD...
 *		asked of one spawner that runs all the while (SANDBOX --serve FD OPTION...),
 *		over when its EXITED has arrived.
 *
 * Standard input, output and error are /dev/null, the environment is one PATH.
 */
#ifndef LYCH_TESTS_BENCH_CONTESTANT_H
#define LYCH_TESTS_BENCH_CONTESTANT_H

#include "tests/bench/spawner.h"

#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>

#define CONTESTANTS_MAX 32
#define CONTESTANT_WORDS_MAX 192

struct contestant {
	char *name;
	char *word[CONTESTANT_WORDS_MAX + 1];
	char **argv; /* exec: the command; serve: the words of the spec */
	bool serve;
	posix_spawn_file_actions_t actions;
	struct spawner spawner;
};

/* Reads the file and starts the spawners. Returns how many take part. */
size_t contestants_load(const char *file, struct contestant out[CONTESTANTS_MAX]);
/* Begins one run: a pid of ours, or the handle at the spawner. */
uint64_t contestant_begin(struct contestant *c);
/* From begin to end of one run, in nanoseconds. */
uint64_t contestant_time(struct contestant *c);
void contestants_stop(struct contestant *c, size_t n);

uint64_t now_ns(void);
/* waitpid for pid (-1: any); a status other than 0 ends the program. */
pid_t reap_ok(pid_t pid, const char *who);

#endif
