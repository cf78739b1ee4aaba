/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * Globs on relative paths: '?' one byte, '*' any run without '/', '**' any run.
 */
#ifndef LYCH_COMMON_TEXT_GLOB_H
#define LYCH_COMMON_TEXT_GLOB_H

#include <stdbool.h>

/*
 * "**" followed by "/" also matches nothing, so that "**" "/x" finds x at the top. All
 * other bytes are themselves. Time is bounded by (pattern * path) steps.
 */
bool glob_match(const char *pattern, const char *path);

#endif
