/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * One character of a text that a job controls: how long, which one, and whether a terminal may
 * see it.
 */
#ifndef LYCH_CLI_UI_GLYPH_H
#define LYCH_CLI_UI_GLYPH_H

#include <stdbool.h>
#include <stdint.h>

/* Length of the UTF-8 sequence that starts with this byte, 0 when none does. */
unsigned glyph_len(unsigned char c);
/* Of n bytes that are valid. */
uint32_t glyph_decode(const unsigned char *s, unsigned n);
/* Controls, and what reorders or hides text. */
bool glyph_is_dangerous(uint32_t cp);
/* Columns that a terminal gives it, 1 or 2; never fewer than it takes, but for letters of
 * ambiguous width (Greek, Cyrillic) on a terminal that is set to show these in two. */
unsigned glyph_columns(uint32_t cp);

#endif
