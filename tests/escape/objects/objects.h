/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of kernel objects that try_objects makes, a file for each part of the kernel. */
#ifndef LYCH_TESTS_ESCAPE_OBJECTS_OBJECTS_H
#define LYCH_TESTS_ESCAPE_OBJECTS_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#define MANY 100000000
#define BLOCK_BYTES ((size_t)1 << 20)

/* Each makes objects until it is refused, with errno, or until it is ended. The rows are also the table of
 * docs/SANDBOX.md (try_objects --table, `make docs`). */
struct object_kind {
	const char *name;
	void (*make)(void);
	const char *where; /* "both" grades or "full": what a job of floor can't make */
	const char *bound; /* how it is counted, or who bounds it */
	const char *most;  /* what the machine lost, where that is more than the limit */
};
extern const struct object_kind objects_of_sockets[], objects_of_files[],
	objects_of_descriptors[], objects_of_memory[], objects_of_sysv[],
	objects_refused[];

extern int who; /* which process: for names of its own */
extern char block[BLOCK_BYTES];
extern unsigned long made; /* by this process, of those that count themselves */

/* Writes until it would wait. */
void stuff(int fd);
/* A name of this process's own, the n-th below that. */
const char *own_name(const char *where, int n);

#endif
