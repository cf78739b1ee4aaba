/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * A unified diff of two small texts, by lines.
 */
#ifndef LYCH_CLI_UI_DIFF_H
#define LYCH_CLI_UI_DIFF_H

#include "common/buf.h"
#include <stdbool.h>

/* Appends nothing and returns false when they are the same. NULL: there is no such file
 * on that side. The names stand behind "---" and "+++". */
bool diff_unified(const char *from_name, const char *from, const char *to_name,
		  const char *to, struct buf *out);

#endif
