/* SPDX-License-Identifier: Apache-2.0 */
/* What try_metadata's attempts and its calls on one's own files share. */
#ifndef LYCH_TESTS_ESCAPE_METADATA_METADATA_H
#define LYCH_TESTS_ESCAPE_METADATA_METADATA_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NR_FCHMODAT2 452
#define NR_SETXATTRAT 463
#define NR_REMOVEXATTRAT 466
#define NR_FILE_SETATTR 469
#define HERE AT_FDCWD
#define N_PATH_CALLS 17
#define N_FD_CALLS 11

struct attr_args {
	uint64_t value;
	uint32_t size, flags;
};

extern int failed;
extern const struct timespec then[2];

/* 0 or errno */
int result(long r);
/* The calls that change mode, owner, times or attributes, by path and by descriptor. */
int path_call(int which, int dirfd, const char *path);
int fd_call(int which, int fd);
void relink(const char *target, const char *name);
/* Says it where it is another. */
void wants(const char *what, int got, int wanted);

/* metadata_works.c; no_xattrat: see try_metadata.c. The program's exit code. */
int has_xattrat(void);
int works(bool no_xattrat);

#endif
