/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-sandbox.
 * What a job sees of the host: lists, ended by NULL, that the private root (full) and the
 * Landlock rules (floor) share.
 */
#ifndef LYCH_SANDBOX_CONTRACT_PATHS_H
#define LYCH_SANDBOX_CONTRACT_PATHS_H

#include <stdbool.h>

#define PATH_WORK "/work"
/* In grade full: exists in the private root and nothing grants it. See selftest.c. */
#define PATH_CANARY "/.lychgate-canary"
/* In grade full: an empty file and an empty directory, for what is covered below /proc. */
#define PATH_NOTHING "/dev/.nothing"
#define PATH_NOTHING_DIR "/dev/.nothing.d"
/* In grade full: the terminals that the job makes. */
#define PATH_PTS "/dev/pts"

extern const char *const paths_system[]; /* read and execute */
extern const char
	*const paths_etc_public[]; /* files and directories that hold no secret */
extern const char *const paths_etc_floor[];  /* floor only: full has its own of these */
extern const char *const paths_proc_floor[]; /* floor only: single nodes */
extern const char *const paths_dev_plain[];
extern const char
	*const paths_dev_terminal[]; /* full only: of the caller's session itself */
extern const char *const paths_dev_random[];

/* Is path the top itself or below it, by their text? Both as the kernel names them. */
bool paths_is_below(const char *path, const char *top);

#endif
