/* SPDX-License-Identifier: Apache-2.0 */
/* What the acts of try_unruly share, and those that hold what no process owns. */
#ifndef LYCH_TESTS_ESCAPE_UNRULY_UNRULY_H
#define LYCH_TESTS_ESCAPE_UNRULY_UNRULY_H

#include <stddef.h>

#define MIB ((size_t)1 << 20)
#define LONG_SEC 300

/* Anonymous memory, filled; the process ends where there is none. */
char *map(size_t n, int flags);
/* 0, or what the act ends with */
int fill(int fd, size_t total);

/* unruly_hidden.c */
int act_remnant(const char *arg);
int act_memfdpage(const char *arg);
int act_filepage(const char *arg);
int act_parked(const char *arg);
int act_nested(const char *arg);
int act_buffers(const char *arg);
int act_honest(const char *arg);

/* unruly_sysv.c */
int act_sysv(const char *arg);
int act_sysvshare(const char *arg);

#endif
