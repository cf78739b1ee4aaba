/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * A process that forks workers: what daemons that may start nothing themselves leave to a
 * child of theirs, which they fork before they confine themselves. It is told of its
 * children's ends by a descriptor, and they end with it.
 */
#ifndef LYCH_COMMON_NET_CHILDREN_H
#define LYCH_COMMON_NET_CHILDREN_H

#include "common/attr.h"
#include "common/err.h"
#include <sys/types.h>

/*
 * In the process itself, first thing: signals that end a daemon are its maker's business and
 * ignored here, core files are forbidden, SIGCHLD is blocked and read from *ret_fd.
 */
MUST_CHECK int children_begin(const char *process_name, int *ret_fd, struct err *err);
/* Forget what *ret_fd has told; the ends themselves are asked of waitpid(). */
void children_heard(int fd);
/* In a child, first thing; parent: getpid() before the fork. The parent's death is its own.
 * -1: the parent is dead already. */
MUST_CHECK int child_begin(pid_t parent);
/* Close every descriptor above 2 but these two (one of them may be -1). */
void children_keep(int a, int b);

#endif
