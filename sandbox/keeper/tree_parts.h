/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the keeper and the meter.
 * Between tree.c, which lists, and use*.c, which measure.
 */
#ifndef LYCH_SANDBOX_KEEPER_TREE_PARTS_H
#define LYCH_SANDBOX_KEEPER_TREE_PARTS_H

#include "sandbox/keeper/tree.h"

#include <dirent.h>

/* Of the kernel's task flags, shown in /proc/PID/stat: forked, but did not exec. */
#define PF_FORKNOEXEC 0x40u
#define TREE_STATUS_MAX 8192 /* of /proc/PID/status, and smaps_rollup */

/* Our own numbers in kernel text: digits end at the first other byte. */
uint64_t tree_take_u64(const char **p);
/* Read a small file of /proc; the length, or -1 with errno. */
ssize_t tree_read(int dir, const char *path, char *out, size_t size);
DIR *tree_open_dir(int dir, const char *path);
/* Exited, but not the last of its threads: those live on behind it. */
bool tree_is_dead(const struct tree_proc *p);

#endif
