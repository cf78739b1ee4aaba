/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark's end of the spawner protocol: one lych-sandbox --serve and its jobs. */
#ifndef LYCH_TESTS_BENCH_SPAWNER_H
#define LYCH_TESTS_BENCH_SPAWNER_H

#include "common/proto/spawn_proto.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct spawner {
	int sock, null_fd;
	pid_t pid; /* the outer process */
	uint64_t next_handle;
};

/* argv[0]: the program; the rest goes behind --serve FD. Waits for HELLO. */
void spawner_start(struct spawner *s, char *const argv[]);
/* The words as a sealed block; returns the handle. */
uint64_t spawner_request(struct spawner *s, char *const words[]);

struct spawner_end {
	uint64_t handle;
	int started; /* 1: only STARTED so far */
};
/* The next STARTED or EXITED. Anything but an exit with status 0 ends the program. */
struct spawner_end spawner_wait(struct spawner *s);
/* Closes the socket and waits for the end of the process. */
void spawner_stop(struct spawner *s);

#endif
