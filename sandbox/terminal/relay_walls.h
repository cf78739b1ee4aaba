/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the relay.
 * What it gives away before it reads a byte of a job's.
 */
#ifndef LYCH_SANDBOX_TERMINAL_RELAY_WALLS_H
#define LYCH_SANDBOX_TERMINAL_RELAY_WALLS_H

#include "common/attr.h"
#include "common/err.h"
#include <sys/types.h>

/* Keeps two descriptors, and the calls that move bytes between descriptors: it opens nothing, makes
 * nothing, asks no terminal anything by ioctl, signals nobody. Ends with its parent. Then it has
 * tried a call that is not among them. ERRID_TTY_RELAY. */
MUST_CHECK int relay_walls(int person, int parent_sock, pid_t parent, struct err *err);

#endif
