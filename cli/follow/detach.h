/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * The keys with which a person leaves a terminal that stays: Ctrl-] and then d, as no program is left by
 * these. Ctrl-] twice is one for the job, and before any other key it is the job's along with that.
 */
#ifndef LYCH_CLI_FOLLOW_DETACH_H
#define LYCH_CLI_FOLLOW_DETACH_H

#include <stdbool.h>
#include <stddef.h>

#define DETACH_PREFIX '\x1d'

/* Of the n bytes that were typed, what is for the job, in the same place, whose room is n + 1; how many. What
 * comes behind the keys is nobody's. *prefixed: the first key was the last byte, here and before. */
size_t detach_keys(bool *prefixed, char *typed, size_t n, bool *ret_left);

#endif
