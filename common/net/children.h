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
/* A child that runs child(end, arg) with nothing open above 2 but its end of a SEQPACKET pair, and
 * exits with what that returns. Ours of the pair, O_CLOEXEC; -1 with errno. */
int children_fork(int (*child)(int end, void *arg), void *arg);
/*
 * For each byte that comes on control one_more(control, arg), which may answer; until the
 * maker's end of it closes. Children that end otherwise than with 0 are logged as `what`. Returns
 * the exit code.
 */
int children_serve(int control, int signals, const char *what,
		   int (*one_more)(int control, void *arg), void *arg);
/* Close every descriptor above 2 but these two (one of them may be -1). */
void children_keep(int a, int b);

#endif
